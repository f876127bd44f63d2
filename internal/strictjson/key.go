package strictjson

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// manyKeys is how many keys of one object are compared pairwise; more go to a
// map, so that an object of a million keys stays linear. Known names need
// neither: a bit each says whether they were there.
const manyKeys = 24

// key is a key of an open object: a piece of data or, unescaped, of text.
type key struct {
	start, end int32
	unescaped  bool
}

// member reads a key and its colon, and prepares for its value.
func (c *checker) member() bool {
	start := c.i
	if c.peek() != '"' {
		return c.fail(c.expected("a key"))
	}
	escaped, ok := c.quoted()
	if !ok || !c.admit(start, escaped) {
		return false
	}
	c.space()
	if !c.skip(':', ':') {
		return c.fail(c.expected("':'"))
	}
	c.space()
	return true
}

// admit takes the key that was read from start up to i into its object.
func (c *checker) admit(start int, escaped bool) bool {
	k := c.newKey(start+1, c.i-1, escaped)
	name, f := c.name(k), &c.frames[c.depth-1]
	at := f.shape.find(name)
	if c.repeated(f, k, at) {
		return c.failAt(start, fmt.Sprintf("duplicate key %q", brief(name)))
	}
	if known := f.shape.almost(name, at); known != "" {
		return c.failAt(start, fmt.Sprintf("key %q is almost %q: write it exactly so", brief(name), known))
	}
	c.shape = f.shape.child(at)
	return true
}

func (c *checker) newKey(start, end int, escaped bool) key {
	if !escaped {
		return key{start: int32(start), end: int32(end)}
	}
	from := len(c.text)
	c.text = unescape(c.text, c.data[start:end])
	return key{int32(from), int32(len(c.text)), true}
}

func (c *checker) name(k key) []byte {
	if k.unescaped {
		return c.text[k.start:k.end]
	}
	return c.data[k.start:k.end]
}

// repeated says whether f had the key already, and notes it. at is the key's
// place among the known names.
func (c *checker) repeated(f *frame, k key, at int) bool {
	if at >= 0 && at < 64 {
		bit := uint64(1) << at
		found := f.seen&bit != 0
		f.seen |= bit
		return found
	}
	if f.many == nil && (c.held-f.first == manyKeys || c.held == len(c.keys)) {
		c.index(f)
	}
	if f.many != nil {
		before := len(f.many)
		f.many[string(c.name(k))] = struct{}{}
		return len(f.many) == before
	}
	return c.paired(f, k)
}

// paired compares k with the keys of f one by one, and adds it.
func (c *checker) paired(f *frame, k key) bool {
	for _, other := range c.keys[f.first:c.held] {
		if other.end-other.start == k.end-k.start && string(c.name(other)) == string(c.name(k)) {
			return true
		}
	}
	c.keys[c.held] = k
	c.held++
	return false
}

// index moves f's keys to a map.
func (c *checker) index(f *frame) {
	f.many = make(map[string]struct{}, 2*manyKeys)
	for _, k := range c.keys[f.first:c.held] {
		f.many[string(c.name(k))] = struct{}{}
	}
	c.held = f.first
}

// unescape appends the text of a string whose escapes are known to be valid.
func unescape(text, quoted []byte) []byte {
	for i := 0; i < len(quoted); {
		switch {
		case quoted[i] != '\\':
			text = append(text, quoted[i])
			i++
		case quoted[i+1] != 'u':
			text = append(text, short[quoted[i+1]])
			i += 2
		default:
			r, size := decode(quoted, i)
			text = utf8.AppendRune(text, r)
			i += size
		}
	}
	return text
}

var short = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// decode gives the code point of the valid \u escape or pair at i.
func decode(quoted []byte, i int) (r rune, size int) {
	high, _ := hex4(quoted, i)
	if !utf16.IsSurrogate(high) {
		return high, 6
	}
	low, _ := hex4(quoted, i+6)
	return utf16.DecodeRune(high, low), 12
}

// brief copies the beginning of a name for an error.
func brief(name []byte) string {
	const most = 64
	if len(name) <= most {
		return string(name)
	}
	end := most
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return string(name[:end]) + "..."
}
