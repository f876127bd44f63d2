package yamldoc

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// maxName is the largest length of a document's name, in characters.
const maxName = 128

// NameProblem returns why name is not a valid name of a document, or "". A name
// has 1 to maxName characters, all of them visible: two names must not look the
// same.
func NameProblem(name string) string {
	first, _ := utf8.DecodeRuneInString(name)
	last, _ := utf8.DecodeLastRuneInString(name)
	switch count := utf8.RuneCountInString(name); {
	case count > maxName:
		return fmt.Sprintf("has %d characters; at most %d are allowed", count, maxName)
	case unicode.IsSpace(first) || unicode.IsSpace(last):
		return "must not begin or end with a space"
	}
	for _, r := range name {
		if isInvisible(r) {
			return fmt.Sprintf("contains %U, which is invisible", r)
		}
	}
	return ""
}

// isInvisible reports whether r is a control character, a line separator, a
// zero-width or bidirectional character, a variation selector, a filler, or the
// replacement character.
func isInvisible(r rune) bool {
	return r == utf8.RuneError ||
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
