package mcpclient

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible drops from text what a reader does not see or a terminal obeys: it
// might say something else to a model than to the operator who accepts it.
// Line breaks, tabs and the joiners that scripts and emoji need stay.
func visible(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, text)
}

// hidden says whether a character has no place in a definition.
func hidden(r rune) bool {
	const joiner, nonJoiner = '\u200d', '\u200c'
	switch r {
	case '\n', '\t', joiner, nonJoiner:
		return false
	}
	switch {
	case r >= 0xFE00 && r <= 0xFE0E, r >= 0xE0100 && r <= 0xE01EF: // variation selectors; 0xFE0F makes emoji
		return true
	case r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0: // letters without a shape
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp)
}

// brief is text for a message: on one line, and not too much of it.
func brief(text string, most int) string {
	text = strings.Join(strings.Fields(visible(text)), " ")
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
