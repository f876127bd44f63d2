package strictjson

import "fmt"

// manyKeys is how many keys of one object are compared pairwise; more go to a
// map, so that an object of a million keys stays linear. Known names need
// neither: a bit each says whether they were there.
const manyKeys = 24

// key is a key of an open object: a piece of data or, unescaped, of text.
type key struct {
	start, end int32
	unescaped  bool
}

// members is what is known of an open object.
type members struct {
	shape *KeySet             // of the object
	count int                 // how many there were
	seen  uint64              // which of the first 64 known names were there
	first int                 // where the unknown keys begin in walker.keys
	many  map[string]struct{} // the unknown keys, once they are many
}

// member reads a key, its colon and its value.
func (w *walker) member(i int, m *members) int {
	if w.peek(i) != '"' {
		return w.fail(i, w.expected(i, "a key"))
	}
	end, escaped := w.quoted(i)
	if end == invalid {
		return invalid
	}
	at, ok := w.checkKey(m, i, end, escaped)
	if !ok {
		return invalid
	}
	m.count++
	if i = w.space(end); w.peek(i) != ':' {
		return w.fail(i, w.expected(i, "':'"))
	}
	return w.value(w.space(i+1), m.shape.child(at))
}

// checkKey takes the key that stands from start up to end into m, and gives its
// place among the known names.
func (w *walker) checkKey(m *members, start, end int, escaped bool) (at int, ok bool) {
	name := w.data[start+1 : end-1]
	if escaped {
		name = w.unescaped(name)
	}
	at = m.shape.find(name)
	if at < 0 || at >= 64 {
		return at, w.admitFree(m, start, w.newKey(name, start, escaped), at)
	}
	bit := uint64(1) << at
	if m.seen&bit != 0 {
		return at, w.failDuplicate(start, name)
	}
	m.seen |= bit
	return at, true
}

// admitFree takes a key that has no bit.
func (w *walker) admitFree(m *members, start int, k key, at int) bool {
	name := w.name(k)
	if w.isDuplicate(m, k) {
		return w.failDuplicate(start, name)
	}
	if known := m.shape.caseVariant(name, at); known != "" {
		w.fail(start, fmt.Sprintf("key %q is almost %q: write it exactly so", brief(name), known))
		return false
	}
	w.fit(at >= 0 || !m.shape.closed())
	return true
}

func (w *walker) failDuplicate(start int, name []byte) bool {
	w.fail(start, fmt.Sprintf("duplicate key %q", brief(name)))
	return false
}

// unescaped appends a key to text.
func (w *walker) unescaped(quoted []byte) []byte {
	from := len(w.text)
	w.text = unescape(w.text, quoted)
	return w.text[from:]
}

// newKey makes the key of a name: the end of text or, not escaped, what stands
// in data behind the quote at start.
func (w *walker) newKey(name []byte, start int, escaped bool) key {
	first := start + 1
	if escaped {
		first = len(w.text) - len(name)
	}
	return key{int32(first), int32(first + len(name)), escaped}
}

func (w *walker) name(k key) []byte {
	if k.unescaped {
		return w.text[k.start:k.end]
	}
	return w.data[k.start:k.end]
}

// isDuplicate says whether m had the key already, and notes it.
func (w *walker) isDuplicate(m *members, k key) bool {
	if m.many == nil && (w.held-m.first == manyKeys || w.held == len(w.keys)) {
		w.index(m)
	}
	if m.many != nil {
		before := len(m.many)
		m.many[string(w.name(k))] = struct{}{}
		return len(m.many) == before
	}
	return w.paired(m.first, k)
}

// paired compares k with the keys held from first on, and adds it.
func (w *walker) paired(first int, k key) bool {
	for _, other := range w.keys[first:w.held] {
		if other.end-other.start == k.end-k.start && string(w.name(other)) == string(w.name(k)) {
			return true
		}
	}
	w.keys[w.held] = k
	w.held++
	return false
}

// index moves m's keys to a map.
func (w *walker) index(m *members) {
	m.many = make(map[string]struct{}, 2*manyKeys)
	for _, k := range w.keys[m.first:w.held] {
		m.many[string(w.name(k))] = struct{}{}
	}
	w.held = m.first
}
