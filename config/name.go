package config

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// maxName is the most characters a document's name may have.
const maxName = 128

// nameProblem says what is wrong with a document's name, or "". A name has 1
// to maxName characters and shows all of them: what a reader cannot see cannot
// tell two names apart.
func nameProblem(name string) string {
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
			return fmt.Sprintf("holds %U, which cannot be seen", r)
		}
	}
	return ""
}

// isInvisible covers controls, line separators, zero-width and bidirectional
// characters, variation selectors, fillers, and what stands for broken text.
func isInvisible(r rune) bool {
	return r == utf8.RuneError ||
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
