package config

import (
	"encoding/json"

	"go.yaml.in/yaml/v4"
)

// Module is a bringer of tool groups that the build has under Type.
type Module struct {
	Name     string
	Type     string          // whether the build has it the caller knows
	Settings json.RawMessage // a JSON object, as the module reads it; nil when there are none
	Pos      Pos
	TypePos  Pos
}

func readModule(it docItem) {
	it.declare()
	m := Module{Name: it.name, Pos: it.pos}
	it.fields(
		field{"type", func(v value) { m.Type, _ = v.nonEmpty(); m.TypePos = v.pos }},
		field{"settings", func(v value) { m.Settings = v.jsonSettings() }},
	)
	if _, ok := it.child("type"); !ok {
		it.missing("type").fail("is missing", "a module names what it is")
	}
	it.doc.config.Modules = append(it.doc.config.Modules, m)
}

// jsonSettings gives a mapping as JSON, its variables substituted.
func (v value) jsonSettings() json.RawMessage {
	if v.node.Kind != yaml.MappingNode {
		v.failType("a mapping of settings", "")
		return nil
	}
	settings, err := json.Marshal(v.jsonValue())
	if err != nil {
		v.fail("cannot be written as JSON: "+err.Error(), "")
		return nil
	}
	return settings
}

// jsonValue gives a node as what encoding/json takes.
func (v value) jsonValue() any {
	switch v.node.Kind {
	case yaml.MappingNode:
		fields := map[string]any{}
		for key, val := range v.pairs() {
			fields[key.node.Value] = val.jsonValue()
		}
		return fields
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range v.items() {
			list = append(list, item.jsonValue())
		}
		return list
	}
	return v.jsonScalar()
}

// jsonScalar gives text with its variables substituted, numbers and truth values
// as they are, null as nil.
func (v value) jsonScalar() any {
	switch v.node.Tag {
	case "!!int", "!!float", "!!bool", "!!null":
		var plain any
		if err := v.node.Decode(&plain); err != nil {
			v.fail("cannot be read: "+err.Error(), "")
		}
		return plain
	}
	s, _ := v.text()
	return s
}
