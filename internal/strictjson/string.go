package strictjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// string parses the string that begins at i and checks it against s.
func (w *walker) string(i int, s *KeySet) int {
	end, escaped := w.quoted(i)
	if s != nil && s.Rules != nil && end != invalid {
		w.require(s.Rules.FitsString(w.data[i+1:end-1], escaped))
	}
	return end
}

// quoted parses a string and reports whether it has escapes. It checks eight bytes at a time.
// The loop is not a function of its own, because most strings are short and a call would cost
// more than it.
func (w *walker) quoted(i int) (end int, escaped bool) {
	for i++; ; {
		if i+8 > len(w.data) {
			i = skipPlain(w.data, i)
		} else if marks := special(binary.LittleEndian.Uint64(w.data[i:])); marks == 0 {
			i += 8
			continue
		} else {
			i += bits.TrailingZeros64(marks) / 8
		}
		switch w.peek(i) {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			if i = w.escape(i); i == invalid {
				return invalid, true
			}
		default:
			return w.failString(i), escaped
		}
	}
}

// failString rejects a string at i, where it ends or has a control character.
func (w *walker) failString(i int) int {
	if i >= len(w.data) {
		return w.fail(i, "string without end")
	}
	return w.fail(i, "control character in a string")
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
func (w *walker) escape(i int) int {
	if i+1 >= len(w.data) {
		return w.fail(i, "string without end")
	}
	switch w.data[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		return w.codePoint(i)
	}
	return w.fail(i, "invalid escape")
}

// codePoint parses \uXXXX. A high surrogate must be followed by a low one.
func (w *walker) codePoint(i int) int {
	unit, ok := hex4(w.data, i)
	switch {
	case !ok:
		return w.fail(i, "invalid \\u escape")
	case unit < 0xD800 || unit > 0xDFFF:
		return i + 6
	}
	low, ok := hex4(w.data, i+6)
	if unit > 0xDBFF || !ok || low < 0xDC00 || low > 0xDFFF {
		return w.fail(i, "lone surrogate escape")
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
