package tool

import (
	"reflect"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxSteps bounds how often a validation looks at a value with a schema. The
// validator tries every alternative at every level, so a schema that contains
// itself in three alternatives takes 3^n steps for n levels.
const maxSteps = 1 << 21

// unbounded is the expansion of a schema that contains itself.
const unbounded = maxSteps + 1

// withinBudget says whether doc, which is size bytes long, can be validated in
// maxSteps. It counts only where a bound by size does not settle it.
func (s *compiled) withinBudget(doc any, size int) bool {
	return s.expansion < unbounded && s.expansion*size <= maxSteps || stepCounter{}.steps(s.rules, doc) <= maxSteps
}

// expansion counts the schemas a validation may visit from s on, each as often
// as it is reached. known holds those counted, and those begun as endless.
func expansion(s *jsonschema.Schema, known map[*jsonschema.Schema]int) int {
	if s == nil {
		return 0
	}
	if steps, ok := known[s]; ok {
		return steps
	}
	known[s] = unbounded
	steps := weight(s)
	for _, next := range append(siblings(s), children(s)...) {
		steps = min(steps+expansion(next, known), unbounded)
	}
	known[s] = steps
	return steps
}

// weight is how many steps one look at a value with s takes: the validator
// goes through lists from end to end, and names what it misses.
func weight(s *jsonschema.Schema) int {
	steps := 1 + len(s.Required)
	if s.Enum != nil {
		steps += len(s.Enum.Values)
	}
	for _, names := range s.DependentRequired {
		steps += len(names)
	}
	for _, d := range s.Dependencies {
		names, _ := d.([]string)
		steps += len(names)
	}
	return steps
}

// totalWeight sums the weights of schemas that apply to one place.
func totalWeight(all []*jsonschema.Schema) (steps int) {
	for _, s := range all {
		steps += weight(s)
	}
	return steps
}

// children gives the schemas for what is inside the value that s describes.
func children(s *jsonschema.Schema) []*jsonschema.Schema {
	list := append(items(s), otherProperties(s)...)
	for _, value := range s.Properties {
		list = append(list, value)
	}
	return append(list, s.PropertyNames)
}

// stepCounter counts the steps of one validation without making them.
type stepCounter map[stepKey]int

// stepKey is a schema on a container, by the container's address.
type stepKey struct {
	schema    *jsonschema.Schema
	container uintptr
}

// steps counts the visits s makes on v and inside it, up to endless.
func (m stepCounter) steps(s *jsonschema.Schema, v any) int {
	if s == nil {
		return 0
	}
	at := stepKey{s, address(v)}
	if known, ok := m[at]; ok {
		return known // 0 for a reference back to itself, which the validator refuses
	}
	m[at] = 0
	sum := weight(s)
	for _, next := range siblings(s) {
		sum = min(sum+m.steps(next, v), unbounded)
	}
	sum = min(sum+m.children(s, v), unbounded)
	m[at] = sum
	return sum
}

func (m stepCounter) children(s *jsonschema.Schema, v any) (sum int) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if sum = min(sum+len(s.PatternProperties), unbounded); sum == unbounded {
				return sum // to look for the patterns takes as long
			}
			for _, next := range append(valuesOf(s, name), s.UnevaluatedProperties) {
				sum = min(sum+m.steps(next, value), unbounded)
			}
		}
	case []any:
		for _, next := range items(s) {
			for _, value := range v {
				sum = min(sum+m.steps(next, value), unbounded)
			}
		}
	}
	return sum
}

// address tells containers apart. It is 0 for all that contain nothing: they
// cost the same.
func address(v any) uintptr {
	switch v := v.(type) {
	case map[string]any:
		return reflect.ValueOf(v).Pointer()
	case []any:
		if len(v) > 0 {
			return reflect.ValueOf(v).Pointer()
		}
	}
	return 0
}
