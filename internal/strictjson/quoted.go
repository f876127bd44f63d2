package strictjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// string reads the string that begins at i.
func (w *walker) string(i int, s *KeySet) int {
	end, escaped := w.quoted(i)
	if s != nil && s.Rules != nil && end != invalid {
		w.fit(s.Rules.fitsText(w.data[i+1:end-1], escaped))
	}
	return end
}

// quoted reads a string and says whether it holds escapes. It looks at eight
// bytes at a time, here and not in a function of its own: most strings are
// shorter than a call is worth.
func (w *walker) quoted(i int) (end int, escaped bool) {
	for i++; ; {
		if i+8 > len(w.data) {
			i = plainEnd(w.data, i)
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
			return w.failText(i), escaped
		}
	}
}

// failText refuses a string for what is, or is not, at i.
func (w *walker) failText(i int) int {
	if i >= len(w.data) {
		return w.fail(i, "string without end")
	}
	return w.fail(i, "control character in a string")
}

// plainEnd gives the offset of the first byte from i that does not stand for
// itself in a string.
func plainEnd(data []byte, i int) int {
	for i < len(data) && data[i] >= ' ' && data[i] != '"' && data[i] != '\\' {
		i++
	}
	return i
}

// ones has 1 in each of eight bytes.
const ones = 0x0101010101010101

// special marks, in the highest bit of each byte, quotes, backslashes and
// control characters. The lowest mark is right; a borrow may set others
// above it.
func special(word uint64) uint64 {
	quote, backslash := word^ones*'"', word^ones*'\\'
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (word-ones*' ')&^word) & (ones << 7)
}

// escape reads one escape sequence, of a surrogate pair both.
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

// codePoint reads \uXXXX; a high surrogate needs its low one behind it.
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

// unescape appends the text of a string whose escapes are known to be valid.
func unescape(text, quoted []byte) []byte {
	for i := 0; i < len(quoted); {
		switch {
		case quoted[i] != '\\':
			text = append(text, quoted[i])
			i++
		case quoted[i+1] != 'u':
			text = append(text, short[quoted[i+1]])
			i += 2
		default:
			r, size := decode(quoted, i)
			text = utf8.AppendRune(text, r)
			i += size
		}
	}
	return text
}

var short = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// decode gives the code point of the valid \u escape or pair at i.
func decode(quoted []byte, i int) (r rune, size int) {
	high, _ := hex4(quoted, i)
	if !utf16.IsSurrogate(high) {
		return high, 6
	}
	low, _ := hex4(quoted, i+6)
	return utf16.DecodeRune(high, low), 12
}

// brief copies the beginning of a name for an error.
func brief(name []byte) string {
	const most = 64
	if len(name) <= most {
		return string(name)
	}
	end := most
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return string(name[:end]) + "..."
}
