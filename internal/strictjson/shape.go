package strictjson

import (
	"unicode"
	"unicode/utf8"
)

// Shape has the property names that are known at one place of a document, and the Shapes of
// the values below. A key that differs from a known name in case only is rejected.
// encoding/json would assign its value to the field of that name, while other readers would
// not find it.
//
// The zero Shape and nil have no names and no rules. Build a Shape with Add and its fields
// before its first use and do not change it after that. It may contain itself.
type Shape struct {
	Items *Shape   // of the elements of an array
	Other *Shape   // of the values of unknown names
	Rules KeyRules // of the value itself, for Read; nil allows every value

	// FoldKeys rejects two unknown keys of an object that differ in case only.
	FoldKeys bool

	names  KeyIndex
	values []*Shape          // by the number of the name
	folded map[string]string // the known names by their folded form
}

// Add adds a known name. value is the Shape of its value and may be nil. Adding a name again
// replaces the Shape of its value.
func (s *Shape) Add(name string, value *Shape) {
	if at := s.names.Find([]byte(name)); at >= 0 {
		s.values[at] = value
		return
	}
	if s.folded == nil {
		s.folded = map[string]string{}
	}
	s.names.Add(name)
	s.values = append(s.values, value)
	s.folded[string(appendFolded(nil, []byte(name)))] = name
}

// Places returns a set of known names, in the form that Rules.FitsObject receives. It reports
// false if a name is unknown or not among the first 64 that were added.
func (s *Shape) Places(names []string) (set uint64, ok bool) {
	for _, name := range names {
		at := s.number([]byte(name))
		if at < 0 || at >= 64 {
			return 0, false
		}
		set |= 1 << at
	}
	return set, true
}

// number returns the number of key among the known names, -1 if it is unknown.
func (s *Shape) number(key []byte) int {
	if s == nil {
		return -1
	}
	return s.names.Find(key)
}

// caseVariant returns the known name that an unknown key differs from in case only, "" if there
// is none. at is the number of key.
func (s *Shape) caseVariant(key []byte, at int) string {
	if at >= 0 || s == nil || len(s.values) == 0 {
		return ""
	}
	var buffer [64]byte
	return s.folded[string(appendFolded(buffer[:0], key))]
}

// property returns the Shape of the value of the key with the number at.
func (s *Shape) property(at int) *Shape {
	switch {
	case s == nil:
		return nil
	case at < 0:
		return s.Other
	}
	return s.values[at]
}

// element returns the Shape of the elements of an array.
func (s *Shape) element() *Shape {
	if s == nil {
		return nil
	}
	return s.Items
}

// unique reports whether the elements of an array must differ.
func (s *Shape) unique() bool { return s != nil && s.Rules != nil && s.Rules.UniqueElements() }

// closed reports whether an object may have known names only.
func (s *Shape) closed() bool { return s != nil && s.Rules != nil && s.Rules.KnownNamesOnly() }

// foldsKeys reports whether unknown keys may not differ in case only.
func (s *Shape) foldsKeys() bool { return s != nil && s.FoldKeys }

// appendFolded appends the case-folded form of name, as encoding/json compares field names.
func appendFolded(out, name []byte) []byte {
	for i := 0; i < len(name); {
		b := name[i]
		if b < utf8.RuneSelf {
			if 'a' <= b && b <= 'z' {
				b -= 'a' - 'A'
			}
			out = append(out, b)
			i++
			continue
		}
		r, size := utf8.DecodeRune(name[i:])
		out = utf8.AppendRune(out, foldRune(r))
		i += size
	}
	return out
}

// foldRune returns the smallest rune that equals r in another case: 'K' for the Kelvin sign.
func foldRune(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}
