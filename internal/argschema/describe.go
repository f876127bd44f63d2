package argschema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/rolecall/rolecall/internal/textutil"
)

// describe returns the problems of one error of the validator: one for each property it names.
func describe(e *jsonschema.ValidationError) []problem {
	at := e.InstanceLocation
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return problemsOf(at, k.Missing, "is missing")
	case *kind.Dependency:
		return problemsOf(at, k.Missing, "is missing, required with "+truncate(k.Prop))
	case *kind.DependentRequired:
		return problemsOf(at, k.Missing, "is missing, required with "+truncate(k.Prop))
	case *kind.AdditionalProperties:
		return []problem{{at: at, unknown: k.Properties}}
	case *kind.PropertyNames:
		return problemsOf(at, []string{k.Property}, "is not an allowed property name")
	}
	return []problem{{at: at, kind: e.ErrorKind}}
}

// problemsOf returns the same problem for each of several properties.
func problemsOf(at, names []string, text string) []problem {
	list := make([]problem, 0, len(names))
	for _, name := range names {
		list = append(list, problem{at: append(slices.Clone(at), name), text: text})
	}
	return list
}

// formatValueProblem describes an error that concerns one value.
func formatValueProblem(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		want := slices.Compact(slices.Sorted(slices.Values(k.Want)))
		return fmt.Sprintf("want %s, got %s", strings.Join(want, " or "), k.Got)
	case *kind.Enum:
		return "want " + formatEnum(k.Want)
	case *kind.Const:
		return "want " + formatJSON(k.Want)
	case *kind.Pattern:
		return "want text that matches " + truncate(k.Want)
	case *kind.Format:
		return "want a valid " + k.Want
	case *kind.UniqueItems:
		return fmt.Sprintf("elements %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.FalseSchema:
		return "is not allowed"
	case *kind.OneOf:
		return "matches several alternatives, want exactly one"
	case *kind.Contains, *kind.MinContains:
		return "too few elements match"
	case *kind.MaxContains:
		return "too many elements match"
	}
	if text := formatCountProblem(k); text != "" {
		return text
	}
	return formatNumberProblem(k)
}

// formatCountProblem describes an error about the length of a value, "" for other errors.
func formatCountProblem(k jsonschema.ErrorKind) string {
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

// formatNumberProblem describes an error about a number or about any other keyword.
func formatNumberProblem(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return "want at least " + formatNumber(k.Want) + ", got " + formatNumber(k.Got)
	case *kind.Maximum:
		return "want at most " + formatNumber(k.Want) + ", got " + formatNumber(k.Got)
	case *kind.ExclusiveMinimum:
		return "want more than " + formatNumber(k.Want) + ", got " + formatNumber(k.Got)
	case *kind.ExclusiveMaximum:
		return "want less than " + formatNumber(k.Want) + ", got " + formatNumber(k.Got)
	case *kind.MultipleOf:
		return "want a multiple of " + formatNumber(k.Want) + ", got " + formatNumber(k.Got)
	case *kind.Not:
		return `matches what "not" forbids`
	case *kind.RefCycle:
		return "fits no schema that refers to itself alone"
	}
	return fmt.Sprintf("does not satisfy %q", strings.Join(k.KeywordPath(), " "))
}

// formatNumber returns an integer in full and other numbers with 15 digits.
func formatNumber(r *big.Rat) string {
	if r.IsInt() && r.Num().BitLen() < 128 {
		return r.Num().String()
	}
	return new(big.Float).SetRat(r).Text('g', 15)
}

// formatEnum returns the first values of an enum.
func formatEnum(want []any) string {
	const limit = 20
	words := make([]string, 0, min(len(want), limit))
	for _, v := range want[:min(len(want), limit)] {
		words = append(words, formatJSON(v))
	}
	if more := len(want) - limit; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	if len(words) == 1 {
		return words[0]
	}
	return "one of " + strings.Join(words, ", ")
}

// formatJSON returns a value of the schema as JSON.
func formatJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // a decoded document always marshals
		return fmt.Sprint(v)
	}
	return truncate(string(text))
}

// truncate shortens text from outside for an error.
func truncate(text string) string { return textutil.Truncate(text, 80) }
