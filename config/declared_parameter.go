package config

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/parameter"
)

// maxParameters is the largest number of parameters in one list.
const maxParameters = 1000

// specList reads a list of parameters. in is the field with the list; "" means the
// default field of parameter.Compile.
func specList(to *[]parameter.Spec, in string) func(value) {
	return func(v value) {
		if v.isNull() { // like Toolbox, accept a field without a value as an empty list
			return
		}
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.failType("a list of parameters", "for example [{name: number, type: integer, description: The flight's number}]")
			return
		}
		if len(v.node.Content) > maxParameters {
			v.fail(fmt.Sprintf("has more than %d entries", maxParameters), "")
			return
		}
		for i, entry := range v.items() {
			spec := entry.parameterSpec()
			if in != "" {
				spec.At = in + "[" + strconv.Itoa(i) + "]"
			}
			*to = append(*to, spec)
		}
	}
}

// parameterSpec reads one parameter, or the type of an array's elements.
func (v value) parameterSpec() (spec parameter.Spec) {
	if v.node.Kind != yaml.MappingNode || !hasTag(v, "!!map") {
		v.failType("a parameter", "for example {name: number, type: integer, description: The flight's number}")
		return spec
	}
	claims := claimList(&spec.Auth)
	v.fields([]field{
		{"name", textField(&spec.Name)},
		{"type", textField(&spec.Type)},
		{"description", scalarTextField(&spec.Description)},
		{"required", optionalBool(&spec.Required)},
		{"default", literalField(&spec.Default)},
		{"allowedValues", literalList(&spec.Allowed)},
		{"excludedValues", literalList(&spec.Excluded)},
		{"minValue", literalField(&spec.Min)},
		{"maxValue", literalField(&spec.Max)},
		{"escape", textField(&spec.Escape)},
		{"items", func(v value) { items := v.parameterSpec(); spec.Items = &items }},
		{"valueType", textField(&spec.ValueType)},
		{"valueFromParam", nonEmptyField(&spec.From)},
		{"authServices", claims},
		{"authSources", claims}, // its older name
		{"secure", boolField(&spec.Secure)},
		{"embeddedBy", nonEmptyField(&spec.EmbeddedBy)},
	})
	if _, twice := v.child("authServices"); twice {
		if at, ok := v.child("authSources"); ok {
			at.fail("is the older name of authServices, which is also set", "leave it out")
		}
	}
	return spec
}

// claimList reads the auth services whose tokens contain the value, with the claim
// of each.
func claimList(to *[]parameter.Claim) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.failType("a list of auth services with the field of each", "for example [{name: my-auth, field: sub}]")
			return
		}
		for _, entry := range v.items() {
			var c parameter.Claim
			mappingField(field{"name", nonEmptyField(&c.Service)}, field{"field", nonEmptyField(&c.Field)})(entry)
			*to = append(*to, c)
		}
	}
}

// literalField reads one value of any type.
func literalField(to **parameter.Literal) func(value) {
	return func(v value) {
		l := v.literal()
		*to = &l
	}
}

// literalList reads a list of values of any type.
func literalList(to *[]parameter.Literal) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.failType("a list of values", "write ["+clip(v.node.Value)+"]")
			return
		}
		if len(v.node.Content) > maxLiterals {
			v.fail(fmt.Sprintf("has more than %d entries", maxLiterals), "")
			return
		}
		for _, entry := range v.items() {
			*to = append(*to, entry.literal())
		}
	}
}

// maxLiterals is the largest number of values in one list.
const maxLiterals = 10_000

// literal returns a value as it is written, with variables substituted.
func (v value) literal() parameter.Literal {
	switch v.node.Kind {
	case yaml.MappingNode:
		return parameter.Literal{Text: string(v.appendJSON(nil)), Kind: parameter.Mapping}
	case yaml.SequenceNode:
		return parameter.Literal{Text: string(v.appendJSON(nil)), Kind: parameter.Sequence}
	}
	switch v.node.Tag {
	case "!!null":
		return parameter.Literal{Kind: parameter.Null}
	case "!!bool":
		return parameter.Literal{Text: v.node.Value, Kind: parameter.Bool}
	case "!!int", "!!float":
		return parameter.Literal{Text: v.node.Value, Kind: parameter.Number}
	}
	s, _ := v.text()
	if v.hasVariable() {
		return parameter.Literal{Text: s, Kind: kindOfText(s)}
	}
	return parameter.Literal{Text: s}
}

// kindOfText returns the kind of a variable's value. Toolbox substitutes variables
// before it parses, so the value may be a number or a bool. Where a string is
// expected it stays a string.
func kindOfText(s string) parameter.Kind {
	switch {
	case s == "true" || s == "false":
		return parameter.Bool
	case isNumber(s):
		return parameter.Number
	}
	return parameter.String
}

// isNumber reports whether s is a JSON number.
func isNumber(s string) bool {
	return s != "" && strings.ContainsRune("-0123456789", rune(s[0])) && json.Valid([]byte(s))
}

// appendJSON appends a value as JSON. It does not go through Go numbers, which would
// lose digits. A number that is not a JSON number, such as
// 0x10, becomes a string.
func (v value) appendJSON(b []byte) []byte {
	switch v.node.Kind {
	case yaml.MappingNode:
		b = append(b, '{')
		for key, val := range v.pairs() {
			b = append(appendString(appendComma(b, '{'), key.node.Value), ':')
			b = val.appendJSON(b)
		}
		return append(b, '}')
	case yaml.SequenceNode:
		b = append(b, '[')
		for _, item := range v.items() {
			b = item.appendJSON(appendComma(b, '['))
		}
		return append(b, ']')
	}
	switch l := v.literal(); {
	case l.Kind == parameter.Null:
		return append(b, "null"...)
	case l.Kind == parameter.Bool:
		return append(b, strings.ToLower(l.Text)...)
	case l.Kind == parameter.Number && isNumber(l.Text):
		return append(b, l.Text...)
	default:
		return appendString(b, l.Text)
	}
}

// appendComma appends a comma unless b ends with the opening bracket.
func appendComma(b []byte, opening byte) []byte {
	if b[len(b)-1] == opening {
		return b
	}
	return append(b, ',')
}

// appendString appends s as a JSON string.
func appendString(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string always encodes
	return append(b, text...)
}

// locate returns the value at a path below v. If it does not exist, locate returns
// the nearest value above, with the full path, for an error there.
func (v value) locate(path string) value {
	here := v
	for rest := path; rest != ""; {
		var next value
		var ok bool
		if next, rest, ok = here.descend(rest); !ok {
			break
		}
		here = next
	}
	here.field = v.pathBelow(path)
	return here
}

// pathBelow returns the full path of a field below v.
func (v value) pathBelow(path string) string {
	if v.field == "" {
		return path
	}
	return v.field + "." + path
}

// descend follows the first name or index of a path and returns the rest.
func (v value) descend(path string) (next value, rest string, ok bool) {
	if index, found := strings.CutPrefix(path, "["); found {
		digits, rest, _ := strings.Cut(index, "]")
		i, err := strconv.Atoi(digits)
		if err != nil || v.node.Kind != yaml.SequenceNode || i >= len(v.node.Content) {
			return v, "", false
		}
		return v.doc.value(v.node.Content[i], v.field), strings.TrimPrefix(rest, "."), true
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	if v.node.Kind != yaml.MappingNode {
		return v, "", false
	}
	next, ok = v.child(path[:end])
	return next, strings.TrimPrefix(path[end:], "."), ok
}
