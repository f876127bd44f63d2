// Package strictjson owns the one strict reading of JSON from outside: what
// it accepts, every later reader understands in the same way.
//
// Check a document once, where it enters; afterwards gjson, encoding/json and
// a schema validator may read it without disagreeing. On top of RFC 8259 a
// document must be valid UTF-8 without lone surrogate escapes, repeat no key
// in one object, nest no deeper than MaxDepth, be no longer than MaxSize, and
// hold only numbers within MaxNumber and MaxExponent. A Shape adds the names
// a schema knows, so that no key is almost one of them.
//
// The package decodes nothing and knows no schema language.
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
// once, without recursion, and allocates only for errors, objects of many
// keys and keys with escapes. Safe for concurrent use.
func Check(data []byte, s *Shape) error { return run(data, s, false) }

// Object is Check for a document that must be an object.
func Object(data []byte, s *Shape) error { return run(data, s, true) }

func run(data []byte, s *Shape, object bool) error {
	if len(data) > MaxSize {
		return &Error{MaxSize, fmt.Sprintf("document longer than %d bytes", MaxSize)}
	}
	if !utf8.Valid(data) {
		return &Error{invalidUTF8(data), "invalid UTF-8"}
	}
	c := checker{data: data, shape: s}
	if c.document(object) {
		return nil
	}
	return &Error{c.i, c.reason}
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

// checker walks one document. Its methods move i past what they accept, or
// leave it on what is wrong, set reason and return false.
type checker struct {
	data   []byte
	i      int
	reason string

	frames [MaxDepth]frame // open arrays and objects; no recursion
	depth  int             // how many frames are open
	shape  *Shape          // of the value read next
	keys   [64]key         // unknown keys of all open objects, innermost last
	held   int             // how many keys are held
	text   []byte          // unescaped keys
}

// frame is an open array or object.
type frame struct {
	object bool
	first  int                 // where this object's keys begin in checker.keys
	seen   uint64              // which of the first 64 known names were there
	shape  *Shape              // of this container
	many   map[string]struct{} // unknown keys, once they are many
}

// document reads the one value and what may follow it.
func (c *checker) document(object bool) bool {
	c.space()
	if object && c.peek() != '{' {
		return c.fail("not an object")
	}
	for {
		closed, ok := c.value()
		if !ok {
			return false
		}
		if closed && !c.next() {
			return c.reason == ""
		}
	}
}

// value reads a scalar or opens a container. closed is false when a value of
// the opened container has to follow.
func (c *checker) value() (closed, ok bool) {
	switch b := c.peek(); b {
	case '{', '[':
		return c.open(b == '{')
	case '"':
		_, ok = c.quoted()
	case 't':
		ok = c.literal("true")
	case 'f':
		ok = c.literal("false")
	case 'n':
		ok = c.literal("null")
	default:
		ok = c.number()
	}
	return true, ok
}

// open enters a container, and leaves it at once if it is empty.
func (c *checker) open(object bool) (closed, ok bool) {
	if c.depth == MaxDepth {
		return false, c.fail(fmt.Sprintf("nesting deeper than %d", MaxDepth))
	}
	f := &c.frames[c.depth]
	*f = frame{object: object, first: c.held, shape: c.shape}
	c.depth++
	c.i++
	c.space()
	if c.peek() == f.end() {
		c.close()
		return true, true
	}
	if object {
		return false, c.member()
	}
	c.shape = f.shape.element()
	return false, true
}

// next goes on after a complete value: it closes what ends there, and says
// whether another value follows. It returns false at the end of the document
// and when something is wrong, then with a reason.
func (c *checker) next() bool {
	for c.depth > 0 {
		f := &c.frames[c.depth-1]
		c.space()
		switch c.peek() {
		case ',':
			return c.another(f)
		case f.end():
			c.close()
		default:
			return c.fail(c.expected("',' or '" + string(rune(f.end())) + "'"))
		}
	}
	c.space()
	return c.i < len(c.data) && c.fail("text after the document")
}

// another goes past a comma to the value behind it.
func (c *checker) another(f *frame) bool {
	c.i++
	c.space()
	if f.object {
		return c.member()
	}
	c.shape = f.shape.element()
	return true
}

// close leaves the innermost container.
func (c *checker) close() {
	c.depth--
	c.held = c.frames[c.depth].first
	c.i++
}

func (f *frame) end() byte {
	if f.object {
		return '}'
	}
	return ']'
}

// peek gives the byte at i, 0 at the end: no JSON token begins with 0.
func (c *checker) peek() byte {
	if c.i < len(c.data) {
		return c.data[c.i]
	}
	return 0
}

// space skips white space.
func (c *checker) space() {
	for c.i < len(c.data) && white[c.data[c.i]] {
		c.i++
	}
}

// fail notes why the document is refused at i, and returns false.
func (c *checker) fail(reason string) bool {
	c.reason = reason
	return false
}

// expected words what should have stood at i.
func (c *checker) expected(what string) string {
	if c.i >= len(c.data) {
		return "document ends where " + what + " was expected"
	}
	return "expected " + what
}
