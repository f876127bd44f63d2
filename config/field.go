package config

import (
	"cmp"
	"slices"
)

// field is a field of a mapping. One without read is in the contract and comes
// with a later version.
type field struct {
	name string
	read func(value)
}

// unavailable is a field that a later version reads. It is refused, never ignored.
func unavailable(name string) field { return field{name: name} }

// fields reads a mapping whose fields are all known.
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

// textField reads a field that holds any text.
func textField(to *string) func(value) {
	return func(v value) {
		if s, ok := v.text(); ok {
			*to = s
		}
	}
}

// referenceField reads a field that names a document of a kind.
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
