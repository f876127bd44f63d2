package org

import (
	"unicode/utf8"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
)

// MaxDescription is the maximum length of a role's description, in characters.
const MaxDescription = 500

// CheckDescription returns an error with the code InvalidRole if text is not a valid
// description of a role. A valid one is a line of plain text with at most MaxDescription
// characters, or empty.
func CheckDescription(text string) error {
	switch n := utf8.RuneCountInString(text); {
	case n > MaxDescription:
		return errcode.New(errcode.InvalidRole, "the description has %d characters; use at most %d", n, MaxDescription)
	case textutil.Sanitize(text) != text:
		return errcode.New(errcode.InvalidRole, "the description has a line break or a character that does not print; write one line of plain text")
	}
	return nil
}
