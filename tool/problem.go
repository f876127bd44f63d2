package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxProblems is how many problems an explanation lists: enough to repair a
// call, few enough to read.
const maxProblems = 5

// explain words why doc was refused: the first problems by field, as in
// `items[2].name: is missing; limit: want integer, got string`.
func explain(doc any, err error) string {
	e, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err.Error()
	}
	list := problems(e)
	slices.SortStableFunc(list, byPath) // the validator goes through maps
	var lines []string
	for _, p := range list[:min(len(list), 4*maxProblems)] { // there may be a million
		lines = append(lines, p.in(doc))
	}
	lines = slices.Compact(lines)
	if len(lines) > maxProblems {
		lines = append(lines[:maxProblems], fmt.Sprintf("and %d more", len(list)-maxProblems))
	}
	return strings.Join(lines, "; ")
}

// problem is one thing that is wrong with one place of a document.
type problem struct {
	at   []string // the place, as a JSON pointer has it
	kind jsonschema.ErrorKind
	text string // instead of what kind says
}

func byPath(a, b problem) int { return slices.Compare(a.at, b.at) }

// in words the problem with its place in doc.
func (p problem) in(doc any) string {
	text := p.text
	if text == "" {
		text = ofValue(p.kind)
	}
	if where := path(doc, p.at); where != "" {
		return where + ": " + text
	}
	return text
}

// notInEnum says whether the value is none of those listed.
func (p problem) notInEnum() bool {
	switch p.kind.(type) {
	case *kind.Enum, *kind.Const:
		return true
	}
	return false
}

// problems flattens the validator's tree.
func problems(e *jsonschema.ValidationError) []problem {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		if len(e.Causes) > 0 {
			return nearest(e)
		}
	case *kind.Not, *kind.PropertyNames, *kind.Contains, *kind.MinContains, *kind.MaxContains:
		return describe(e) // its causes speak of what is no field
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

// nearest explains why no alternative matched: by the one that came nearest
// or, if the value is of no alternative's type, by all their types.
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

// typeMismatch gives the type problem of e's own value in list.
func typeMismatch(list []problem, e *jsonschema.ValidationError) *kind.Type {
	for _, p := range list {
		if t, ok := p.kind.(*kind.Type); ok && len(p.at) == len(e.InstanceLocation) {
			return t
		}
	}
	return nil
}

// distance says how far an alternative of e is from matching. One of another
// type is farthest; then one that a fixed value tells from the others.
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
