package config

import (
	"fmt"
	"math"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/tool"
)

// readToolset reads a toolset. In the v1 form it may be a bare list of tools.
func readToolset(it docItem) {
	it.declare()
	it.checkShortName("toolset")
	t := Toolset{Name: it.name, Pos: it.pos}
	tools := memberList("tool", &t.Tools)
	switch {
	case it.v1Entry && it.isNull():
	case it.v1Entry && it.node.Kind == yaml.SequenceNode:
		tools(it.value)
	case it.v1Entry && it.node.Kind != yaml.MappingNode:
		it.failType("a list of tools", "for example [search, book]")
	default:
		it.fields(field{"description", textField(&t.Description)}, field{"tools", tools})
	}
	it.doc.config.Toolsets = append(it.doc.config.Toolsets, t)
}

// readGroup reads a group of Toolbox as a toolset. A group without a name describes
// the group of all tools.
func readGroup(it docItem) {
	t := Toolset{Name: it.name, Pos: it.pos}
	it.fields(
		field{"description", textField(&t.Description)},
		field{"ttlMs", func(v value) { v.integer(0, math.MaxInt64, "a whole number from 0") }},
		field{"cacheScope", oneOfField(new(string), "public", "private")},
		field{"tools", memberList("tool", &t.Tools)},
		field{"prompts", memberList("prompt", &t.Prompts)},
		field{"resources", unsupportedList(resourceHint)},
		field{"resourceTemplates", unsupportedList(resourceHint)},
	)
	if _, named := it.child("name"); named {
		it.declare()
		it.checkShortName("group")
	} else {
		it.declareDefaultGroup()
	}
	it.doc.config.Toolsets = append(it.doc.config.Toolsets, t)
}

// memberList reads the tools or prompts of a toolset. Like Toolbox it accepts a
// field without a value.
func memberList(kind string, to *[]string) func(value) {
	return func(v value) {
		if !v.isNull() {
			referenceList(kind, to)(v)
		}
	}
}

// declareDefaultGroup registers the group without a name. It rejects a second one,
// and members: all tools are in it.
func (it docItem) declareDefaultGroup() {
	key := docKey{kind: "group of all"}
	if first, ok := it.doc.names[key]; ok {
		it.missing("name").fail(fmt.Sprintf("is missing, as in the group at %s", first), "only one group without a name can describe the group of all tools; give this one a name")
		return
	}
	it.doc.names[key] = it.pos
	for _, name := range []string{"tools", "prompts", "resources", "resourceTemplates"} {
		if at, ok := it.child(name); ok {
			at.fail("is not allowed in a group without a name, which describes the group of all tools", "give the group a name, or leave its members out")
		}
	}
}

// checkShortName rejects a name that is not valid as a tool's name and in a URL.
func (it docItem) checkShortName(kind string) {
	if it.name == "" || tool.CheckName(it.name) == nil {
		return
	}
	it.nameAt.fail(quote(it.name)+" is not a valid name of a "+kind, "1 to 128 ASCII letters, digits, '_', '.' or '-'")
}

// referenceList reads a list of names of documents of a kind. It ignores
// duplicates.
func referenceList(kind string, to *[]string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.failType("a list of names", "write ["+clip(v.node.Value)+"]")
			return
		}
		seen := make(map[string]bool)
		for _, item := range v.items() {
			var name string
			if referenceField(kind, &name)(item); name != "" && !seen[name] {
				seen[name] = true
				*to = append(*to, name)
			}
		}
	}
}

// nameList reads a list of texts that are not empty and rejects duplicates. Errors
// call the entries what.
func nameList(to *[]string, what string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.failType("a list of "+what, "write ["+clip(v.node.Value)+"]")
			return
		}
		for _, item := range v.items() {
			name, ok := item.nonEmpty()
			switch {
			case !ok:
			case slices.Contains(*to, name):
				item.fail(quote(name)+" is listed twice", "")
			case len(*to) == maxArguments:
				v.fail(fmt.Sprintf("has more than %d entries", maxArguments), "")
				return
			default:
				*to = append(*to, name)
			}
		}
	}
}

// unsupportedList accepts an empty list and rejects anything else.
func unsupportedList(hint string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.SequenceNode || len(v.node.Content) > 0 {
			v.fail("not available in this version", hint)
		}
	}
}
