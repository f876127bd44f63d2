package bounds

import (
	"iter"
	"strings"

	"github.com/tidwall/gjson"
)

// What follows reads strict JSON. Of other text it returns some values, and it ends.

// kindOf returns the type of a value by its first byte. "" is null. What is no value is JSON, which
// no condition allows.
func kindOf(value string) gjson.Type {
	if value == "" {
		return gjson.Null
	}
	switch value[0] {
	case 'n':
		return gjson.Null
	case '"':
		return gjson.String
	case 't':
		return gjson.True
	case 'f':
		return gjson.False
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return gjson.Number
	}
	return gjson.JSON
}

// jsonValue is a value as operators read it.
type jsonValue struct {
	Type gjson.Type
	Raw  string
	Str  string // of a string, without quotes and escapes
}

func parseValue(text string) jsonValue {
	v := jsonValue{Type: kindOf(text), Raw: text}
	if v.Type == gjson.String {
		v.Str = unquote(text)
	}
	return v
}

// unquote returns the text of a string.
func unquote(quoted string) string {
	if len(quoted) >= 2 && strings.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	return gjson.Parse(quoted).Str
}

// elementsOf returns the elements of an array.
func elementsOf(array string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := skipTo(array, 1); at < len(array) && array[at] != ']'; at = skipTo(array, at) {
			end := skipValue(array, at)
			if !yield(array[at:end]) {
				return
			}
			at = end
		}
	}
}

// membersOf returns the members of an object by their names.
func membersOf(object string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for at := skipTo(object, 1); at < len(object) && object[at] != '}'; at = skipTo(object, at) {
			key := skipValue(object, at)
			from := skipTo(object, key)
			end := skipValue(object, from)
			if !yield(unquote(object[at:key]), object[from:end]) {
				return
			}
			at = end
		}
	}
}

// skipTo returns the index of the next value, or of the end of a container.
func skipTo(text string, at int) int {
	for at < len(text) && (text[at] == ',' || text[at] == ':' || text[at] <= ' ') {
		at++
	}
	return at
}

// skipValue returns the index behind the value at an index. It is larger than the index unless the
// text ends there.
func skipValue(text string, at int) int {
	if at >= len(text) {
		return len(text)
	}
	switch text[at] {
	case '"':
		return skipString(text, at)
	case '{', '[':
		return skipContainer(text, at)
	}
	for at++; at < len(text) && text[at] > ' ' && text[at] != ',' && text[at] != '}' && text[at] != ']'; at++ {
	}
	return at
}

func skipString(text string, at int) int {
	for at++; at < len(text); at++ {
		switch text[at] {
		case '"':
			return at + 1
		case '\\':
			at++
		}
	}
	return len(text)
}

func skipContainer(text string, at int) int {
	depth := 0
	for at < len(text) {
		switch text[at] {
		case '"':
			at = skipString(text, at)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
		at++
	}
	return len(text)
}
