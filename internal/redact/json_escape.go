package redact

import (
	"encoding/hex"
	"strings"
)

// A text that arrives in parts may be a part of a JSON document, whose strings cannot be
// unescaped alone. So the escapes of single bytes are matched.

// unescapeJSON returns the byte that an escape at i stands for, such as \u0041 or \/, and
// the index after it. The index is 0 if no escape is there.
func unescapeJSON(text string, i int) (c byte, after int) {
	escape := skipBackslashes(text, i)
	if escape == i || escape == len(text) {
		return 0, 0
	}
	switch text[escape] {
	case '"', '/':
		return text[escape], escape + 1
	case 'u':
		digits := text[escape+1:]
		if len(digits) < 4 || digits[:2] != "00" {
			return 0, 0
		}
		decoded, err := hex.DecodeString(digits[2:4])
		if err != nil || decoded[0] >= 0x80 {
			return 0, 0
		}
		return decoded[0], escape + len("u0000")
	}
	return 0, 0
}

// isJSONEscapeCut reports whether an escape at i is cut off by the end of text.
func isJSONEscapeCut(text string, i int) bool {
	escape := skipBackslashes(text, i)
	if escape == i {
		return false
	}
	rest := text[escape:]
	return rest == "" || len(rest) < len("u0000") && strings.HasPrefix(rest, "u00"[:min(len(rest), 3)])
}

// skipLineBreaks returns the index after the line breaks at i, of which there may be
// maxLineBreaks, escaped or not. It returns i if there are no such bytes, or the text does
// not come in parts.
func (m *escapeMatcher) skipLineBreaks(text string, i int) int {
	for n := 0; m.parts && n < maxLineBreaks && i < len(text); n++ {
		escape := skipBackslashes(text, i)
		switch {
		case escape == i && (text[i] == '\n' || text[i] == '\r'):
			i++
		case escape > i && escape < len(text) && (text[escape] == 'n' || text[escape] == 'r'):
			i = escape + 1
		default:
			return i
		}
	}
	return i
}

// skipBackslashes returns the index after the backslashes at i, of which there may be
// maxBackslashes.
func skipBackslashes(text string, i int) int {
	end := i
	for end < len(text) && text[end] == '\\' && end-i < maxBackslashes {
		end++
	}
	return end
}
