package config

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/parameter"
)

// maxParameters is the most parameters of one list.
const maxParameters = 1000

// specList reads a list of parameters; in is the field that it stands in, if that
// does not follow from the list.
func specList(to *[]parameter.Spec, in string) func(value) {
	return func(v value) {
		if v.isNull() { // Toolbox takes a list without entries that way
			return
		}
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.failType("a list of parameters", "as [{name: number, type: integer, description: The flight's number}]")
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

// parameterSpec reads one parameter, or what the elements of an array are.
func (v value) parameterSpec() (spec parameter.Spec) {
	if v.node.Kind != yaml.MappingNode || !hasTag(v, "!!map") {
		v.failType("a parameter", "as {name: number, type: integer, description: The flight's number}")
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
			at.fail("is the older name of authServices, which is there too", "leave it out")
		}
	}
	return spec
}

// claimList reads the services whose tokens give the value.
func claimList(to *[]parameter.Claim) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.failType("a list of auth services with the field of each", "as [{name: my-auth, field: sub}]")
			return
		}
		for _, entry := range v.items() {
			var c parameter.Claim
			mappingField(field{"name", nonEmptyField(&c.Service)}, field{"field", nonEmptyField(&c.Field)})(entry)
			*to = append(*to, c)
		}
	}
}

func literalField(to **parameter.Literal) func(value) {
	return func(v value) {
		l := v.literal()
		*to = &l
	}
}

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

// maxLiterals is the most values of one list.
const maxLiterals = 10_000

// literal gives a value as it is written, its variables substituted.
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

// kindOfText says what the value of a variable is: Toolbox substitutes before
// it reads, so it may be a number. Where a text is wanted it stays one.
func kindOfText(s string) parameter.Kind {
	switch {
	case s == "true" || s == "false":
		return parameter.Bool
	case isNumber(s):
		return parameter.Number
	}
	return parameter.String
}

// isNumber says whether a text is a number as JSON writes them.
func isNumber(s string) bool {
	return s != "" && strings.ContainsRune("-0123456789", rune(s[0])) && json.Valid([]byte(s))
}

// appendJSON appends a value as JSON; a number that JSON writes otherwise
// becomes a text.
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

// appendComma puts a comma between values.
func appendComma(b []byte, opening byte) []byte {
	if b[len(b)-1] == opening {
		return b
	}
	return append(b, ',')
}

func appendString(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // of a string never fails
	return append(b, text...)
}

// locate gives the value at a path below v, or the place where it would stand.
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

// pathBelow gives the path of a field below v.
func (v value) pathBelow(path string) string {
	if v.field == "" {
		return path
	}
	return v.field + "." + path
}

// descend goes one name or index along a path.
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
