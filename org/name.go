package org

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/rolecall/rolecall/errcode"
)

// CheckRoleName returns an error with the code InvalidRole if name is not a valid name
// of a role. A valid name has 1 to 128 visible characters of UTF-8 and no space at its
// ends. It does not look like root or another reserved name: models and people read
// names and must not take an agent for root.
func CheckRoleName(name string) error {
	refuse := func(why string) error {
		return errcode.New(errcode.InvalidRole, "role name %q %s", name, why)
	}
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		return refuse("is empty")
	case n > 128:
		return refuse("has more than 128 characters")
	case !utf8.ValidString(name):
		return refuse("is not UTF-8")
	case strings.TrimSpace(name) != name:
		return refuse("begins or ends with space")
	case strings.ContainsFunc(name, invisible):
		return refuse("contains a control or invisible character")
	case hasNumberSuffix(name):
		return refuse("ends in # and a number, which distinguishes agents of one role")
	}
	for _, reserved := range []string{RootRole, "user", CreatorOperator, CreatorConfig} {
		if looksLike(name, reserved) {
			return refuse("looks like " + reserved + ", which is reserved")
		}
	}
	return nil
}

// hasNumberSuffix reports whether a name ends in # and digits.
func hasNumberSuffix(name string) bool {
	bare := strings.TrimRight(name, "0123456789")
	return bare != name && strings.HasSuffix(bare, "#")
}

// invisible reports whether a character is not printed or only changes others.
func invisible(r rune) bool {
	return !unicode.IsGraphic(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// looksLike reports whether a person may read name as word. It ignores letter case,
// width, marks and dots, and maps look-alikes of other alphabets to Latin letters.
func looksLike(name, word string) bool {
	return strings.Map(baseLetter, norm.NFKD.String(name)) == word
}

// baseLetter returns the ASCII letter that r looks like, or r itself. It returns -1 for
// a character that only modifies the letter before it.
func baseLetter(r rune) rune {
	if unicode.Is(unicode.Variation_Selector, r) || unicode.Is(unicode.M, r) || r == '.' {
		return -1
	}
	if 0xFF01 <= r && r <= 0xFF5E { // full-width forms
		r -= 0xFF01 - '!'
	}
	r = unicode.ToLower(r)
	if latin, ok := homoglyphs[r]; ok {
		return latin
	}
	return r
}

// homoglyphs maps characters that look like the letters of "root" to these letters:
// digits and the intentional confusables of Unicode Technical Standard #39.
var homoglyphs = map[rune]rune{
	'0': 'o', 'о': 'o', 'ο': 'o', 'օ': 'o', 'ჿ': 'o', 'ᴏ': 'o', 'ⲟ': 'o', '০': 'o', '੦': 'o', 'ѳ': 'o', 'ө': 'o', 'σ': 'o',
	'г': 'r', 'ᴦ': 'r', 'ⲅ': 'r', 'ꭇ': 'r', 'ꮁ': 'r', 'ʀ': 'r', 'ꮢ': 'r', 'ᖇ': 'r',
	'т': 't', 'τ': 't', 'ᴛ': 't', 'ⲧ': 't', 'ꮦ': 't',
}
