package chat

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

// AppendString appends text as a JSON string. It escapes only what JSON requires and
// copies the rest in runs, since most of a request is text. Invalid UTF-8 becomes
// U+FFFD.
func AppendString(b []byte, text string) []byte {
	if !utf8.ValidString(text) {
		text = CleanText(text)
	}
	b = append(b, '"')
	for {
		n := plainRun(text)
		b = append(b, text[:n]...)
		if n == len(text) {
			return append(b, '"')
		}
		b = escape(b, text[n])
		text = text[n+1:]
	}
}

// plainRun returns how many bytes at the beginning of text need no escape. It tests
// eight bytes at a time. In found, the lowest set high bit marks the first byte
// that is '"', '\\' or a control character.
func plainRun(text string) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(text); i += 8 {
		s := text[i : i+8]
		x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		quote, backslash := x^(ones*'"'), x^(ones*'\\')
		if found := ((quote-ones)&^quote | (backslash-ones)&^backslash | (x-ones*' ')&^x) & high; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(text); i++ {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

func escape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// CleanText returns text with invalid UTF-8 replaced by U+FFFD, so that it can be
// recorded as JSON.
func CleanText(text string) string { return strings.ToValidUTF8(text, "\ufffd") }
