package config

import (
	"cmp"
	"path/filepath"
	"slices"
)

// Model is a language model, or what stands in for one.
type Model struct {
	Name   string
	Type   string
	File   string // of a script: the path among Config.Files
	Source []byte // of a script: what File holds
	Pos    Pos
}

// modelType is a type of model. One without read is in the contract and comes
// with a later version.
type modelType struct {
	name string
	read func(item, *Model)
}

// modelTypes is the one place that lists what a model can be.
func modelTypes() []modelType {
	return []modelType{
		{"script", readScript},

		{name: "openai"},
		{name: "anthropic"},
		{name: "gemini"},
		{name: "replay"},
		{name: "human"},
	}
}

func readModel(it item) {
	it.declare()
	all, now := typeNames()
	at, ok := it.child("type")
	if !ok {
		it.at("type").fail("is missing", listing("this version has ", now))
		return
	}
	name, ok := at.filled()
	if !ok {
		return
	}
	i := slices.Index(all, name)
	switch {
	case i < 0:
		at.fail("model type "+quote(name)+" is unknown", cmp.Or(Suggest(name, all), listing("this version has ", now)))
	case modelTypes()[i].read == nil:
		at.fail("model type "+name+" is not available in this version", listing("it has ", now))
	default:
		m := Model{Name: it.name, Type: name, Pos: it.pos}
		modelTypes()[i].read(it, &m)
		it.doc.config.Models = append(it.doc.config.Models, m)
	}
}

// typeNames gives the names of all types, and of those that can be read.
func typeNames() (all, now []string) {
	for _, t := range modelTypes() {
		all = append(all, t.name)
		if t.read != nil {
			now = append(now, t.name)
		}
	}
	return all, now
}

func readScript(it item, m *Model) {
	it.fields(
		field{"type", func(value) {}},
		field{"file", func(v value) { m.File, m.Source = v.file() }},
		later("maxConcurrency"),
		later("temperature"),
		later("contextWindow"),
		later("prices"),
	)
	if _, ok := it.child("file"); !ok {
		it.at("file").fail("is missing", "a model of type script names its JavaScript file")
	}
}

// file reads the file that v names, relative to the document.
func (v value) file() (path string, data []byte) {
	name, ok := v.filled()
	if !ok {
		return "", nil
	}
	path = filepath.Clean(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(v.doc.src.path), path)
	}
	data, err := v.doc.include(path)
	if err != nil {
		v.fail(quote(path)+": "+reason(err), "a file is named relative to its document")
		return path, nil
	}
	return path, data
}
