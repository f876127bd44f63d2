package yamldoc

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"
)

// Document is the state of reading one YAML document.
type Document struct {
	reader     *Reader
	src        *FileText
	expansions map[*yaml.Node]expansion // of scalars with variables, cached because aliases share them
	digests    map[*yaml.Node]string    // of long scalars, cached for the same reason

	unexpanded bool // fingerprints are of the text as written, without substituting variables
}

// NewDocument returns the state of reading a document of src.
func (r *Reader) NewDocument(src *FileText) *Document {
	return &Document{reader: r, src: src, expansions: make(map[*yaml.Node]expansion), digests: make(map[*yaml.Node]string)}
}

// ValueOf returns the value of a node at a path. It follows aliases.
func (d *Document) ValueOf(n *yaml.Node, field string) Value {
	v := Value{doc: d, Node: n, Path: field, Pos: Pos{d.src.Path, n.Line, n.Column}}
	for v.Node.Kind == yaml.AliasNode {
		v.Node = v.Node.Alias
	}
	return v
}

// CheckStructure checks what applies to documents of every kind: the aliases are
// bounded and not recursive, and no mapping has duplicate keys.
func (d *Document) CheckStructure(root *yaml.Node) bool {
	ok := true
	a := aliasCounter{sizes: make(map[*yaml.Node]int), fail: func(alias *yaml.Node, message string) {
		ok = false
		d.ValueOf(alias, "").AddError(message, "")
	}}
	a.size(root)
	if ok {
		d.checkUniqueKeys(root, "")
	}
	return ok
}

// checkUniqueKeys reports the duplicate keys of all mappings at and below n; path
// is the path of n.
func (d *Document) checkUniqueKeys(n *yaml.Node, path string) {
	if n.Kind != yaml.MappingNode {
		for i, child := range n.Content {
			d.checkUniqueKeys(child, fmt.Sprintf("%s[%d]", path, i))
		}
		return
	}
	first := make(map[string]*yaml.Node)
	for pair := range slices.Chunk(n.Content, 2) {
		key := d.ValueOf(pair[0], "").Node
		name := join(path, key.Value)
		d.checkUniqueKeys(pair[1], name)
		if key.Kind != yaml.ScalarNode {
			continue
		}
		if earlier, ok := first[key.Value]; ok {
			d.ValueOf(pair[0], name).AddError(fmt.Sprintf("is a duplicate; the first is at line %d", earlier.Line), "")
			continue
		}
		first[key.Value] = pair[0]
	}
}

// KeepVariables makes AppendContent encode texts as written, without substituting
// variables.
func (d *Document) KeepVariables() { d.unexpanded = true }
