package tool

import (
	"reflect"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxSteps bounds how often a validation looks at a value with a schema. The
// validator tries every alternative at every level, so a schema that contains
// itself in three alternatives takes 3^n steps for n levels.
const maxSteps = 1 << 21

// endless is the expansion of a schema that contains itself.
const endless = maxSteps + 1

// affordable says whether doc, which is size bytes long, can be validated in
// maxSteps. It counts only where a bound by size does not settle it.
func (s *compiled) affordable(doc any, size int) bool {
	return s.expansion < endless && s.expansion*size <= maxSteps || meter{}.steps(s.rules, doc) <= maxSteps
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
	known[s] = endless
	steps := weight(s)
	for _, next := range append(beside(s), below(s)...) {
		steps = min(steps+expansion(next, known), endless)
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

// weights sums the weights of schemas that apply to one place.
func weights(all []*jsonschema.Schema) (steps int) {
	for _, s := range all {
		steps += weight(s)
	}
	return steps
}

// below gives the schemas for what is inside the value that s describes.
func below(s *jsonschema.Schema) []*jsonschema.Schema {
	list := append(items(s), others(s)...)
	for _, value := range s.Properties {
		list = append(list, value)
	}
	return append(list, s.PropertyNames)
}

// meter counts the steps of one validation without making them.
type meter map[visit]int

// visit is a schema on a container, by the container's address.
type visit struct {
	schema    *jsonschema.Schema
	container uintptr
}

// steps counts the visits s makes on v and inside it, up to endless.
func (m meter) steps(s *jsonschema.Schema, v any) int {
	if s == nil {
		return 0
	}
	at := visit{s, address(v)}
	if known, ok := m[at]; ok {
		return known // 0 for a reference back to itself, which the validator refuses
	}
	m[at] = 0
	sum := weight(s)
	for _, next := range beside(s) {
		sum = min(sum+m.steps(next, v), endless)
	}
	sum = min(sum+m.inside(s, v), endless)
	m[at] = sum
	return sum
}

func (m meter) inside(s *jsonschema.Schema, v any) (sum int) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if sum = min(sum+len(s.PatternProperties), endless); sum == endless {
				return sum // to look for the patterns takes as long
			}
			for _, next := range append(valuesOf(s, name), s.UnevaluatedProperties) {
				sum = min(sum+m.steps(next, value), endless)
			}
		}
	case []any:
		for _, next := range items(s) {
			for _, value := range v {
				sum = min(sum+m.steps(next, value), endless)
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
