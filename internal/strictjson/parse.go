package strictjson

import "fmt"

// walker walks one document. Its methods take the offset where something
// begins and give the one behind it; or they give wrong, and at and reason say
// where and why. The offset travels in a register: kept in the walker, it
// would cost a store and a load for each token.
type walker struct {
	data    []byte
	reading Result
	depth   int // open arrays and objects

	keys [64]key // unknown keys of all open objects, innermost last
	held int     // how many keys are held
	text []byte  // unescaped keys

	at     int
	reason string
}

// invalid is the offset behind what is refused.
const invalid = -1

// document reads the one value and the white space around it.
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

// value reads the value that begins at i, and holds it against s.
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
		return w.literal(i, "true", s, IsTrue)
	case b == 'f':
		return w.literal(i, "false", s, IsFalse)
	case b == 'n':
		return w.literal(i, "null", s, IsNull)
	}
	return w.number(i, s)
}

// array reads the array that begins at i.
func (w *walker) array(i int, s *KeySet) int {
	if !w.enter() {
		return w.failDepth(i)
	}
	elements, unique, first := s.element(), s.unique(), w.held
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
	w.fit(s.fitsArray(count))
	return i + 1
}

// object reads the object that begins at i.
func (w *walker) object(i int, s *KeySet) int {
	if !w.enter() {
		return w.failDepth(i)
	}
	m := members{shape: s, first: w.held}
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
	w.fit(s.fitsObject(m.count, m.seen))
	return i + 1
}

// enter goes one level down, if there is one.
func (w *walker) enter() bool {
	w.depth++
	return w.depth <= MaxDepth
}

// leave goes one level up, from a container of count values whose keys are
// held from first on.
func (w *walker) leave(first, count int) {
	w.depth--
	w.held = first
	w.reading.Values += count
}

// fit notes whether a value keeps its rules.
func (w *walker) fit(fits bool) {
	if !fits {
		w.reading.Valid = false
	}
}

// peek gives the byte at i, 0 at the end: no JSON token begins with 0.
func (w *walker) peek(i int) byte {
	if i < len(w.data) {
		return w.data[i]
	}
	return 0
}

// space goes past white space; most often there is none, or one blank.
func (w *walker) space(i int) int {
	if i < len(w.data) && w.data[i] <= ' ' {
		return w.blanks(i)
	}
	return i
}

func (w *walker) blanks(i int) int {
	for i < len(w.data) && white[w.data[i]] {
		i++
	}
	return i
}

// fail notes why the document is refused at i.
func (w *walker) fail(i int, reason string) int {
	w.at, w.reason = i, reason
	return invalid
}

func (w *walker) failDepth(i int) int {
	return w.fail(i, fmt.Sprintf("nesting deeper than %d", MaxDepth))
}

// expected words what should have stood at i.
func (w *walker) expected(i int, what string) string {
	if i >= len(w.data) {
		return "document ends where " + what + " was expected"
	}
	return "expected " + what
}
