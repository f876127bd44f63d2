package strictjson

import (
	"unicode"
	"unicode/utf8"
)

// Shape holds the names the objects of a document know, level by level. A key
// that equals a known name but for its case is refused: encoding/json would
// put its value into the field of that name, behind the back of whoever
// looked for the name itself.
//
// The zero Shape and nil know no name. Build a Shape with Add and the fields,
// then only read it; it may contain itself.
type Shape struct {
	Items *Shape // of the elements of an array
	Other *Shape // of the values of names that are not known

	names  []known
	places map[string]int    // of names
	folded map[string]string // a known name by its folded form
}

// known is a known name and the shape of its value.
type known struct {
	name  string
	shape *Shape
}

// Add makes name known; value, which may be nil, is the shape of its value.
// Adding a name again replaces the shape of its value.
func (s *Shape) Add(name string, value *Shape) {
	if at, ok := s.places[name]; ok {
		s.names[at].shape = value
		return
	}
	if s.places == nil {
		s.places, s.folded = map[string]int{}, map[string]string{}
	}
	s.places[name] = len(s.names)
	s.folded[string(appendFolded(nil, []byte(name)))] = name
	s.names = append(s.names, known{name, value})
}

// find gives the place of key among the known names, -1 if it is none.
func (s *Shape) find(key []byte) int {
	if s == nil || len(key) == 0 || len(s.names) > fewNames {
		return s.lookup(key)
	}
	for at := range s.names {
		name := s.names[at].name
		if len(name) == len(key) && name[0] == key[0] && name == string(key) {
			return at
		}
	}
	return -1
}

// fewNames is up to how many names comparing is quicker than hashing.
const fewNames = 16

func (s *Shape) lookup(key []byte) int {
	if s == nil {
		return -1
	}
	if at, ok := s.places[string(key)]; ok {
		return at
	}
	return -1
}

// almost gives the known name that key, found at, equals but for its case.
func (s *Shape) almost(key []byte, at int) string {
	if at >= 0 || s == nil || len(s.names) == 0 {
		return ""
	}
	var room [64]byte
	return s.folded[string(appendFolded(room[:0], key))]
}

// child gives the shape of the value of the key found at.
func (s *Shape) child(at int) *Shape {
	switch {
	case s == nil:
		return nil
	case at < 0:
		return s.Other
	}
	return s.names[at].shape
}

func (s *Shape) element() *Shape {
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
		out = utf8.AppendRune(out, smallest(r))
		i += size
	}
	return out
}

// smallest gives the least rune of r's case orbit: 'K' for the Kelvin sign.
func smallest(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}
