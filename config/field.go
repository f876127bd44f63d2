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

// later is a field that a later version reads. It is refused, never ignored.
func later(name string) field { return field{name: name} }

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
	return cmp.Or(foreign(name), Suggest(name, all), listing("known are ", now))
}

// text reads a field that holds any text.
func text(to *string) func(value) {
	return func(v value) {
		if s, ok := v.text(); ok {
			*to = s
		}
	}
}

// refer reads a field that names a document of a kind.
func refer(kind string, to *string) func(value) {
	return func(v value) {
		name, ok := v.nonEmpty()
		if !ok {
			return
		}
		*to = name
		v.doc.refs = append(v.doc.refs, reference{docKey{kind, name}, v})
	}
}
