package config

import (
	"cmp"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"
)

// document is one YAML document while it is read.
type document struct {
	*reader
	src        *source
	expansions map[*yaml.Node]expansion // scalars with variables, expanded once: an alias costs nothing
	digests    map[*yaml.Node]string    // digests of long scalars

	unexpanded bool // prints are of the document as it is written
}

// checkStructure checks what concerns the document as YAML, whatever its kind: aliases
// that can be followed, no key twice in a mapping.
func (d *document) checkStructure(root *yaml.Node) bool {
	ok := true
	a := aliases{sizes: make(map[*yaml.Node]int), fail: func(alias *yaml.Node, message string) {
		ok = false
		d.value(alias, "").fail(message, "")
	}}
	a.size(root)
	if ok {
		d.checkUniqueKeys(root, "")
	}
	return ok
}

// checkUniqueKeys reports keys that a mapping has twice, at any depth.
func (d *document) checkUniqueKeys(n *yaml.Node, path string) {
	if n.Kind != yaml.MappingNode {
		for i, child := range n.Content {
			d.checkUniqueKeys(child, fmt.Sprintf("%s[%d]", path, i))
		}
		return
	}
	first := make(map[string]*yaml.Node)
	for pair := range slices.Chunk(n.Content, 2) {
		key := d.value(pair[0], "").node
		name := join(path, key.Value)
		d.checkUniqueKeys(pair[1], name)
		if key.Kind != yaml.ScalarNode {
			continue
		}
		if earlier, twice := first[key.Value]; twice {
			d.value(pair[0], name).fail(fmt.Sprintf("stands twice; the first is at line %d", earlier.Line), "")
			continue
		}
		first[key.Value] = pair[0]
	}
}

// read finds the document's kind and lets it read the rest.
func (d *document) read(root value) {
	if root.node.Kind != yaml.MappingNode || !hasTag(root, "!!map") {
		root.missing("kind").fail("is missing: a document must be a mapping with kind and name, not "+root.describe(), "")
		return
	}
	at, ok := root.child("kind")
	if !ok {
		d.readWithoutKind(root)
		return
	}
	name, ok := at.nonEmpty()
	if !ok {
		return
	}
	if k, ok := d.kind(at, name); ok {
		k.read(d.item(k, root))
	}
}

// kind gives the kind of a name, if it can be read.
func (d *document) kind(at value, name string) (kind, bool) {
	k, known := d.kinds[name]
	switch {
	case known && k.read != nil:
		return k, true
	case known:
		_, now := kindNames()
		at.fail("kind "+name+" is not available in this version", cmp.Or(k.hint, listHint("it reads ", now)))
	default:
		all, now := kindNames()
		at.fail("kind "+quote(name)+" is unknown", cmp.Or(Suggest(name, all), listHint("this version reads ", now)))
	}
	return kind{}, false
}

// docItem is a document of a known kind, or an entry of Toolbox's v1 form.
type docItem struct {
	value
	kind    string
	name    string // "" when it is missing or cannot be read, which is reported
	nameAt  value
	v1Entry bool // of the v1 form: its name is the key above it, its kind the section, its type may be called kind
}

// item reads the document's name. When that fails the rest is read all the
// same, for its own errors. Only a group may have none.
func (d *document) item(k kind, root value) docItem {
	it := docItem{value: root, kind: cmp.Or(k.current, k.name)}
	var ok bool
	if it.nameAt, ok = root.child("name"); !ok {
		it.nameAt = root.missing("name")
		if k.name != "group" {
			it.nameAt.fail("is missing", "every document has a name")
		}
		return it
	}
	it.readName()
	return it
}

// readName reads the name at nameAt.
func (it *docItem) readName() {
	var ok bool
	if it.name, ok = it.nameAt.nonEmpty(); !ok {
		return
	}
	if problem := nameProblem(it.name); problem != "" {
		it.nameAt.fail(problem, "")
	}
}

// declare takes the name and refuses it when it is taken.
func (it docItem) declare() {
	key := docKey{it.kind, it.name}
	if it.name == "" {
		return
	}
	if first, taken := it.doc.names[key]; taken {
		it.nameAt.fail(fmt.Sprintf("%s %s is declared twice; the first is at %s", it.kind, quote(it.name), first), "")
		return
	}
	it.doc.names[key] = it.nameAt.pos
}

// fields reads the document's fields but kind and name.
func (it docItem) fields(known ...field) {
	done := func(value) {}
	if it.v1Entry {
		it.value.fields(append([]field{{"kind", done}}, known...))
		return
	}
	it.value.fields(append([]field{{"kind", done}, {"name", done}}, known...))
}
