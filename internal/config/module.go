package config

import (
	"encoding/json"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
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
	Type     string             // the caller checks that the program has this type
	Settings json.RawMessage    // a JSON object for the module; nil if there are none
	Labels   toolboxfile.Labels `json:",omitzero"` // of its tools that have none of their own
	// ToolsDigest is a digest of what other documents say about its tools. The caller sets it
	// to detect a change.
	ToolsDigest string `json:",omitempty"`
	Pos         yamldoc.Pos
	TypePos     yamldoc.Pos
}

// readModule reads a document of kind module. It does not check the settings: only
// the module knows them.
func readModule(it item) {
	it.DeclareItem()
	m := Module{Name: it.Name, Pos: it.Pos}
	it.ReadFields(yamldoc.MergeFields(toolboxfile.LabelFields(it.Item, &m.Labels), yamldoc.Fields{
		"type":     func(v yamldoc.Value) { m.Type, _ = v.ReadNonEmpty(); m.TypePos = v.Pos },
		"settings": func(v yamldoc.Value) { m.Settings = v.ReadSettings() },
	}))
	if _, ok := it.FindField("type"); !ok {
		it.MissingField("type").AddError("is missing", "name the type of the module")
	}
	it.r.config.Modules = append(it.r.config.Modules, m)
}
