package config

import (
	"encoding/json"

	"go.yaml.in/yaml/v4"
)

// Module is a document of kind module: an instance of a module type that the
// program was built with.
//
//	kind: module
//	name: browser
//	type: chrome
//	settings: {maxTabs: 4}
type Module struct {
	Name     string
	Type     string          // the caller checks that the program has this type
	Settings json.RawMessage // a JSON object for the module; nil if there are none
	Pos      Pos
	TypePos  Pos
}

// readModule reads a document of kind module. It does not check the settings: only
// the module knows them.
func readModule(it docItem) {
	it.declare()
	m := Module{Name: it.name, Pos: it.pos}
	it.fields(
		field{"type", func(v value) { m.Type, _ = v.nonEmpty(); m.TypePos = v.pos }},
		field{"settings", func(v value) { m.Settings = v.jsonSettings() }},
	)
	if _, ok := it.child("type"); !ok {
		it.missing("type").fail("is missing", "name the type of the module")
	}
	it.doc.config.Modules = append(it.doc.config.Modules, m)
}

// jsonSettings returns a mapping as JSON, with variables substituted.
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

// jsonValue returns a node as a value for encoding/json.
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

// jsonScalar returns a scalar as a string with variables substituted, a number, a
// bool or nil.
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
