package yamldoc

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
)

// Error is one error in the configuration. Line and Column are 0 if it is about
// the whole file.
type Error struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Field   string `json:"field,omitempty"` // path in the document, such as limits.rounds or toolGroups[1]
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Excerpt string `json:"excerpt,omitempty"` // the line with a caret below
}

// Error returns "file:line:column: field: message (hint)" and the excerpt on the
// lines below.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.pos().String() + ": ")
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Message)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	for line := range strings.Lines(e.Excerpt) {
		b.WriteString("\n  " + strings.TrimSuffix(line, "\n"))
	}
	return b.String()
}

// Unwrap returns an error with the code invalid_config and the same message, for
// errcode.CodeOf and errcode.Message.
func (e *Error) Unwrap() error { return errcode.New(errcode.InvalidConfig, "%s", e.Error()) }

// pos returns the position of the error.
func (e *Error) pos() Pos { return Pos{e.File, e.Line, e.Column} }

// Errors is the list of all errors in the configuration, sorted by file, line and
// column. It is never empty when it is returned as an error. After about 1000
// errors the rest is left out, and one entry says so.
type Errors []*Error

// Error returns the texts of all errors, one after another.
func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i, one := range e {
		texts[i] = one.Error()
	}
	return strings.Join(texts, "\n")
}

// Unwrap returns an error with the code invalid_config, as Error.Unwrap does.
func (e Errors) Unwrap() error { return errcode.New(errcode.InvalidConfig, "%s", e.Error()) }

// JoinErrors adds errors to an Errors and sorts them by position. It returns nil if
// there are none. It returns err itself if err is not an Errors.
func JoinErrors(err error, more ...*Error) error {
	list, ok := errors.AsType[Errors](err)
	if err != nil && !ok {
		return err
	}
	list = append(slices.Clone(list), more...)
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return list
}
