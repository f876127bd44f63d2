package strictjson

import "fmt"

// white says which bytes are white space between tokens, plain which stand
// for themselves in a string.
var (
	white = [256]bool{' ': true, '\t': true, '\n': true, '\r': true}
	plain = func() (table [256]bool) {
		for i := range table {
			table[i] = i >= ' ' && i != '"' && i != '\\'
		}
		return table
	}()
)

// quoted reads a string and says whether it holds escapes.
func (c *checker) quoted() (escaped, ok bool) {
	c.i++
	for {
		c.i = plainEnd(c.data, c.i)
		switch b := c.peek(); {
		case b == '"':
			c.i++
			return escaped, true
		case b == '\\':
			escaped = true
			if !c.escape() {
				return true, false
			}
		case c.i >= len(c.data):
			return escaped, c.fail("string without end")
		default:
			return escaped, c.fail("control character in a string")
		}
	}
}

// plainEnd gives the offset of the first byte from i that does not stand for
// itself in a string.
func plainEnd(data []byte, i int) int {
	for i < len(data) && plain[data[i]] {
		i++
	}
	return i
}

// escape reads one escape sequence, of a surrogate pair both.
func (c *checker) escape() bool {
	if c.i+1 >= len(c.data) {
		return c.fail("string without end")
	}
	switch c.data[c.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		c.i += 2
		return true
	case 'u':
		return c.codePoint()
	}
	return c.fail("invalid escape")
}

// codePoint reads \uXXXX; a high surrogate needs its low one behind it.
func (c *checker) codePoint() bool {
	unit, ok := hex4(c.data, c.i)
	switch {
	case !ok:
		return c.fail("invalid \\u escape")
	case unit < 0xD800 || unit > 0xDFFF:
		c.i += 6
		return true
	}
	low, ok := hex4(c.data, c.i+6)
	if unit > 0xDBFF || !ok || low < 0xDC00 || low > 0xDFFF {
		return c.fail("lone surrogate escape")
	}
	c.i += 12
	return true
}

// hex4 gives the code unit of the escape \uXXXX at i.
func hex4(data []byte, i int) (unit rune, ok bool) {
	if i+6 > len(data) || data[i] != '\\' || data[i+1] != 'u' {
		return 0, false
	}
	for _, b := range data[i+2 : i+6] {
		digit, ok := hexDigit(b)
		if !ok {
			return 0, false
		}
		unit = unit<<4 | rune(digit)
	}
	return unit, true
}

func hexDigit(b byte) (digit byte, ok bool) {
	switch {
	case '0' <= b && b <= '9':
		return b - '0', true
	case 'a' <= b && b <= 'f':
		return b - 'a' + 10, true
	case 'A' <= b && b <= 'F':
		return b - 'A' + 10, true
	}
	return 0, false
}

// literal reads true, false or null.
func (c *checker) literal(word string) bool {
	if end := c.i + len(word); end <= len(c.data) && string(c.data[c.i:end]) == word {
		c.i = end
		return true
	}
	return c.fail("expected " + word)
}

// number reads a number, and refuses one that is out of bounds.
func (c *checker) number() bool {
	start := c.i
	c.skip('-', '-')
	if !isDigit(c.peek()) {
		if c.i > start {
			return c.fail(c.expected("a digit"))
		}
		return c.fail(c.expected("a value"))
	}
	if !c.skip('0', '0') {
		c.digits()
	}
	if c.skip('.', '.') && !c.digits() {
		return false
	}
	if c.skip('e', 'E') && !c.exponent(start) {
		return false
	}
	return c.i-start <= MaxNumber || c.failAt(start, fmt.Sprintf("number longer than %d bytes", MaxNumber))
}

// exponent reads what follows the e of the number that begins at start.
func (c *checker) exponent(start int) bool {
	c.skip('+', '-')
	first := c.i
	if !c.digits() {
		return false
	}
	value := 0
	for _, b := range c.data[first:c.i] {
		value = min(value*10+int(b-'0'), MaxExponent+1)
	}
	return value <= MaxExponent || c.failAt(start, fmt.Sprintf("exponent beyond %d", MaxExponent))
}

// digits reads one digit or more.
func (c *checker) digits() bool {
	start := c.i
	for c.i < len(c.data) && isDigit(c.data[c.i]) {
		c.i++
	}
	return c.i > start || c.fail(c.expected("a digit"))
}

// skip goes past a or b and says whether one stood there.
func (c *checker) skip(a, b byte) bool {
	if found := c.peek(); found != a && found != b {
		return false
	}
	c.i++
	return true
}

func (c *checker) failAt(offset int, reason string) bool {
	c.i = offset
	return c.fail(reason)
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
