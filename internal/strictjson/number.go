package strictjson

import "fmt"

// isSpace has the bytes that are white space between tokens.
var isSpace = [256]bool{' ': true, '\t': true, '\n': true, '\r': true}

// maxDigits is the number of digits that always fit into an int64.
const maxDigits = 18

// literal parses true, false or null.
func (p *parser) literal(i int, word string, s *Shape) int {
	end := i + len(word)
	if end > len(p.data) || string(p.data[i:end]) != word {
		return p.fail(i, "expected "+word)
	}
	if s != nil && s.Rules != nil {
		p.recordFit(s.Rules.FitsLiteral(word))
	}
	return end
}

// number parses a number. It rejects a number that is out of bounds.
func (p *parser) number(start int, s *Shape) int {
	first := start
	if p.peek(start) == '-' {
		first++
	}
	i, value := p.integer(first)
	if i == first {
		return p.failNumber(start, i)
	}
	if b := p.peek(i); b == '.' || b|0x20 == 'e' {
		return p.fraction(start, i, s)
	}
	if i-start > MaxNumber {
		return p.failLong(start)
	}
	if first > start {
		value = -value
	}
	if s != nil && s.Rules != nil {
		p.recordFit(s.Rules.FitsInteger(value, i-first <= maxDigits))
	}
	return i
}

// integer parses the digits before a point. The value is correct up to maxDigits digits. No
// digit may follow a leading zero.
func (p *parser) integer(i int) (end int, value int64) {
	if p.peek(i) == '0' {
		return i + 1, 0
	}
	for ; i < len(p.data) && isDigit(p.data[i]); i++ {
		value = value*10 + int64(p.data[i]-'0')
	}
	return i, value
}

// failNumber rejects a value that begins at start and has no digit at i.
func (p *parser) failNumber(start, i int) int {
	if i > start {
		return p.fail(i, p.expected(i, "a digit"))
	}
	return p.fail(i, p.expected(i, "a value"))
}

func (p *parser) failLong(start int) int {
	return p.fail(start, fmt.Sprintf("number longer than %d bytes", MaxNumber))
}

// fraction parses the fraction and the exponent, from i on, of the number that begins at start.
func (p *parser) fraction(start, i int, s *Shape) int {
	if p.data[i] == '.' {
		first := i + 1
		if i = p.digits(first); i == first {
			return p.fail(i, p.expected(i, "a digit"))
		}
	}
	if p.peek(i)|0x20 == 'e' {
		if i = p.exponent(start, i+1); i == invalid {
			return invalid
		}
	}
	if i-start > MaxNumber {
		return p.failLong(start)
	}
	if s != nil && s.Rules != nil {
		p.recordFit(s.Rules.FitsNumber(p.data[start:i]))
	}
	return i
}

// exponent parses what follows the e of the number that begins at start.
func (p *parser) exponent(start, i int) int {
	if b := p.peek(i); b == '+' || b == '-' {
		i++
	}
	end := p.digits(i)
	if end == i {
		return p.fail(i, p.expected(i, "a digit"))
	}
	value := 0
	for _, b := range p.data[i:end] {
		value = min(value*10+int(b-'0'), MaxExponent+1)
	}
	if value > MaxExponent {
		return p.fail(start, fmt.Sprintf("exponent beyond %d", MaxExponent))
	}
	return end
}

// digits returns the offset after the digits at i.
func (p *parser) digits(i int) int {
	for i < len(p.data) && isDigit(p.data[i]) {
		i++
	}
	return i
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
