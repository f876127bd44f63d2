package yamldoc

import (
	"fmt"
	"slices"
)

// maxEntries is the largest number of entries of a list of texts.
const maxEntries = 1000

// TextList reads a list of texts.
func TextList(to *[]string) func(Value) {
	return func(v Value) {
		if !v.IsList() {
			v.AddTypeError("a list of texts", "for example [--root, /srv]")
			return
		}
		for i, item := range v.ListItems() {
			if i >= maxEntries {
				v.AddError("has more than 1000 entries", "")
				return
			}
			if word, ok := item.ReadText(); ok {
				*to = append(*to, word)
			}
		}
	}
}

// NameList reads a list of texts that are not empty and rejects duplicates. Errors
// call the entries what.
func NameList(to *[]string, what string) func(Value) {
	return func(v Value) {
		if !v.IsList() {
			v.AddTypeError("a list of "+what, writeListHint(v))
			return
		}
		for _, item := range v.ListItems() {
			name, ok := item.ReadNonEmpty()
			switch {
			case !ok:
			case slices.Contains(*to, name):
				item.AddError(QuoteText(name)+" is listed twice", "")
			case len(*to) == maxEntries:
				v.AddError(fmt.Sprintf("has more than %d entries", maxEntries), "")
				return
			default:
				*to = append(*to, name)
			}
		}
	}
}

// NameSet reads a list of texts that are not empty. A text that is listed twice counts
// once. check returns what is wrong with a text, and a hint; "" accepts it. Errors call the
// entries what.
func NameSet(to *[]string, what string, check func(name string) (message, hint string)) func(Value) {
	return func(v Value) {
		if !v.IsList() {
			if message, hint := check(v.Node.Value); message != "" && v.IsScalar() && !v.IsNull() {
				v.AddError(message, hint)
				return
			}
			v.AddTypeError("a list of "+what, writeListHint(v))
			return
		}
		for _, item := range v.ListItems() {
			name, ok := item.ReadNonEmpty()
			if !ok || slices.Contains(*to, name) {
				continue
			}
			if message, hint := check(name); message != "" {
				item.AddError(message, hint)
				continue
			}
			if len(*to) == maxEntries {
				v.AddError(fmt.Sprintf("has more than %d entries", maxEntries), "")
				return
			}
			*to = append(*to, name)
		}
	}
}

// writeListHint returns how to write one text as a list; "" for anything else.
func writeListHint(v Value) string {
	if v.IsNull() || !v.IsScalar() {
		return ""
	}
	return "write [" + ClipText(v.Node.Value) + "]"
}

// ParsedList reads a list of texts, each of which parse must accept. Errors call
// an entry what.
func ParsedList[T any](to *[]T, what, hint string, parse func(string) (T, bool)) func(Value) {
	return func(v Value) {
		if !v.IsList() {
			v.AddTypeError("a list of "+what+"s", hint)
			return
		}
		for _, item := range v.ListItems() {
			text, ok := item.ReadNonEmpty()
			if !ok {
				continue
			}
			one, ok := parse(text)
			if !ok {
				item.AddError(QuoteText(item.Node.Value)+" is not a valid "+what, hint)
				continue
			}
			*to = append(*to, one)
		}
	}
}

// TextMap reads a mapping of names to scalars.
func TextMap(to *map[string]string) func(Value) {
	return func(v Value) {
		if !v.IsMapping() {
			v.AddTypeError("a mapping of names to texts", "for example {sslmode: require}")
			return
		}
		*to = map[string]string{}
		for key, val := range v.MapPairs() {
			if text, ok := val.ReadScalar(); ok {
				(*to)[key.Node.Value] = text
			}
		}
	}
}
