package toolboxfile

import (
	"cmp"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/internal/yamldoc/docset"
)

// readWithoutKind reads a document in Toolbox's v1 form: a mapping of sections,
// each a mapping of names to entries.
func (r *Reader) readWithoutKind(root yamldoc.Value) {
	if !isSections(root) {
		root.MissingField("kind").AddError("is missing", cmp.Or(suggestSection(root), r.set.KindsHint()))
		return
	}
	known := sections()
	for key, val := range root.MapPairs() {
		name, ok := known[key.Node.Value]
		if !ok {
			key.AddError("unknown field", cmp.Or(textutil.SuggestName(key.Node.Value, slices.Collect(maps.Keys(known))), yamldoc.ListHint("Toolbox's v1 form has ", slices.Collect(maps.Keys(known)))))
			continue
		}
		if isEmptySection(val) {
			continue
		}
		if k, ok := r.set.FindKind(key, name); ok {
			r.section = key.Node.Value
			r.readSection(k, val)
		}
	}
}

// isEmptySection reports whether a section has no entries. Such a section is
// accepted even if its kind is not supported.
func isEmptySection(v yamldoc.Value) bool {
	return v.IsNull() || v.IsMapping() && len(v.Node.Content) == 0
}

// suggestSection returns a hint if a key is a section without its final s and has
// entries below it, else "".
func suggestSection(root yamldoc.Value) string {
	for key, val := range root.MapPairs() {
		name := key.Node.Value + "s"
		if _, near := sections()[name]; near && val.Node.Kind == yaml.MappingNode {
			return "in Toolbox's v1 form it is " + yamldoc.QuoteText(name)
		}
	}
	return ""
}

// isSections reports whether a mapping has a section of the v1 form.
func isSections(root yamldoc.Value) bool {
	known := sections()
	for key := range root.MapPairs() {
		if _, ok := known[key.Node.Value]; ok {
			return true
		}
	}
	return false
}

// readSection reads the entries of a section as documents of kind k.
func (r *Reader) readSection(k docset.Kind, entries yamldoc.Value) {
	if !entries.IsMapping() {
		entries.AddTypeError("a mapping of names", "in Toolbox's v1 form, as "+k.Name+"s: {NAME: {…}}")
		return
	}
	for key, val := range entries.MapPairs() {
		it := r.set.NewEntry(k, key, val)
		if val.Node.Kind != yaml.MappingNode && k.Name != "toolset" {
			val.AddTypeError("a mapping", "")
			continue
		}
		k.Read(it)
	}
}

// ReadEntry reads a mapping without the field kind as the document of a kind with a name: as an
// entry of a section.
func (r *Reader) ReadEntry(kind string, name, entry yamldoc.Value) {
	for _, section := range slices.Sorted(maps.Keys(sections())) { // "tool" is before "tools"
		if sections()[section] != kind {
			continue
		}
		r.section = section
		if k, ok := r.set.FindKind(name, kind); ok {
			k.Read(r.set.NewEntry(k, name, entry))
		}
		return
	}
	name.AddError("kind "+kind+" has no entries", "")
}
