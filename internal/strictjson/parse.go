package strictjson

import "fmt"

// walker parses one document. Its methods accept the offset where something begins and return
// the offset after it. If the document is rejected, they return invalid and set at and
// reason. The offset is not a field of walker, since that would cost a store and a load for
// each token.
type walker struct {
	data   []byte
	result Result
	depth  int // open arrays and objects

	keys     [64]key // unknown keys of all open objects, innermost last, and elements of arrays that must be unique
	keyCount int     // the length of keys
	text     []byte  // unescaped keys

	at     int // with reason: of the Error
	reason string
}

// invalid is returned instead of an offset when the document is rejected.
const invalid = -1

// document parses a value and the white space around it.
func (w *walker) document(s *KeySet, object bool) int {
	i := w.space(0)
	if object && w.peek(i) != '{' {
		return w.fail(i, "not an object")
	}
	if i = w.value(i, s); i == invalid {
		return invalid
	}
	if i = w.space(i); i < len(w.data) {
		return w.fail(i, "text after the document")
	}
	return i
}

// value parses the value that begins at i and checks it against s.
func (w *walker) value(i int, s *KeySet) int {
	switch b := w.peek(i); {
	case isDigit(b):
		return w.number(i, s)
	case b == '"':
		return w.string(i, s)
	case b == '{':
		return w.object(i, s)
	case b == '[':
		return w.array(i, s)
	case b == 't':
		return w.literal(i, "true", s)
	case b == 'f':
		return w.literal(i, "false", s)
	case b == 'n':
		return w.literal(i, "null", s)
	}
	return w.number(i, s)
}

// array parses the array that begins at i.
func (w *walker) array(i int, s *KeySet) int {
	if !w.enter() {
		return w.failDepth(i)
	}
	elements, unique, first := s.element(), s.unique(), w.keyCount
	count := 0
	i = w.space(i + 1)
	for w.peek(i) != ']' || count > 0 {
		end := w.value(i, elements)
		if end == invalid {
			return invalid
		}
		count++
		if unique {
			w.distinct(first, i, end)
		}
		i = w.space(end)
		if w.peek(i) != ',' {
			break
		}
		i = w.space(i + 1)
	}
	if w.peek(i) != ']' {
		return w.fail(i, w.expected(i, "',' or ']'"))
	}
	w.leave(first, count)
	if s != nil && s.Rules != nil {
		w.require(s.Rules.FitsArray(count))
	}
	return i + 1
}

// object parses the object that begins at i.
func (w *walker) object(i int, s *KeySet) int {
	if !w.enter() {
		return w.failDepth(i)
	}
	m := members{keySet: s, first: w.keyCount}
	i = w.space(i + 1)
	for w.peek(i) != '}' || m.count > 0 {
		i = w.member(i, &m)
		if i == invalid {
			return invalid
		}
		i = w.space(i)
		if w.peek(i) != ',' {
			break
		}
		i = w.space(i + 1)
	}
	if w.peek(i) != '}' {
		return w.fail(i, w.expected(i, "',' or '}'"))
	}
	w.leave(m.first, m.count)
	if s != nil && s.Rules != nil {
		w.require(s.Rules.FitsObject(m.count, m.seen))
	}
	return i + 1
}

// enter enters an array or object. It reports false if it is nested too deep.
func (w *walker) enter() bool {
	w.depth++
	return w.depth <= MaxDepth
}

// leave leaves an array or object with count values, and drops its keys, which begin at first.
func (w *walker) leave(first, count int) {
	w.depth--
	w.keyCount = first
	w.result.Values += count
}

// require records whether a value satisfies its rules.
func (w *walker) require(fits bool) {
	if !fits {
		w.result.Valid = false
	}
}

// peek returns the byte at i, 0 at the end of the document. No JSON token begins with 0.
func (w *walker) peek(i int) byte {
	if i < len(w.data) {
		return w.data[i]
	}
	return 0
}

// space returns the offset after white space. It is small enough to be inlined.
func (w *walker) space(i int) int {
	if i < len(w.data) && w.data[i] <= ' ' {
		return w.skipSpace(i)
	}
	return i
}

// skipSpace is the loop of space.
func (w *walker) skipSpace(i int) int {
	for i < len(w.data) && isSpace[w.data[i]] {
		i++
	}
	return i
}

// fail rejects the document for a reason at i.
func (w *walker) fail(i int, reason string) int {
	w.at, w.reason = i, reason
	return invalid
}

func (w *walker) failDepth(i int) int {
	return w.fail(i, fmt.Sprintf("nesting deeper than %d", MaxDepth))
}

// expected returns the reason for an error at i, where what is missing.
func (w *walker) expected(i int, what string) string {
	if i >= len(w.data) {
		return "document ends where " + what + " was expected"
	}
	return "expected " + what
}
