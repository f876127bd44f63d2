package textutil

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// EscapeUnprintable escapes the characters of a JSON document that encoding/json does not escape
// and that hide or reorder text, or control a terminal. Line feeds stay. What a person reads is
// then what a program reads.
func EscapeUnprintable(document []byte) []byte {
	safe := func(r rune) bool { return r == '\n' || unicode.IsPrint(r) && !IsInvisible(r) && !hasNoGlyph(r) }
	if !strings.ContainsFunc(string(document), func(r rune) bool { return !safe(r) }) {
		return document
	}
	out := make([]byte, 0, len(document)+64)
	for _, r := range string(document) {
		switch {
		case safe(r):
			out = utf8.AppendRune(out, r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// hasNoGlyph reports whether a printable character shows nothing by itself.
func hasNoGlyph(r rune) bool {
	const brailleBlank = 0x2800
	return r == brailleBlank || r > unicode.MaxASCII && unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
