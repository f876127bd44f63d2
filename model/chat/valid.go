package chat

import (
	"strings"

	"github.com/tidwall/gjson"
)

// maxDepth is how deep JSON from a provider may nest; tools take 64.
const maxDepth = 512

// Valid says whether text is one JSON document that may be read here and
// recorded. One that nests too deeply is not: its readers recurse, and a few
// megabytes of brackets would end the process.
func Valid(text string) bool { return depthOK(text) && gjson.Valid(text) }

func depthOK(text string) bool {
	if strings.Count(text, "[")+strings.Count(text, "{") <= maxDepth {
		return true
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = skip(text, i)
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

// skip gives the place of the quote that ends the string begun at i.
func skip(text string, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}
