package org

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// CheckRoleName returns an error with the code InvalidRole if name is not a valid name
// of a role. A valid name has 1 to 128 visible characters of UTF-8 and no space at its
// ends. It does not look like root or another reserved name. Models and people read
// names and must not take an agent for root. It does not have the form of an id, so that it stands
// for no role that has, or had, an id. It does not end in # and a number: agents of one role have such names.
func CheckRoleName(name string) error {
	refuse := func(why string) error {
		return errcode.New(errcode.InvalidRole, "role name %q %s; choose another name", name, why)
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
	case identity.IsID(name):
		return refuse("has the form of an id")
	case hasNumberSuffix(name):
		return refuse("ends in # and a number; such names are for agents of one role")
	}
	for _, reserved := range reservedNames {
		if looksLike(name, reserved) {
			return refuse("looks like " + reserved + ", which is reserved")
		}
	}
	return nil
}

// reservedNames are the names that no role may have. gen_confusables.go repeats this list: change both.
var reservedNames = []string{RootRole, "user", CreatorOperator, CreatorConfig, programName}

// programName is the name with which the lines of the program begin.
const programName = "rolecall"

// hasNumberSuffix reports whether a name ends in # and digits.
func hasNumberSuffix(name string) bool {
	bare := strings.TrimRight(name, "0123456789")
	return bare != name && strings.HasSuffix(bare, "#")
}

// invisible reports whether a character is not printed. Marks that change other characters are printed.
func invisible(r rune) bool {
	return !unicode.IsGraphic(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// looksLike reports whether a person may read name as word. It ignores letter case,
// width, marks and dots, and compares what characters look like (see confusables).
func looksLike(name, word string) bool {
	return isReadAs([]rune(name), strings.ReplaceAll(word, "i", "l"))
}

// isReadAs reports whether name can be read as word, in which l is written for i.
func isReadAs(name []rune, word string) bool {
	if len(name) == 0 {
		return word == ""
	}
	r, rest := name[0], name[1:]
	if isMark(r) {
		return isReadAs(rest, word)
	}
	for _, letters := range append(slices.Clip(lookalikes()[r]), strings.ReplaceAll(strings.ToLower(string(r)), "i", "l")) {
		if after, ok := strings.CutPrefix(word, letters); ok && isReadAs(rest, after) {
			return true
		}
	}
	plain := norm.NFKD.String(string(r)) // full-width and other forms of a character
	return plain != string(r) && isReadAs(append([]rune(plain), rest...), word)
}

// isMark reports whether a character only modifies the letter before it, or is a dot.
func isMark(r rune) bool {
	return unicode.Is(unicode.Variation_Selector, r) || unicode.Is(unicode.M, r) || r == '.'
}

// lookalikes returns what a character looks like.
var lookalikes = sync.OnceValue(func() map[rune][]string {
	m := map[rune][]string{}
	for letters, characters := range confusables {
		for _, r := range characters {
			m[r] = append(slices.Clip(m[r]), letters)
		}
	}
	return m
})
