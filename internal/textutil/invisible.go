package textutil

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// RemoveInvisible removes invisible and control characters from text. With them a text could
// mean something else to a model than to a person who reads it. Line feeds, tabs and the
// joiners that scripts and emoji need stay. "\r\n" becomes "\n"; other line separators are
// removed. Bytes that are not UTF-8 become U+FFFD.
func RemoveInvisible(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if IsInvisible(r) {
			return -1
		}
		return r
	}, text)
}

// IsInvisible reports whether RemoveInvisible removes r.
func IsInvisible(r rune) bool {
	if ' ' <= r && r <= '~' { // most texts have little else
		return false
	}
	const joiner, nonJoiner = '\u200d', '\u200c'
	switch r {
	case '\n', '\t', joiner, nonJoiner:
		return false
	}
	switch {
	case r >= 0xFE00 && r <= 0xFE0E, r >= 0xE0100 && r <= 0xE01EF: // variation selectors; 0xFE0F makes emoji
		return true
	case r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0: // letters without a glyph
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp)
}

// RemoveInvisibleJSON returns a valid JSON document without the characters in its strings that
// RemoveInvisible removes, also where they are escaped. All else stays as it is, except that
// bytes that are not UTF-8 become U+FFFD. Two keys may become equal.
func RemoveInvisibleJSON(document []byte) []byte {
	if isPlainJSON(document) {
		return document
	}
	document = bytes.ToValidUTF8(document, []byte("\uFFFD"))
	out := make([]byte, 0, len(document))
	for i := 0; i < len(document); {
		r, size := nextJSONChar(document[i:])
		if !IsInvisible(r) {
			out = append(out, document[i:i+size]...)
		}
		i += size
	}
	return out
}

// isPlainJSON reports whether RemoveInvisibleJSON leaves a document as it is. It may return
// false for such a document.
func isPlainJSON(document []byte) bool {
	for _, b := range document {
		if b >= 0x7F || b == '\r' {
			return false
		}
	}
	for _, escape := range []string{`\u`, `\r`, `\b`, `\f`} {
		if bytes.Contains(document, []byte(escape)) {
			return false
		}
	}
	return true
}

// nextJSONChar decodes the character at the beginning of a part of a JSON document, which may be
// escaped, and returns how many bytes it takes.
func nextJSONChar(part []byte) (r rune, size int) {
	const escape = len(`\u0000`)
	if part[0] != '\\' || len(part) < 2 {
		return utf8.DecodeRune(part)
	}
	switch part[1] {
	case 'r', 'b', 'f':
		return map[byte]rune{'r': '\r', 'b': '\b', 'f': '\f'}[part[1]], 2
	case 'u':
		r, size = unescaped(part), min(escape, len(part))
		if !utf16.IsSurrogate(r) || len(part) < 2*escape || part[escape] != '\\' || part[escape+1] != 'u' {
			return r, size
		}
		if pair := utf16.DecodeRune(r, unescaped(part[escape:])); pair != utf8.RuneError {
			return pair, 2 * escape
		}
		return r, size
	}
	return 'x', 2 // a visible character, or a line feed or tab
}

// unescaped returns the number in an escape such as \u200b.
func unescaped(part []byte) rune {
	n, err := strconv.ParseUint(string(part[2:min(6, len(part))]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}
