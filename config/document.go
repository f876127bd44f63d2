package config

import (
	"cmp"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"
)

// document is the state of reading one YAML document.
type document struct {
	*reader
	src        *source
	expansions map[*yaml.Node]expansion // of scalars with variables, cached because aliases share them
	digests    map[*yaml.Node]string    // of long scalars, cached for the same reason

	unexpanded bool // fingerprints are of the text as written, without substituting variables
}

// checkStructure checks what applies to documents of every kind: the aliases are
// bounded and not recursive, and no mapping has duplicate keys.
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

// checkUniqueKeys reports the duplicate keys of all mappings at and below n; path
// is the path of n.
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
		if earlier, ok := first[key.Value]; ok {
			d.value(pair[0], name).fail(fmt.Sprintf("is a duplicate; the first is at line %d", earlier.Line), "")
			continue
		}
		first[key.Value] = pair[0]
	}
}

// read finds the kind of the document and calls its read function.
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

// kind returns the kind with a name. It reports a kind that is unknown or not
// available; at is the position of the name.
func (d *document) kind(at value, name string) (kind, bool) {
	k, known := d.kinds[name]
	switch {
	case known && k.read != nil:
		return k, true
	case known:
		_, now := kindNames()
		at.fail("kind "+name+" is not available in this version", cmp.Or(k.hint, listHint("this version reads ", now)))
	default:
		all, now := kindNames()
		at.fail("kind "+quote(name)+" is unknown", cmp.Or(Suggest(name, all), listHint("this version reads ", now)))
	}
	return kind{}, false
}

// docItem is a document of a known kind, or an entry of Toolbox's v1 form. The read
// functions of the kinds get one and do not depend on the form.
type docItem struct {
	value
	kind    string
	name    string // "" if it is missing or invalid, which has been reported
	nameAt  value
	v1Entry bool // an entry of the v1 form: the key above is its name, the section its kind, and its type may be called kind
}

// item returns the docItem of a document and reads its name. An invalid name is
// reported, and the rest of the document is read to report its errors too. Only
// a group may have no name.
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

// readName reads the name at nameAt and checks it.
func (it *docItem) readName() {
	var ok bool
	if it.name, ok = it.nameAt.nonEmpty(); !ok {
		return
	}
	if problem := nameProblem(it.name); problem != "" {
		it.nameAt.fail(problem, "")
	}
}

// declare registers the name and rejects one that another document of the kind
// has.
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

// fields reads the fields of the document other than kind and name.
func (it docItem) fields(known ...field) {
	done := func(value) {}
	if it.v1Entry {
		it.value.fields(append([]field{{"kind", done}}, known...))
		return
	}
	it.value.fields(append([]field{{"kind", done}, {"name", done}}, known...))
}
