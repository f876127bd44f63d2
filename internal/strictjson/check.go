// Package strictjson parses untrusted JSON strictly, so that every later reader sees the same
// document.
//
// Check a document once, where it is received. After that gjson, encoding/json and a schema
// validator cannot disagree about its content. In addition to RFC 8259, a document
//
//   - is valid UTF-8, without lone surrogate escapes
//   - has no key twice in one object
//   - is nested at most MaxDepth levels and has at most MaxSize bytes
//   - has only numbers within MaxNumber and MaxExponent
//
// A Shape adds the property names of a schema. A key that differs from one of these names in case
// only is rejected. With FoldKeys, a key that differs from any other key in case only is rejected
// too. It may also have Rules for values, which Read calls in the same pass.
//
// The package decodes nothing and knows no schema language: package argschema builds Shapes
// and implements Rules from JSON schemas.
package strictjson

import (
	"fmt"
	"unicode/utf8"
)

// The bounds of a document. Without those on numbers, a reader with arbitrary precision could
// compute for minutes on a few bytes such as 1e999999.
const (
	MaxSize     = 8 << 20 // bytes of a document
	MaxDepth    = 64      // open arrays and objects
	MaxNumber   = 400     // bytes of one number
	MaxExponent = 400     // magnitude of a number's exponent; float64 ends at 308
)

// Error is the reason why a document was rejected.
type Error struct {
	Offset int    // of the error, in bytes
	Reason string // a sentence fragment: `duplicate key "path"`
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s at byte %d", e.Reason, e.Offset) }

// CheckKeys returns an *Error if data is not a strict JSON document. It also does so if a key
// differs from a name in s in case only. s may be nil.
//
// CheckKeys reads data once. It allocates memory only for errors, for objects with many keys and
// for keys with escapes. It is safe for concurrent use.
func CheckKeys(data []byte, s *Shape) error {
	_, err := parse(data, s, anyValue)
	return err
}

// CheckObject is like CheckKeys for a document that must be an object.
func CheckObject(data []byte, s *Shape) error {
	_, err := parse(data, s, objectOnly)
	return err
}

// MaxDecoded is how many values a document may have that is decoded. A decoded value takes up to 250 bytes, so the
// bytes of a document do not bound its memory.
const MaxDecoded = 1 << 18

// CheckDecodable is CheckObject for a document that is then decoded. It also rejects a document of more than MaxDecoded
// values.
func CheckDecodable(data []byte, s *Shape) error {
	r, err := parse(data, s, objectOnly)
	if err == nil && r.Values > MaxDecoded {
		err = &Error{len(data), fmt.Sprintf("more than %d values", MaxDecoded)}
	}
	return err
}

// Result is the result of Read for a document that was not rejected.
type Result struct {
	// Valid reports that every value satisfies the Rules of its Shape. If it is
	// false, a value may still satisfy them: see Read.
	Valid  bool
	Values int // the number of values, containers included
}

// Read is like CheckObject and also checks the values against the Rules in s. It does not reject a
// document that fails them. Either the document breaks a rule, or it has one of the rare values
// that Rules cannot decide. A schema validator has to tell which.
func Read(data []byte, s *Shape) (Result, error) { return parse(data, s, objectOnly) }

// CountValues is like CheckKeys and also returns the number of values in data, containers
// included.
func CountValues(data []byte, s *Shape) (int, error) {
	r, err := parse(data, s, anyValue)
	return r.Values, err
}

// documentKind says which documents parse accepts.
type documentKind int

const (
	objectOnly documentKind = iota
	anyValue
)

// parse parses a document and checks its keys against s.
func parse(data []byte, s *Shape, kind documentKind) (Result, error) {
	if len(data) > MaxSize {
		return Result{}, &Error{MaxSize, fmt.Sprintf("document longer than %d bytes", MaxSize)}
	}
	if !utf8.Valid(data) {
		return Result{}, &Error{invalidUTF8(data), "invalid UTF-8"}
	}
	p := parser{data: data, result: Result{Valid: true, Values: 1}}
	if p.document(s, kind) == invalid {
		return Result{}, &Error{p.at, p.reason}
	}
	return p.result, nil
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8.
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
