package parameter

import "strings"

// quote is a style of quoting. The zero quote leaves a string unchanged.
type quote struct {
	open, close string
	backslash   bool // a backslash is an escape within these quotes and has to be doubled
}

// quoteOf returns the style that Spec.Escape names, and reports whether it exists.
func quoteOf(name string, backslash bool) (q quote, ok bool) {
	switch name {
	case EscapeSingleQuotes:
		return quote{"'", "'", backslash}, true
	case EscapeDoubleQuotes:
		return quote{`"`, `"`, backslash}, true
	case EscapeBackticks:
		return quote{"`", "`", false}, true
	case EscapeSquareBrackets:
		return quote{"[", "]", false}, true
	}
	return quote{}, name == ""
}

// quote returns text in quotes, escaped so that nothing in it ends them.
func (q quote) quote(text string) string {
	if q.open == "" {
		return text
	}
	if q.backslash {
		text = strings.ReplaceAll(text, `\`, `\\`)
	}
	return q.open + strings.ReplaceAll(text, q.close, q.close+q.close) + q.close
}
