package mcpclient

import (
	"strings"
	"unicode"

	"github.com/rolecall/rolecall/internal/textutil"
)

// removeInvisible removes invisible and control characters from text. With them a text
// could mean something else to a model than to the operator who accepts it. Line feeds,
// tabs and the joiners that scripts and emoji need stay. "\r\n" becomes "\n"; other line
// separators are removed.
func removeInvisible(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if isInvisible(r) {
			return -1
		}
		return r
	}, text)
}

// isInvisible reports whether removeInvisible removes r.
func isInvisible(r rune) bool {
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

// oneLine returns the visible characters of text on one line of at most n bytes.
func oneLine(text string, n int) string { return textutil.OneLine(removeInvisible(text), n) }
