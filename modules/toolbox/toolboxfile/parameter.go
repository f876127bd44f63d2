package toolboxfile

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

// maxParameters is the largest number of parameters in one list.
const maxParameters = 1000

// specList reads a list of parameters. in is the field with the list; "" means the
// default field of parameter.CompileSet.
func specList(to *[]parameter.Spec, in string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if v.IsNull() { // like Toolbox, accept a field without a value as an empty list
			return
		}
		if !v.IsList() {
			v.AddTypeError("a list of parameters", "for example [{name: number, type: integer, description: The flight's number}]")
			return
		}
		if len(v.Node.Content) > maxParameters {
			v.AddError(fmt.Sprintf("has more than %d entries", maxParameters), "")
			return
		}
		for i, entry := range v.ListItems() {
			spec := readSpec(entry)
			if in != "" {
				spec.At = in + "[" + strconv.Itoa(i) + "]"
			}
			*to = append(*to, spec)
		}
	}
}

// readSpec reads one parameter, or the type of an array's elements.
func readSpec(v yamldoc.Value) (spec parameter.Spec) {
	if !v.IsMapping() {
		v.AddTypeError("a parameter", "for example {name: number, type: integer, description: The flight's number}")
		return spec
	}
	claims := claimList(&spec.Auth)
	v.ReadFields(yamldoc.Fields{
		"name":           yamldoc.TextField(&spec.Name),
		"type":           yamldoc.TextField(&spec.Type),
		"description":    yamldoc.ScalarField(&spec.Description),
		"required":       yamldoc.OptionalBool(&spec.Required),
		"default":        literalField(&spec.Default),
		"allowedValues":  literalList(&spec.Allowed),
		"excludedValues": literalList(&spec.Excluded),
		"minValue":       literalField(&spec.Min),
		"maxValue":       literalField(&spec.Max),
		"escape":         yamldoc.TextField(&spec.Escape),
		"items":          func(v yamldoc.Value) { items := readSpec(v); spec.Items = &items },
		"valueType":      yamldoc.TextField(&spec.ValueType),
		"valueFromParam": yamldoc.NonEmptyField(&spec.From),
		"authServices":   claims,
		"authSources":    claims, // its older name
		"secure":         yamldoc.BoolField(&spec.Secure),
		"embeddedBy":     yamldoc.NonEmptyField(&spec.EmbeddedBy),
	})
	if _, twice := v.FindField("authServices"); twice {
		if at, ok := v.FindField("authSources"); ok {
			at.AddError("is the older name of authServices, which is also set", "leave it out")
		}
	}
	return spec
}

// claimList reads the auth services whose tokens contain the value, with the claim
// of each.
func claimList(to *[]parameter.Claim) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsList() {
			v.AddTypeError("a list of auth services with the field of each", "for example [{name: my-auth, field: sub}]")
			return
		}
		for _, entry := range v.ListItems() {
			var c parameter.Claim
			yamldoc.MappingField(yamldoc.Fields{"name": yamldoc.NonEmptyField(&c.Service), "field": yamldoc.NonEmptyField(&c.Field)})(entry)
			*to = append(*to, c)
		}
	}
}

// literalField reads one value of any type.
func literalField(to **parameter.Literal) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		l := readLiteral(v)
		*to = &l
	}
}

// literalList reads a list of values of any type.
func literalList(to *[]parameter.Literal) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsList() {
			v.AddTypeError("a list of values", "write ["+yamldoc.ClipText(v.Node.Value)+"]")
			return
		}
		if len(v.Node.Content) > maxLiterals {
			v.AddError(fmt.Sprintf("has more than %d entries", maxLiterals), "")
			return
		}
		for _, entry := range v.ListItems() {
			*to = append(*to, readLiteral(entry))
		}
	}
}

// maxLiterals is the largest number of values in one list.
const maxLiterals = 10_000

// readLiteral returns a value as it is written, with variables substituted.
func readLiteral(v yamldoc.Value) parameter.Literal {
	switch v.Node.Kind {
	case yaml.MappingNode:
		return parameter.Literal{Text: string(appendJSON(nil, v)), Kind: parameter.KindMapping}
	case yaml.SequenceNode:
		return parameter.Literal{Text: string(appendJSON(nil, v)), Kind: parameter.KindSequence}
	}
	switch v.Node.Tag {
	case "!!null":
		return parameter.Literal{Kind: parameter.KindNull}
	case "!!bool":
		return parameter.Literal{Text: v.Node.Value, Kind: parameter.KindBool}
	case "!!int", "!!float":
		return parameter.Literal{Text: v.Node.Value, Kind: parameter.KindNumber}
	}
	s, _ := v.ReadText()
	if v.HasVariable() {
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
		return parameter.KindBool
	case isNumber(s):
		return parameter.KindNumber
	}
	return parameter.KindString
}

// isNumber reports whether s is a JSON number.
func isNumber(s string) bool {
	return s != "" && strings.ContainsRune("-0123456789", rune(s[0])) && json.Valid([]byte(s))
}

// appendJSON appends a value as JSON. It does not go through Go numbers, which would
// lose digits. A number that is not a JSON number, such as
// 0x10, becomes a string.
func appendJSON(b []byte, v yamldoc.Value) []byte {
	switch v.Node.Kind {
	case yaml.MappingNode:
		b = append(b, '{')
		for key, val := range v.MapPairs() {
			b = append(appendString(appendComma(b, '{'), key.Node.Value), ':')
			b = appendJSON(b, val)
		}
		return append(b, '}')
	case yaml.SequenceNode:
		b = append(b, '[')
		for _, item := range v.ListItems() {
			b = appendJSON(appendComma(b, '['), item)
		}
		return append(b, ']')
	}
	switch l := readLiteral(v); {
	case l.Kind == parameter.KindNull:
		return append(b, "null"...)
	case l.Kind == parameter.KindBool:
		return append(b, strings.ToLower(l.Text)...)
	case l.Kind == parameter.KindNumber && isNumber(l.Text):
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
