package config

import (
	"cmp"
	"slices"
)

// field is a field of a mapping: its name and the function that reads its value.
// A field without read is documented but not available in this version.
type field struct {
	name string
	read func(value)
}

// unavailable returns a field that a later version will read. It is rejected, not
// ignored.
func unavailable(name string) field { return field{name: name} }

// fields reads a mapping and rejects fields that are not among known.
func (v value) fields(known []field) {
	for key, val := range v.pairs() {
		i := slices.IndexFunc(known, func(f field) bool { return f.name == key.node.Value })
		switch {
		case i < 0:
			key.fail("unknown field", unknownHint(key.node.Value, known))
		case known[i].read == nil:
			key.fail("not available in this version", "")
		default:
			known[i].read(val)
		}
	}
}

// unknownHint returns the hint for a field name that is not among known.
func unknownHint(name string, known []field) string {
	var all, now []string
	for _, f := range known {
		all = append(all, f.name)
		if f.read != nil {
			now = append(now, f.name)
		}
	}
	return cmp.Or(toolboxFieldHint(name), Suggest(name, all), listHint("known are ", now))
}

// textField reads any text.
func textField(to *string) func(value) {
	return func(v value) {
		if s, ok := v.text(); ok {
			*to = s
		}
	}
}

// referenceField reads the name of a document of a kind. The reader checks later
// that there is such a document.
func referenceField(kind string, to *string) func(value) {
	return func(v value) {
		name, ok := v.nonEmpty()
		if !ok {
			return
		}
		*to = name
		v.doc.refs = append(v.doc.refs, reference{docKey{kind, name}, v})
	}
}
