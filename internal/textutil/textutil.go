// Package textutil shortens text that comes from outside and makes it safe to
// print.
//
//	textutil.Truncate("a long message", 6)    // "a long…"
//	textutil.OneLine("two\nlines", 80)        // "two lines"
//	textutil.ListNames([]string{"a", "b"})     // "a, b"
//	textutil.Sanitize("\x1b[31mred\x1b[0m")   // "\ufffd[31mred\ufffd[0m"
package textutil

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ellipsis marks text that was cut.
const ellipsis = "…"

// Truncate returns text if it has at most n bytes, else its Prefix of n bytes and "…".
func Truncate(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return Prefix(text, n) + ellipsis
}

// Prefix returns the first n bytes of text, without a character that the cut would split. It
// returns all of a text that has at most n bytes. Invalid UTF-8 stays as it is.
func Prefix(text string, n int) string {
	n = max(n, 0)
	if len(text) <= n {
		return text
	}
	for i := n; i > n-utf8.UTFMax && i >= 0; i-- {
		if utf8.RuneStart(text[i]) {
			n = i
			break
		}
	}
	return text[:n]
}

// TrimPartialRune returns data without an incomplete character at its end.
func TrimPartialRune(data []byte) []byte {
	for i := len(data) - 1; i >= max(0, len(data)-utf8.UTFMax); i-- {
		if !utf8.RuneStart(data[i]) {
			continue
		}
		if utf8.FullRune(data[i:]) {
			break
		}
		return data[:i]
	}
	return data
}

// PrefixJSON returns the longest beginning of text that takes at most n bytes as a
// JSON string of encoding/json, without its quotes. It does not split a character.
func PrefixJSON(text string, n int) string {
	for i, c := range text {
		if n -= lenJSON(c); n < 0 {
			return text[:i]
		}
	}
	return text
}

// lenJSON returns how many bytes a character takes in a JSON string.
func lenJSON(c rune) int {
	switch {
	case strings.ContainsRune("\"\\\b\f\n\r\t", c):
		return len(`\n`)
	case c < ' ', strings.ContainsRune("<>&\u2028\u2029", c):
		return len(`\u0000`)
	case c == utf8.RuneError:
		return len(`\ufffd`) // also for a byte that is not UTF-8
	}
	return utf8.RuneLen(c)
}

// TruncateWidth returns text if it has at most n characters, else its first n-1
// characters and "…".
func TruncateWidth(text string, n int) string {
	if len(text) <= n || utf8.RuneCountInString(text) <= n {
		return text
	}
	end := 0
	for range max(n-1, 0) {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return text[:end] + ellipsis
}

// OneLine returns text on one line, with single spaces between its words, cut as
// Truncate cuts.
func OneLine(text string, n int) string {
	return Truncate(strings.Join(strings.Fields(text), " "), n)
}

// Sanitize returns text that neither acts on a terminal nor hides anything: white
// space becomes a space, any other character that does not print U+FFFD.
func Sanitize(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return utf8.RuneError
	}, text)
}

// SanitizeLines is Sanitize for each line of text.
func SanitizeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Sanitize(lines[i])
	}
	return strings.Join(lines, "\n")
}

// IsText reports whether data is text: UTF-8 without zero bytes.
func IsText(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

// Limits of a list of names in a text.
const (
	maxListed      = 20
	maxListedBytes = 500
)

// ListNames returns names with commas between them: the first 20 that take at most 500 bytes,
// and how many are left out.
func ListNames(names []string) string {
	list, size := "", 0
	for i, name := range names {
		if size += len(name) + 2; i == maxListed || size > maxListedBytes {
			return strings.TrimPrefix(fmt.Sprintf("%s and %d more", list, len(names)-i), " ")
		}
		if i > 0 {
			list += ", "
		}
		list += name
	}
	return list
}
