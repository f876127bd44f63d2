package strictjson

import "fmt"

// isSpace has the bytes that are white space between tokens.
var isSpace = [256]bool{' ': true, '\t': true, '\n': true, '\r': true}

// maxDigits is the number of digits that always fit into an int64.
const maxDigits = 18

// literal parses true, false or null.
func (w *walker) literal(i int, word string, s *KeySet) int {
	end := i + len(word)
	if end > len(w.data) || string(w.data[i:end]) != word {
		return w.fail(i, "expected "+word)
	}
	if s != nil && s.Rules != nil {
		w.require(s.Rules.FitsLiteral(word))
	}
	return end
}

// number parses a number and rejects one that is out of bounds.
func (w *walker) number(start int, s *KeySet) int {
	first := start
	if w.peek(start) == '-' {
		first++
	}
	i, value := w.integer(first)
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
		w.require(s.Rules.FitsInteger(value, i-first <= maxDigits))
	}
	return i
}

// integer parses the digits before a point. The value is correct up to maxDigits digits. No
// digit may follow a leading zero.
func (w *walker) integer(i int) (end int, value int64) {
	if w.peek(i) == '0' {
		return i + 1, 0
	}
	for ; i < len(w.data) && isDigit(w.data[i]); i++ {
		value = value*10 + int64(w.data[i]-'0')
	}
	return i, value
}

// failNumber rejects a value that begins at start and has no digit at i.
func (w *walker) failNumber(start, i int) int {
	if i > start {
		return w.fail(i, w.expected(i, "a digit"))
	}
	return w.fail(i, w.expected(i, "a value"))
}

func (w *walker) failLong(start int) int {
	return w.fail(start, fmt.Sprintf("number longer than %d bytes", MaxNumber))
}

// fraction parses the fraction and the exponent, from i on, of the number that begins at start.
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
		w.require(s.Rules.FitsNumber(w.data[start:i]))
	}
	return i
}

// exponent parses what follows the e of the number that begins at start.
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

// digits returns the offset after the digits at i.
func (w *walker) digits(i int) int {
	for i < len(w.data) && isDigit(w.data[i]) {
		i++
	}
	return i
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
