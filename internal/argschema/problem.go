package argschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxProblems is the maximum number of problems in an error: enough for a model to repair its
// call, few enough to read.
const maxProblems = 5

// explain describes a validation error of doc: the first problems, sorted by their place, as in
// `items[2].name: is missing; limit: want integer, got string`. shown are the schemas whose
// names it lists, see ValidateShown.
func explain(doc any, err error, shown ...json.RawMessage) string {
	e, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err.Error()
	}
	list := problems(e)
	slices.SortStableFunc(list, byPath) // the validator iterates over maps
	var lines []string
	for _, p := range list[:min(len(list), 4*maxProblems)] { // there may be millions
		lines = append(lines, p.format(doc, shown))
	}
	lines = slices.Compact(lines)
	if len(lines) > maxProblems {
		lines = append(lines[:maxProblems], fmt.Sprintf("and %d more", len(list)-maxProblems))
	}
	return strings.Join(lines, "; ")
}

// problem is one error at one place of a document.
type problem struct {
	at   []string // the tokens of a JSON pointer to the place
	kind jsonschema.ErrorKind
	text string // the description, if kind is nil

	unknown []string // names that the object at this place may not have
}

func byPath(a, b problem) int { return slices.Compare(a.at, b.at) }

// format returns the problem with its place in doc.
func (p problem) format(doc any, shown []json.RawMessage) string {
	text := p.text
	switch {
	case p.unknown != nil:
		text = formatUnknown(p.unknown, firstNames(doc, p.at, shown))
	case text == "":
		text = formatValueProblem(p.kind)
	}
	if where := formatPath(doc, p.at); where != "" {
		return where + ": " + text
	}
	return text
}

// notInEnum reports whether the value is not one of the listed values.
func (p problem) notInEnum() bool {
	switch p.kind.(type) {
	case *kind.Enum, *kind.Const:
		return true
	}
	return false
}

// problems returns the problems in the validator's tree of errors.
func problems(e *jsonschema.ValidationError) []problem {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		if len(e.Causes) > 0 {
			return nearest(e)
		}
	case *kind.Not, *kind.PropertyNames, *kind.Contains, *kind.MinContains, *kind.MaxContains:
		return describe(e) // the causes do not concern fields
	}
	if len(e.Causes) == 0 {
		return describe(e)
	}
	var list []problem
	for _, cause := range e.Causes {
		list = append(list, problems(cause)...)
	}
	return list
}

// nearest returns the problems of the alternative that matched best. If the value has the type
// of no alternative, it returns one problem with the types of all.
func nearest(e *jsonschema.ValidationError) []problem {
	var best []problem
	var types kind.Type
	for _, cause := range e.Causes {
		list := problems(cause)
		if t := typeMismatch(list, e); t != nil {
			types.Got, types.Want = t.Got, append(types.Want, t.Want...)
		}
		if best == nil || distance(list, e) < distance(best, e) {
			best = list
		}
	}
	if typeMismatch(best, e) == nil {
		return best
	}
	return []problem{{at: e.InstanceLocation, kind: &types}}
}

// typeMismatch returns the problem in list that e's value has another type, nil if there is none.
func typeMismatch(list []problem, e *jsonschema.ValidationError) *kind.Type {
	for _, p := range list {
		if t, ok := p.kind.(*kind.Type); ok && len(p.at) == len(e.InstanceLocation) {
			return t
		}
	}
	return nil
}

// distance returns how far an alternative of e is from matching. Another type counts most; then
// a value that is not in an enum, since it usually distinguishes the alternatives.
func distance(list []problem, e *jsonschema.ValidationError) int {
	sum := len(list)
	for _, p := range list {
		if p.notInEnum() {
			sum += 1000
		}
	}
	if typeMismatch(list, e) != nil {
		sum += 1_000_000
	}
	return sum
}
