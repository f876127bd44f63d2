// Package strictjson owns the one strict reading of JSON from outside: what
// it accepts, every later reader understands in the same way.
//
// Check a document once, where it enters; afterwards gjson, encoding/json and
// a schema validator may read it without disagreeing. On top of RFC 8259 a
// document must be valid UTF-8 without lone surrogate escapes, repeat no key
// in one object, nest no deeper than MaxDepth, be no longer than MaxSize, and
// hold only numbers within MaxNumber and MaxExponent. A Shape adds the names
// a schema knows, so that no key is almost one of them, and Rules for values,
// which Read holds them against in the same walk.
//
// The package decodes nothing and knows no schema language: who has a schema
// makes Shapes and Rules of it.
package strictjson

import (
	"fmt"
	"unicode/utf8"
)

// The bounds of a document. Those on numbers keep readers with arbitrary
// precision from working for minutes on a few bytes ("1e999999").
const (
	MaxSize     = 8 << 20 // bytes of a document
	MaxDepth    = 64      // open arrays and objects
	MaxNumber   = 400     // bytes of one number
	MaxExponent = 400     // magnitude of a number's exponent; float64 ends at 308
)

// Error says where a document was refused, and why.
type Error struct {
	Offset int    // in bytes, of what is wrong
	Reason string // a sentence fragment: `duplicate key "path"`
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s at byte %d", e.Reason, e.Offset) }

// Check says whether data is one strict JSON document; s, which may be nil,
// says which names its objects know. A refusal is an *Error. Check reads data
// once and allocates only for errors, objects of many keys and keys with
// escapes. Safe for concurrent use.
func Check(data []byte, s *KeySet) error {
	_, err := walk(data, s, false)
	return err
}

// Object is Check for a document that must be an object.
func Object(data []byte, s *KeySet) error {
	_, err := walk(data, s, true)
	return err
}

// Result is what a walk found out about a document that it did not refuse.
// The zero Reading fits nothing.
type Result struct {
	Valid  bool // every value surely keeps the Rules of its Shape
	Values int  // how many values there are, of containers and inside them
}

// Read is Object that also says whether the document fits the Rules of s.
// What does not fit is not refused: either it breaks a rule, or it is one of
// the rare things that Rules leave to somebody else.
func Read(data []byte, s *KeySet) (Result, error) { return walk(data, s, true) }

func walk(data []byte, s *KeySet, object bool) (Result, error) {
	if len(data) > MaxSize {
		return Result{}, &Error{MaxSize, fmt.Sprintf("document longer than %d bytes", MaxSize)}
	}
	if !utf8.Valid(data) {
		return Result{}, &Error{invalidUTF8(data), "invalid UTF-8"}
	}
	w := walker{data: data, reading: Result{Valid: true, Values: 1}}
	if w.document(s, object) == invalid {
		return Result{}, &Error{w.at, w.reason}
	}
	return w.reading, nil
}

// invalidUTF8 gives the offset of the first byte that is no UTF-8.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(data)
}
