package argschema

import (
	"reflect"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxSteps limits how many values a validation compares with a schema. The validator tries
// every alternative at every level, so a schema that contains itself in three alternatives
// takes 3^n steps for n levels.
const maxSteps = 1 << 21

// maxValues limits the values that Validate decodes. A value takes up to 250 bytes then.
const maxValues = 1 << 18

// unbounded is the expansion of a schema that contains itself.
const unbounded = maxSteps + 1

// withinBudget reports whether doc, which has size bytes, can be validated in maxSteps. It
// counts the steps only if the size does not decide.
func (s *compiled) withinBudget(doc any, size int) bool {
	return s.expansion < unbounded && s.expansion*size <= maxSteps || stepCounter{}.steps(s.validator, doc) <= maxSteps
}

// expansion returns an upper bound of the steps of a validation with s for each value, or
// unbounded for a schema that contains itself. known has the results so far; a schema that is
// being counted is unbounded there.
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

// weight returns the steps of s for one value, without other schemas: the validator goes
// through its lists from end to end.
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

// totalWeight returns the sum of the weights of schemas.
func totalWeight(all []*jsonschema.Schema) (steps int) {
	for _, s := range all {
		steps += weight(s)
	}
	return steps
}

// children returns the schemas of the elements and properties of the value that s describes.
func children(s *jsonschema.Schema) []*jsonschema.Schema {
	list := append(items(s), otherProperties(s)...)
	for _, value := range s.Properties {
		list = append(list, value)
	}
	return append(list, s.PropertyNames)
}

// stepCounter counts the steps of one validation in advance. It has the results so far.
type stepCounter map[stepKey]int

// stepKey identifies a schema and the object or array that it is compared with, by address.
type stepKey struct {
	schema    *jsonschema.Schema
	container uintptr
}

// steps returns the steps that s takes for v and the values in it, at most unbounded.
func (m stepCounter) steps(s *jsonschema.Schema, v any) int {
	if s == nil {
		return 0
	}
	at := stepKey{s, address(v)}
	if known, ok := m[at]; ok {
		return known // 0 for a schema that refers to itself without going down, which the validator rejects
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

// children returns the steps that s takes for the values in v, at most unbounded.
func (m stepCounter) children(s *jsonschema.Schema, v any) (sum int) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if sum = min(sum+len(s.PatternProperties), unbounded); sum == unbounded {
				return sum // matching the patterns for further names would take as long
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

// address returns the address of an object or array, so that it can be a key. It is 0 for all
// values that contain nothing, as they take the same steps.
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
