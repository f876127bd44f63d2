package yamldoc

import (
	"encoding/json"

	"go.yaml.in/yaml/v4"
)

// ReadSettings returns a mapping as JSON, with variables and files substituted.
func (v Value) ReadSettings() json.RawMessage {
	v.fileAllowed = true
	return v.readJSON("a mapping of settings")
}

// ReadObject returns a mapping as JSON with sorted keys, with variables substituted. It
// returns nil after an error.
func (v Value) ReadObject() json.RawMessage { return v.readJSON("a mapping") }

// ReadJSON returns a value of any type as JSON, with variables substituted. It returns nil after
// an error.
func (v Value) ReadJSON() json.RawMessage { return v.encodeJSON() }

// readJSON returns a mapping, which want describes, as JSON.
func (v Value) readJSON(want string) json.RawMessage {
	if v.Node.Kind != yaml.MappingNode {
		v.AddTypeError(want, "")
		return nil
	}
	return v.encodeJSON()
}

// encodeJSON returns a value as JSON.
func (v Value) encodeJSON() json.RawMessage {
	before := v.ErrorCount()
	object, err := json.Marshal(v.jsonValue())
	if err != nil {
		v.AddError("cannot be written as JSON: "+err.Error(), "")
	}
	if v.ErrorCount() > before {
		return nil
	}
	return object
}

// jsonValue returns a node as a value for encoding/json.
func (v Value) jsonValue() any {
	switch v.Node.Kind {
	case yaml.MappingNode:
		fields := map[string]any{}
		for key, val := range v.MapPairs() {
			fields[key.Node.Value] = val.jsonValue()
		}
		return fields
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range v.ListItems() {
			list = append(list, item.jsonValue())
		}
		return list
	}
	return v.jsonScalar()
}

// jsonScalar returns a scalar as a string with variables substituted, a number, a
// bool or nil.
func (v Value) jsonScalar() any {
	switch v.Node.Tag {
	case "!!int", "!!float", "!!bool", "!!null":
		var plain any
		if err := v.Node.Decode(&plain); err != nil {
			v.AddError("cannot be read: "+err.Error(), "")
		}
		return plain
	}
	s, _ := v.ReadText()
	return s
}
