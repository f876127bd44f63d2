package strictjson

import (
	"bytes"
	"fmt"

	"github.com/rolecall/rolecall/internal/textutil"
)

// maxShown is how many bytes of a name an error shows.
const maxShown = 64

// manyKeys is the number of keys of one object that are compared pairwise. Further keys go into a
// table, so that the time stays linear in the number of keys. The first 64 known names need
// neither, as each has a bit in members.seen.
const manyKeys = 24

// key is a key of an open object: a range of parser.data or, if unescaped, of parser.text.
type key struct {
	start, end int32
	unescaped  bool
	known      bool // the Shape has the name
}

// members is the state of an open object.
type members struct {
	shape *Shape    // of the object
	count int       // keys so far
	seen  uint64    // the first 64 known names that were present, a bit each
	first int       // index of the first of its other keys in parser.keys
	many  *keyTable // its other keys, if there are many
}

// member parses a key, the colon and the value.
func (p *parser) member(i int, m *members) int {
	if p.peek(i) != '"' {
		return p.fail(i, p.expected(i, "a key"))
	}
	end, escaped := p.quoted(i)
	if end == invalid {
		return invalid
	}
	at, ok := p.checkKey(m, i, end, escaped)
	if !ok {
		return invalid
	}
	m.count++
	if i = p.space(end); p.peek(i) != ':' {
		return p.fail(i, p.expected(i, "':'"))
	}
	return p.value(p.space(i+1), m.shape.property(at))
}

// checkKey adds the key in data[start:end] to m and returns its number among the known names,
// -1 if it is unknown.
func (p *parser) checkKey(m *members, start, end int, escaped bool) (at int, ok bool) {
	name := p.data[start+1 : end-1]
	if escaped {
		name = p.unescaped(name)
	}
	at = m.shape.number(name)
	if at < 0 || at >= 64 {
		return at, p.addKey(m, start, p.newKey(name, start, escaped), at)
	}
	bit := uint64(1) << at
	if m.seen&bit != 0 {
		return at, p.failDuplicate(start, name)
	}
	m.seen |= bit
	return at, true
}

// addKey adds a key that has no bit in m.seen.
func (p *parser) addKey(m *members, start int, k key, at int) bool {
	name := p.name(k)
	k.known = at >= 0
	if other, found := p.findKey(m, k); found {
		return p.failSame(start, p.name(other), name)
	}
	if known := m.shape.caseVariant(name, at); known != "" {
		p.fail(start, fmt.Sprintf("key %q differs from %q in case only: write %q", textutil.Truncate(string(name), maxShown), known, known))
		return false
	}
	p.recordFit(at >= 0 || !m.shape.closed())
	return true
}

// failSame fails at a key that equals another one, or differs from it in case only.
func (p *parser) failSame(start int, other, name []byte) bool {
	if bytes.Equal(other, name) {
		return p.failDuplicate(start, name)
	}
	p.fail(start, fmt.Sprintf("keys %q and %q differ in case only: write one of them", textutil.Truncate(string(other), maxShown), textutil.Truncate(string(name), maxShown)))
	return false
}

func (p *parser) failDuplicate(start int, name []byte) bool {
	p.fail(start, fmt.Sprintf("duplicate key %q", textutil.Truncate(string(name), maxShown)))
	return false
}

// unescaped appends a key to text and returns it without escapes.
func (p *parser) unescaped(quoted []byte) []byte {
	from := len(p.text)
	p.text = unescape(p.text, quoted)
	return p.text[from:]
}

// newKey returns the key of a name. An escaped name is at the end of text; any other is in
// data, after the quote at start.
func (p *parser) newKey(name []byte, start int, escaped bool) key {
	first := start + 1
	if escaped {
		first = len(p.text) - len(name)
	}
	return key{start: int32(first), end: int32(first + len(name)), unescaped: escaped}
}

// name returns the text of a key, without escapes.
func (p *parser) name(k key) []byte {
	if k.unescaped {
		return p.text[k.start:k.end]
	}
	return p.data[k.start:k.end]
}

// findKey returns the key of m that is the same as k, and adds k if there is none. Where
// the Shape folds keys, unknown names that differ in case only are the same.
func (p *parser) findKey(m *members, k key) (same key, found bool) {
	if m.many == nil && (p.keyCount-m.first == manyKeys || p.keyCount == len(p.keys)) {
		p.moveToTable(m)
	}
	if m.many != nil {
		return p.findInTable(m, k)
	}
	if !m.shape.foldsKeys() || k.known {
		return p.findPair(m.first, k)
	}
	for _, other := range p.keys[m.first:p.keyCount] {
		if !other.known && bytes.EqualFold(p.name(other), p.name(k)) {
			return other, true
		}
	}
	p.push(k)
	return key{}, false
}

// findInTable is findKey for the keys in m.many.
func (p *parser) findInTable(m *members, k key) (same key, found bool) {
	id := p.identity(m, k, &p.wanted)
	return m.many.find(id, k, func(other key) bool { return bytes.Equal(id, p.identity(m, other, &p.compared)) })
}

// identity returns a text that is equal for keys that are the same. It is valid until buffer is used again.
func (p *parser) identity(m *members, k key, buffer *[]byte) []byte {
	name := p.name(k)
	if !m.shape.foldsKeys() {
		return name
	}
	if k.known {
		*buffer = append(append((*buffer)[:0], name...), 0xff) // no folded name ends so
	} else {
		*buffer = appendFolded((*buffer)[:0], name)
	}
	return *buffer
}

// findPair returns the key from first on that equals k, and adds k if there is none.
func (p *parser) findPair(first int, k key) (same key, found bool) {
	for _, other := range p.keys[first:p.keyCount] {
		if other.end-other.start == k.end-k.start && string(p.name(other)) == string(p.name(k)) {
			return other, true
		}
	}
	p.push(k)
	return key{}, false
}

// push adds a key to keys, which has space.
func (p *parser) push(k key) {
	p.keys[p.keyCount] = k
	p.keyCount++
}

// moveToTable moves the keys of m to a table.
func (p *parser) moveToTable(m *members) {
	m.many = newKeyTable()
	for _, k := range p.keys[m.first:p.keyCount] {
		p.findInTable(m, k)
	}
	p.keyCount = m.first
}
