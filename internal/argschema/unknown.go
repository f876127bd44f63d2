package argschema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/textutil"
)

// formatUnknown describes names that an object may not have, and lists those it may have.
func formatUnknown(unknown, known []string) string {
	names := make([]string, 0, maxProblems)
	for _, name := range slices.Sorted(slices.Values(unknown))[:min(len(unknown), maxProblems)] {
		names = append(names, formatName(name))
	}
	text := "unknown property " + strings.Join(names, ", ")
	if more := len(unknown) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(known) == 0 {
		return text
	}
	return text + ", known are " + textutil.ListNames(known)
}

// firstNames returns the knownNames of the first schema that has any.
func firstNames(doc any, at []string, shown []json.RawMessage) []string {
	for _, schema := range shown {
		if names := knownNames(doc, at, schema); names != nil {
			return names
		}
	}
	return nil
}

// knownNames returns the names of the properties of the object at a place of doc, in the order
// of the schema shown. It returns nil if the schema does not say it without a reference or a
// choice.
func knownNames(doc any, at []string, shown []byte) []string {
	schema := gjson.ParseBytes(shown)
	for _, token := range at {
		if list, ok := doc.([]any); ok {
			schema, doc = schema.Get("items"), element(list, token)
			continue
		}
		object, _ := doc.(map[string]any)
		schema, doc = property(schema, token), object[token]
	}
	var names []string
	schema.Get("properties").ForEach(func(key, _ gjson.Result) bool {
		names = append(names, formatName(key.Str))
		return true
	})
	return names
}

// property returns the schema of a property. A name may have characters with a
// meaning in a path of gjson.
func property(schema gjson.Result, name string) (found gjson.Result) {
	schema.Get("properties").ForEach(func(key, value gjson.Result) bool {
		if key.Str == name {
			found = value
		}
		return !found.Exists()
	})
	return found
}
