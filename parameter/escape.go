package parameter

import "strings"

// quote is a style of quoting. The zero quote leaves a text as it is.
type quote struct {
	open, shut string
	backslash  bool // stands for something else in such a text, unless doubled
}

// quoteOf gives the style of a name that Escape may have.
func quoteOf(name string, backslash bool) (q quote, ok bool) {
	switch name {
	case SingleQuotes:
		return quote{"'", "'", backslash}, true
	case DoubleQuotes:
		return quote{`"`, `"`, backslash}, true
	case Backticks:
		return quote{"`", "`", false}, true
	case SquareBrackets:
		return quote{"[", "]", false}, true
	}
	return quote{}, name == ""
}

// quote wraps text, in which nothing ends the quotes.
func (q quote) quote(text string) string {
	if q.open == "" {
		return text
	}
	if q.backslash {
		text = strings.ReplaceAll(text, `\`, `\\`)
	}
	return q.open + strings.ReplaceAll(text, q.shut, q.shut+q.shut) + q.shut
}
