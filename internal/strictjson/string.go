package strictjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// string parses the string that begins at i and checks it against s.
func (p *parser) string(i int, s *Shape) int {
	end, escaped := p.quoted(i)
	if s != nil && s.Rules != nil && end != invalid {
		p.recordFit(s.Rules.FitsString(p.data[i+1:end-1], escaped))
	}
	return end
}

// quoted parses a string and reports whether it has escapes. It checks eight bytes at a time.
// The loop is not a function of its own, because most strings are short and a call would cost
// more than it.
func (p *parser) quoted(i int) (end int, escaped bool) {
	for i++; ; {
		if i+8 > len(p.data) {
			i = skipPlain(p.data, i)
		} else if marks := special(binary.LittleEndian.Uint64(p.data[i:])); marks == 0 {
			i += 8
			continue
		} else {
			i += bits.TrailingZeros64(marks) / 8
		}
		switch p.peek(i) {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			if i = p.escape(i); i == invalid {
				return invalid, true
			}
		default:
			return p.failString(i), escaped
		}
	}
}

// failString rejects a string at i, where it ends or has a control character.
func (p *parser) failString(i int) int {
	if i >= len(p.data) {
		return p.fail(i, "string without end")
	}
	return p.fail(i, "control character in a string")
}

// skipPlain returns the offset of the first byte from i that is not a plain character of a
// string.
func skipPlain(data []byte, i int) int {
	for i < len(data) && data[i] >= ' ' && data[i] != '"' && data[i] != '\\' {
		i++
	}
	return i
}

// ones has the value 1 in each of eight bytes.
const ones = 0x0101010101010101

// special sets the highest bit of each byte that is a quote, a backslash or a control
// character. Only the lowest set bit is reliable, as a borrow may set others above it.
func special(word uint64) uint64 {
	quote, backslash := word^ones*'"', word^ones*'\\'
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (word-ones*' ')&^word) & (ones << 7)
}

// escape parses one escape sequence, or two that are a surrogate pair.
func (p *parser) escape(i int) int {
	if i+1 >= len(p.data) {
		return p.fail(i, "string without end")
	}
	switch p.data[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		return p.codePoint(i)
	}
	return p.fail(i, "invalid escape")
}

// codePoint parses \uXXXX. A high surrogate must be followed by a low one.
func (p *parser) codePoint(i int) int {
	unit, ok := hex4(p.data, i)
	switch {
	case !ok:
		return p.fail(i, "invalid \\u escape")
	case unit < 0xD800 || unit > 0xDFFF:
		return i + 6
	}
	low, ok := hex4(p.data, i+6)
	if unit > 0xDBFF || !ok || low < 0xDC00 || low > 0xDFFF {
		return p.fail(i, "lone surrogate escape")
	}
	return i + 12
}

// hex4 returns the code unit of the escape \uXXXX at i.
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

// unescape appends a string without its escapes, which must be valid.
func unescape(text, quoted []byte) []byte {
	for i := 0; i < len(quoted); {
		switch {
		case quoted[i] != '\\':
			text = append(text, quoted[i])
			i++
		case quoted[i+1] != 'u':
			text = append(text, shortEscapes[quoted[i+1]])
			i += 2
		default:
			r, size := decode(quoted, i)
			text = utf8.AppendRune(text, r)
			i += size
		}
	}
	return text
}

// shortEscapes has the characters of the escapes of one letter.
var shortEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// decode returns the code point of the valid \u escape or pair at i, and its length.
func decode(quoted []byte, i int) (r rune, size int) {
	high, _ := hex4(quoted, i)
	if !utf16.IsSurrogate(high) {
		return high, 6
	}
	low, _ := hex4(quoted, i+6)
	return utf16.DecodeRune(high, low), 12
}

// CodePoints returns the number of code points of a valid string, which may have escapes. quoted
// is the text between the quotes.
func CodePoints(quoted []byte) (n int) {
	for len(quoted) > 0 {
		plain := bytes.IndexByte(quoted, '\\')
		if plain < 0 {
			return n + utf8.RuneCount(quoted)
		}
		n += utf8.RuneCount(quoted[:plain]) + 1
		quoted = quoted[plain+escapeSize(quoted[plain:]):]
	}
	return n
}

// escapeSize returns the length of the valid escape or surrogate pair at the beginning of
// quoted.
func escapeSize(quoted []byte) int {
	if quoted[1] != 'u' {
		return 2
	}
	_, size := decode(quoted, 0)
	return size
}
