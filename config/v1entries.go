package config

import (
	"cmp"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"
)

// readWithoutKind reads a document in Toolbox's v1 form: a mapping of sections,
// each a mapping of names to entries.
func (d *document) readWithoutKind(root value) {
	if !isSections(root) {
		_, now := kindNames()
		root.missing("kind").fail("is missing", cmp.Or(root.suggestSection(), listHint("this version reads ", now)))
		return
	}
	known := sections()
	for key, val := range root.pairs() {
		name, ok := known[key.node.Value]
		if !ok {
			key.fail("unknown field", cmp.Or(Suggest(key.node.Value, slices.Collect(maps.Keys(known))), listHint("Toolbox's v1 form has ", slices.Collect(maps.Keys(known)))))
			continue
		}
		if isEmptySection(val) {
			continue
		}
		if k, ok := d.kind(key, name); ok {
			d.section(k, val)
		}
	}
}

// isEmptySection reports whether a section has no entries. Such a section is
// accepted even if its kind is not supported.
func isEmptySection(v value) bool {
	return v.isNull() || v.node.Kind == yaml.MappingNode && len(v.node.Content) == 0 && hasTag(v, "!!map")
}

// suggestSection returns a hint if a key is a section without its final s and has
// entries below it, else "".
func (v value) suggestSection() string {
	for key, val := range v.pairs() {
		name := key.node.Value + "s"
		if _, near := sections()[name]; near && val.node.Kind == yaml.MappingNode {
			return "in Toolbox's v1 form it is " + quote(name)
		}
	}
	return ""
}

// isSections reports whether a mapping has a section of the v1 form.
func isSections(root value) bool {
	known := sections()
	for key := range root.pairs() {
		if _, ok := known[key.node.Value]; ok {
			return true
		}
	}
	return false
}

// section reads the entries of a section as documents of kind k.
func (d *document) section(k kind, entries value) {
	if entries.node.Kind != yaml.MappingNode || !hasTag(entries, "!!map") {
		entries.failType("a mapping of names", "in Toolbox's v1 form, as "+k.name+"s: {NAME: {…}}")
		return
	}
	for key, val := range entries.pairs() {
		it := docItem{value: val, kind: k.name, nameAt: key, v1Entry: true}
		it.pos = key.pos
		if key.node.Tag != "!!str" { // the key 5 is the name "5"
			key.node = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key.node.Value}
			it.nameAt = key
		}
		it.readName()
		if val.node.Kind != yaml.MappingNode && k.name != "toolset" {
			val.failType("a mapping", "")
			continue
		}
		k.read(it)
	}
}
