package bounds

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
)

// NarrowSchema returns the schema of a tool for a model that may call the tool within checks.
// Bounds with fixed values stand in it as const, enum, maximum and minimum. It changes
// properties and items that the schema has, and only where they have no such keyword yet. It
// serves the model alone: the checks decide. Other rules leave the schema as it is.
func NarrowSchema(schema json.RawMessage, checks []*Check) json.RawMessage {
	for _, pointer := range pointersOf(checks) {
		list := conditionsAt(pointer, checks)
		if keywords := fixedKeywords(list); len(keywords) > 0 {
			schema = withKeywords(schema, pointer, keywords)
		}
	}
	return schema
}

// pointersOf returns the paths of all checks, each once.
func pointersOf(checks []*Check) (list []string) {
	for _, c := range checks {
		for _, p := range c.paths {
			if !slices.Contains(list, p.pointer) {
				list = append(list, p.pointer)
			}
		}
	}
	return list
}

// keyword is a keyword of a JSON schema with its value as JSON.
type keyword struct{ name, value string }

// maxEnum limits the values that a schema lists.
const maxEnum = 64

// fixedKeywords returns the keywords for conditions that must all hold.
func fixedKeywords(list []condition) (keywords []keyword) {
	for _, c := range list {
		if values, ok := c.fixedValues(); ok {
			values = slices.DeleteFunc(slices.Clone(values), func(v jsonValue) bool {
				return slices.ContainsFunc(list, func(c condition) bool { return c.certainlyRejects(v) })
			})
			return enumOf(values)
		}
	}
	for _, c := range list {
		for _, op := range c.operators {
			if o, ok := op.(*limit); ok && !slices.ContainsFunc(keywords, func(k keyword) bool { return k.name == o.keyword() }) {
				least, most := limitsOf(list)
				value := most
				if o.least {
					value = least
				}
				keywords = append(keywords, keyword{o.keyword(), value.String()})
			}
		}
	}
	return keywords
}

func (o *limit) keyword() string {
	if o.least {
		return "minimum"
	}
	return "maximum"
}

// enumOf returns the keyword for a list of values.
func enumOf(values []jsonValue) []keyword {
	var texts [][]byte
	for _, v := range values {
		if !slices.ContainsFunc(texts, func(other []byte) bool { return string(other) == v.Raw }) {
			texts = append(texts, []byte(v.Raw))
		}
	}
	switch {
	case len(texts) == 1:
		return []keyword{{"const", string(texts[0])}}
	case len(texts) == 0 || len(texts) > maxEnum:
		return nil
	}
	return []keyword{{"enum", "[" + string(bytes.Join(texts, []byte(","))) + "]"}}
}

// withKeywords returns a schema with keywords for what a path leads to. What is behind a
// reference stays as it is: other places may refer to it.
func withKeywords(schema json.RawMessage, pointer string, keywords []keyword) json.RawMessage {
	steps, _ := splitPointer(pointer) // parsed before
	root := gjson.ParseBytes(schema)
	part := root
	for _, step := range steps {
		name := []string{"properties", step}
		if step == every {
			name = []string{"items"}
		}
		for _, n := range name {
			next := member(part, n)
			if !next.IsObject() || next.Index == 0 {
				return schema
			}
			part = next
		}
	}
	if part.Index == 0 {
		return schema
	}
	var added []byte
	for _, k := range keywords {
		if !member(part, k.name).Exists() {
			added = append(added, `,"`+k.name+`":`+k.value...)
		}
	}
	end := part.Index + len(part.Raw) - 1 // of the closing brace
	if len(added) > 0 && !hasMembers(part) {
		added = added[1:]
	}
	return slices.Concat(schema[:end:end], added, schema[end:])
}

func hasMembers(v gjson.Result) (has bool) {
	v.ForEach(func(_, _ gjson.Result) bool { has = true; return false })
	return has
}

// UnknownPath returns a path of r that arguments of a tool certainly lack. The schema of the tool
// names no such property and takes no others. It returns "" if there is none.
func (r Rule) UnknownPath(schema json.RawMessage) string {
	root := gjson.ParseBytes(schema)
	for _, p := range r.paths {
		part := root
		for _, step := range p.steps {
			part = resolve(root, part)
			next := below(root, part, step)
			if !next.Exists() && isClosed(part) {
				return p.pointer
			}
			part = next
		}
	}
	return ""
}

// isClosed reports whether a schema of an object takes only the properties that it names.
func isClosed(part gjson.Result) bool {
	for _, other := range []string{"patternProperties", "allOf", "anyOf", "oneOf", "$ref", "$dynamicRef", "if", "dependentSchemas"} {
		if member(part, other).Exists() {
			return false
		}
	}
	return member(part, "additionalProperties").Type == gjson.False && member(part, "type").Str == "object"
}
