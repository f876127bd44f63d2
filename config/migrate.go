package config

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Migrate gives a configuration in the current form: documents with kind, name
// and type, where Toolbox's v1 form has nested maps and its older v2 form
// plural kinds. Comments and variables stay as they are written, and so does
// whatever is in the current form; if all of it is, Migrate gives data itself.
//
// Only what the schema names is renamed, never what stands in a default. What
// is no configuration, or holds what cannot be read, is refused with Errors,
// whose File is empty.
func Migrate(data []byte) ([]byte, error) {
	text, err := renamed(data)
	if err != nil {
		return nil, err
	}
	out, err := split(text)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(out, data) {
		return data, nil
	}
	return out, nil
}

// migration reads documents as they are written.
type migration struct {
	*document
	roots []value
}

func newMigration(data []byte) (*migration, error) {
	r := newReader(nil, nil)
	m := &migration{document: newDocument(r, newSource(File{Data: data}))}
	m.raw = true
	for root, fault := range m.src.documents() {
		if fault != nil {
			return nil, Errors{fault}
		}
		if m.check(root) {
			m.roots = append(m.roots, m.value(root, ""))
		}
	}
	return m, Join(nil, m.errs...)
}

// older gives the kind that a kind's name is an older spelling of.
func (m *migration) older(name string) (string, bool) {
	k, ok := m.kinds[name]
	return k.as, ok && k.as != "" && name != "group"
}

// edit replaces a part of the text.
type edit struct {
	start, end int
	text       string
}

func apply(text string, edits []edit) []byte {
	slices.SortFunc(edits, func(a, b edit) int { return a.start - b.start })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, text[at:e.start]...), e.text...)
		at = e.end
	}
	return append(out, text[at:]...)
}

// renamed gives data with plural kinds, older field names and, in the v1 form,
// types renamed where they stand.
func renamed(data []byte) ([]byte, error) {
	m, err := newMigration(data)
	if err != nil {
		return nil, err
	}
	words := map[*yaml.Node]string{} // an alias leads to some of them twice
	for _, root := range m.roots {
		for it := range m.items(root) {
			m.renames(words, it)
		}
	}
	var edits []edit
	for node, word := range words {
		e, ok := m.replace(node, word)
		if !ok {
			m.value(node, "").fail("cannot be renamed to "+word+" where it stands", "write it without an anchor, a tag or escapes")
		}
		edits = append(edits, e)
	}
	if err := Join(nil, m.errs...); err != nil || len(edits) == 0 {
		return data, err
	}
	out := apply(m.src.text, edits)
	if !m.keepsMeaning(out, words) {
		return nil, Errors{{Line: 1, Column: 1, Message: errChanged.Error(), Hint: "write documents with kind, name and type by hand"}}
	}
	return out, nil
}

// keepsMeaning says whether a text differs in the words alone that were to be
// replaced.
func (m *migration) keepsMeaning(out []byte, words map[*yaml.Node]string) bool {
	other, err := newMigration(out)
	if err != nil || len(other.roots) != len(m.roots) {
		return false
	}
	for i, root := range m.roots {
		if !renamedTo(root.node, other.roots[i].node, words) {
			return false
		}
	}
	return true
}

// renamedTo says whether two nodes are the same but for the words that replace
// some of the first.
func renamedTo(a, b *yaml.Node, words map[*yaml.Node]string) bool {
	want := a.Value
	if word, ok := words[a]; ok {
		want = word
	}
	if a.Kind != b.Kind || a.Tag != b.Tag || a.Anchor != b.Anchor || b.Value != want || len(a.Content) != len(b.Content) {
		return false
	}
	for i, child := range a.Content {
		if !renamedTo(child, b.Content[i], words) {
			return false
		}
	}
	return true
}

// items gives the documents under a root: itself, or the entries of the v1
// form. What is neither is reported.
func (m *migration) items(root value) func(func(docItem) bool) {
	return func(yield func(docItem) bool) {
		if root.node.Kind != yaml.MappingNode {
			root.fail("a document must be a mapping with kind and name, not "+root.describe(), "")
			return
		}
		if at, ok := root.child("kind"); ok {
			name := at.node.Value
			if as, ok := m.older(name); ok {
				name = as
			}
			it := docItem{value: root, kind: name}
			if at, ok := root.child("name"); ok {
				it.name = at.node.Value
			}
			yield(it)
			return
		}
		if !isSections(root) {
			root.at("kind").fail("is missing", "a document has kind and name, or the sections of Toolbox's v1 form")
			return
		}
		m.entries(root, yield)
	}
}

// entries gives the entries of the v1 form.
func (m *migration) entries(root value, yield func(docItem) bool) {
	known := sections()
	for key, val := range root.pairs() {
		kind, ok := known[key.node.Value]
		switch {
		case !ok:
			key.fail("unknown field", "a document has kind and name, or the sections of Toolbox's v1 form")
		case val.isNull():
		case val.node.Kind != yaml.MappingNode:
			val.failType("a mapping of names", "")
		default:
			for name, entry := range val.pairs() {
				if !yield(docItem{value: entry, kind: kind, name: name.node.Value, nameAt: name, entry: true}) {
					return
				}
			}
		}
	}
}

// renames adds the names to replace in a document, with what replaces them.
func (m *migration) renames(all map[*yaml.Node]string, it docItem) {
	if it.node.Kind != yaml.MappingNode {
		return
	}
	if at, ok := it.child("kind"); ok && !it.entry {
		if as, ok := m.older(at.node.Value); ok {
			all[at.node] = as
		}
	}
	if it.entry && it.kind != "toolset" {
		m.rename(all, it.value, "kind", "type")
	}
	if it.kind != "tool" {
		return
	}
	for _, list := range []string{"parameters", "templateParameters", "pathParams", "queryParams", "bodyParams", "headerParams"} {
		if at, ok := it.child(list); ok && at.node.Kind == yaml.SequenceNode {
			for _, entry := range at.items() {
				m.rename(all, entry, "authSources", "authServices")
			}
		}
	}
}

// rename adds the key of a mapping.
func (m *migration) rename(all map[*yaml.Node]string, in value, from, to string) {
	if in.node.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i < len(in.node.Content); i += 2 {
		if key := in.node.Content[i]; key.Kind == yaml.ScalarNode && key.Value == from {
			all[key] = to
		}
	}
}

// replace gives the edit that writes another word in the place of a scalar, if
// that stands there as it reads. A key keeps its quotes: a value may follow its
// colon at once, as in JSON.
func (m *migration) replace(n *yaml.Node, word string) (edit, bool) {
	start := m.offset(n)
	text := m.src.text[start:]
	raw := rawWord(text, n.Value)
	if raw > len(n.Value) && strings.HasPrefix(strings.TrimLeft(text[raw:], " \t"), ":") {
		word = text[:1] + word + text[:1]
	}
	return edit{start, start + raw, word}, raw > 0
}

// offset is where a node begins.
func (m *migration) offset(n *yaml.Node) int {
	start := m.src.starts()[n.Line-1]
	return start + byteOffset(m.src.text[start:], n.Column-1)
}

// rawWord gives the bytes that a scalar takes at the beginning of a text, plain
// or in quotes; 0 if it is written otherwise.
func rawWord(text, value string) int {
	if strings.HasPrefix(text, value) {
		return len(value)
	}
	for _, quote := range []string{`"`, `'`} {
		if strings.HasPrefix(text, quote+value+quote) {
			return len(value) + 2
		}
	}
	return 0
}

// errChanged is a migration that would change what the configuration says.
var errChanged = errors.New("the file cannot be rewritten without changing what it says")

// decodedValues lists what the documents say, whichever form they are in.
func decodedValues(data []byte) ([]string, error) {
	m, err := newMigration(data)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, root := range m.roots {
		for it := range m.items(root) {
			switch {
			case it.node.Kind == yaml.SequenceNode:
				it.value = listed(it.value)
			case it.kind == "toolset" && it.isNull():
				it.node = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: it.node.Line, Column: it.node.Column}
			}
			if it.node.Kind == yaml.MappingNode {
				list = append(list, it.fingerprint())
			}
		}
	}
	return list, Join(nil, m.errs...)
}

// listed gives the bare list of a toolset as its field.
func listed(v value) value {
	key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "tools", Line: v.node.Line, Column: v.node.Column}
	v.node = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{key, v.node}, Line: v.node.Line, Column: v.node.Column}
	return v
}
