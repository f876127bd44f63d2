package chat

import (
	"strings"

	"github.com/tidwall/gjson"
)

// maxDepth is how deep JSON from a provider may nest. Tool arguments may nest 64
// levels, which the gate checks.
const maxDepth = 512

// ValidJSON reports whether text is one JSON document that nests no deeper than
// maxDepth. Its readers recurse: a few megabytes of brackets would overflow the
// stack and end the process.
func ValidJSON(text string) bool { return depthOK(text) && gjson.Valid(text) }

// depthOK reports whether no brackets outside strings nest deeper than maxDepth.
func depthOK(text string) bool {
	if strings.Count(text, "[")+strings.Count(text, "{") <= maxDepth {
		return true
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
		case '[', '{':
			if depth++; depth > maxDepth {
				return false
			}
		case ']', '}':
			depth--
		}
	}
	return true
}

// stringEnd returns the index of the quote that ends the string that begins at i.
func stringEnd(text string, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}
