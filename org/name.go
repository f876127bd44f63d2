package org

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/rolecall/rolecall/errcode"
)

// CheckRoleName says what is wrong with a role's name: 1 to 128 printable
// characters without space at the ends, nothing that passes for root.
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
		return refuse("holds a control or invisible character")
	case hasNumberSuffix(name):
		return refuse("ends like the number that tells agents of one role apart")
	}
	for _, taken := range []string{RootRole, "user", CreatorOperator, CreatorConfig} {
		if looksLike(name, taken) {
			return refuse("passes for " + taken + ", which the runtime names")
		}
	}
	return nil
}

// hasNumberSuffix says whether a name ends in # and digits.
func hasNumberSuffix(name string) bool {
	bare := strings.TrimRight(name, "0123456789")
	return bare != name && strings.HasSuffix(bare, "#")
}

func invisible(r rune) bool {
	return !unicode.IsGraphic(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// looksLike says whether a name reads as word to a person: letter case,
// width, accents-free look-alikes of other alphabets do not count.
func looksLike(name, word string) bool {
	return strings.Map(baseLetter, norm.NFKD.String(name)) == word
}

// baseLetter gives the ASCII letter a rune is easily taken for, -1 for one that
// only says how the letter before it is drawn.
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

// homoglyphs holds the letters of UTS #39's intentional confusables, and
// digits, that stand for the letters of "root".
var homoglyphs = map[rune]rune{
	'0': 'o', 'о': 'o', 'ο': 'o', 'օ': 'o', 'ჿ': 'o', 'ᴏ': 'o', 'ⲟ': 'o', '০': 'o', '੦': 'o', 'ѳ': 'o', 'ө': 'o', 'σ': 'o',
	'г': 'r', 'ᴦ': 'r', 'ⲅ': 'r', 'ꭇ': 'r', 'ꮁ': 'r', 'ʀ': 'r', 'ꮢ': 'r', 'ᖇ': 'r',
	'т': 't', 'τ': 't', 'ᴛ': 't', 'ⲧ': 't', 'ꮦ': 't',
}
