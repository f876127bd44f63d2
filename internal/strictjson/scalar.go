package strictjson

import "fmt"

// white says which bytes are white space between tokens.
var white = [256]bool{' ': true, '\t': true, '\n': true, '\r': true}

// literal reads true, false or null.
func (w *walker) literal(i int, word string, s *KeySet, kind Kinds) int {
	end := i + len(word)
	if end > len(w.data) || string(w.data[i:end]) != word {
		return w.fail(i, "expected "+word)
	}
	w.fit(s.allows(kind))
	return end
}

// number reads a number, and refuses one that is out of bounds.
func (w *walker) number(start int, s *KeySet) int {
	first := start
	if w.peek(start) == '-' {
		first++
	}
	i, value := w.whole(first)
	if i == first {
		return w.failNumber(start, i)
	}
	if b := w.peek(i); b == '.' || b|0x20 == 'e' {
		return w.fraction(start, i, s)
	}
	if i-start > MaxNumber {
		return w.failLong(start)
	}
	if first > start {
		value = -value
	}
	if s != nil && s.Rules != nil {
		w.fit(s.Rules.fitsInteger(value, i-first <= mostDigits))
	}
	return i
}

// whole reads the digits before a point, and gives their value if they are at
// most mostDigits. A zero stands alone.
func (w *walker) whole(i int) (end int, value int64) {
	if w.peek(i) == '0' {
		return i + 1, 0
	}
	for ; i < len(w.data) && isDigit(w.data[i]); i++ {
		value = value*10 + int64(w.data[i]-'0')
	}
	return i, value
}

// failNumber refuses what has no digit at i where a value begins at start.
func (w *walker) failNumber(start, i int) int {
	if i > start {
		return w.fail(i, w.expected(i, "a digit"))
	}
	return w.fail(i, w.expected(i, "a value"))
}

func (w *walker) failLong(start int) int {
	return w.fail(start, fmt.Sprintf("number longer than %d bytes", MaxNumber))
}

// fraction reads what follows the whole part, up to i, of the number that
// begins at start.
func (w *walker) fraction(start, i int, s *KeySet) int {
	if w.data[i] == '.' {
		first := i + 1
		if i = w.digits(first); i == first {
			return w.fail(i, w.expected(i, "a digit"))
		}
	}
	if w.peek(i)|0x20 == 'e' {
		if i = w.exponent(start, i+1); i == invalid {
			return invalid
		}
	}
	if i-start > MaxNumber {
		return w.failLong(start)
	}
	if s != nil && s.Rules != nil {
		w.fit(s.Rules.fitsNumber(parseDecimal(w.data[start:i])))
	}
	return i
}

// exponent reads what follows the e of the number that begins at start.
func (w *walker) exponent(start, i int) int {
	if b := w.peek(i); b == '+' || b == '-' {
		i++
	}
	end := w.digits(i)
	if end == i {
		return w.fail(i, w.expected(i, "a digit"))
	}
	value := 0
	for _, b := range w.data[i:end] {
		value = min(value*10+int(b-'0'), MaxExponent+1)
	}
	if value > MaxExponent {
		return w.fail(start, fmt.Sprintf("exponent beyond %d", MaxExponent))
	}
	return end
}

// digits goes past digits.
func (w *walker) digits(i int) int {
	for i < len(w.data) && isDigit(w.data[i]) {
		i++
	}
	return i
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
