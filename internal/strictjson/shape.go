package strictjson

import (
	"unicode"
	"unicode/utf8"
)

// KeySet holds the names the objects of a document know, level by level. A key
// that equals a known name but for its case is refused: encoding/json would
// put its value into the field of that name, behind the back of whoever
// looked for the name itself.
//
// The zero Shape and nil know no name and have no rules. Build a Shape with
// Add and the fields, then only read it; it may contain itself.
type KeySet struct {
	Items *KeySet // of the elements of an array
	Other *KeySet // of the values of names that are not known
	Rules *Rules  // of the value itself, for Read; nil lets everything through

	names  index
	values []*KeySet         // of the known names, by place
	folded map[string]string // a known name by its folded form
}

// Add makes name known; value, which may be nil, is the shape of its value.
// Adding a name again replaces the shape of its value.
func (s *KeySet) Add(name string, value *KeySet) {
	if at := s.names.find([]byte(name)); at >= 0 {
		s.values[at] = value
		return
	}
	if s.folded == nil {
		s.folded = map[string]string{}
	}
	s.names.add(name)
	s.values = append(s.values, value)
	s.folded[string(appendFolded(nil, []byte(name)))] = name
}

// Places gives the set of places of known names, as Objects.Required has it.
// It is not ok if a name is not known, or is beyond the first 64.
func (s *KeySet) Places(names []string) (set uint64, ok bool) {
	for _, name := range names {
		at := s.find([]byte(name))
		if at < 0 || at >= 64 {
			return 0, false
		}
		set |= 1 << at
	}
	return set, true
}

// find gives the place of key among the known names, -1 if it is none.
func (s *KeySet) find(key []byte) int {
	if s == nil {
		return -1
	}
	return s.names.find(key)
}

// caseVariant gives the known name that key, found at, equals but for its case.
func (s *KeySet) caseVariant(key []byte, at int) string {
	if at >= 0 || s == nil || len(s.values) == 0 {
		return ""
	}
	var room [64]byte
	return s.folded[string(appendFolded(room[:0], key))]
}

// child gives the shape of the value of the key found at.
func (s *KeySet) child(at int) *KeySet {
	switch {
	case s == nil:
		return nil
	case at < 0:
		return s.Other
	}
	return s.values[at]
}

func (s *KeySet) element() *KeySet {
	if s == nil {
		return nil
	}
	return s.Items
}

// appendFolded appends the form of name that all its case variants share, as
// encoding/json compares the names of fields.
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

// foldRune gives the least rune of r's case orbit: 'K' for the Kelvin sign.
func foldRune(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}
