package tool

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// describe gives one failure of the validator, for each field it names.
func describe(e *jsonschema.ValidationError) []problem {
	at := e.InstanceLocation
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return fields(at, k.Missing, "is missing")
	case *kind.Dependency:
		return fields(at, k.Missing, "is missing beside "+short(k.Prop))
	case *kind.DependentRequired:
		return fields(at, k.Missing, "is missing beside "+short(k.Prop))
	case *kind.AdditionalProperties:
		return fields(at, k.Properties, "is not a known property")
	case *kind.PropertyNames:
		return fields(at, []string{k.Property}, "is not an allowed property name")
	}
	return []problem{{at: at, kind: e.ErrorKind}}
}

// fields gives the same problem for each of several properties.
func fields(at, names []string, text string) []problem {
	list := make([]problem, 0, len(names))
	for _, name := range names {
		list = append(list, problem{at: append(slices.Clone(at), name), text: text})
	}
	return list
}

// ofValue words a failure that concerns one value.
func ofValue(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		want := slices.Compact(slices.Sorted(slices.Values(k.Want)))
		return fmt.Sprintf("want %s, got %s", strings.Join(want, " or "), k.Got)
	case *kind.Enum:
		return "want " + choice(k.Want)
	case *kind.Const:
		return "want " + value(k.Want)
	case *kind.Pattern:
		return "want text that matches " + short(k.Want)
	case *kind.Format:
		return "want a valid " + k.Want
	case *kind.UniqueItems:
		return fmt.Sprintf("elements %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.FalseSchema:
		return "is not allowed"
	case *kind.OneOf:
		return "matches several alternatives, want exactly one"
	case *kind.Contains, *kind.MinContains:
		return "too few elements are as wanted"
	case *kind.MaxContains:
		return "too many elements are as wanted"
	}
	if text := ofCount(k); text != "" {
		return text
	}
	return ofNumber(k)
}

// ofCount words a failure that concerns how long or large a value is.
func ofCount(k jsonschema.ErrorKind) string {
	const format = "want at %s %d %s, got %d"
	switch k := k.(type) {
	case *kind.MinLength:
		return fmt.Sprintf(format, "least", k.Want, "characters", k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf(format, "most", k.Want, "characters", k.Got)
	case *kind.MinItems:
		return fmt.Sprintf(format, "least", k.Want, "elements", k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf(format, "most", k.Want, "elements", k.Got)
	case *kind.MinProperties:
		return fmt.Sprintf(format, "least", k.Want, "properties", k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf(format, "most", k.Want, "properties", k.Got)
	}
	return ""
}

// ofNumber words a failure that concerns a number, or any other keyword.
func ofNumber(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return "want at least " + number(k.Want) + ", got " + number(k.Got)
	case *kind.Maximum:
		return "want at most " + number(k.Want) + ", got " + number(k.Got)
	case *kind.ExclusiveMinimum:
		return "want more than " + number(k.Want) + ", got " + number(k.Got)
	case *kind.ExclusiveMaximum:
		return "want less than " + number(k.Want) + ", got " + number(k.Got)
	case *kind.MultipleOf:
		return "want a multiple of " + number(k.Want) + ", got " + number(k.Got)
	case *kind.Not:
		return `is what "not" excludes`
	}
	return fmt.Sprintf("does not satisfy %q", strings.Join(k.KeywordPath(), " "))
}

func number(r *big.Rat) string {
	if r.IsInt() && r.Num().BitLen() < 128 {
		return r.Num().String()
	}
	return new(big.Float).SetRat(r).Text('g', 15)
}

// choice words the values of an enum, the first of many.
func choice(want []any) string {
	const most = 20
	words := make([]string, 0, min(len(want), most))
	for _, v := range want[:min(len(want), most)] {
		words = append(words, value(v))
	}
	if more := len(want) - most; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	if len(words) == 1 {
		return words[0]
	}
	return "one of " + strings.Join(words, ", ")
}

// value words a value of the schema as JSON.
func value(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // a decoded document always marshals
		return fmt.Sprint(v)
	}
	return short(string(text))
}

// short cuts what came from outside.
func short(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
