package tool

import (
	"errors"
	"reflect"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxSteps bounds how often a validation looks at a value with a schema. The
// validator tries every alternative of every level, so a schema that contains
// itself in three alternatives takes 3^n steps for n levels.
const maxSteps = 1 << 20

// errCost refuses arguments whose validation would take more than maxSteps.
var errCost = errors.New("nest too deep for the alternatives of the tool's schema: use fewer levels")

// expansion counts the schemas a validation may visit below s, each as often
// as it is reached; endless for a schema that contains itself.
func expansion(s *jsonschema.Schema, known map[*jsonschema.Schema]int) (steps int, endless bool) {
	if s == nil {
		return 0, false
	}
	if steps, ok := known[s]; ok {
		return steps, steps == 0 // 0: s is being counted
	}
	known[s] = 0
	steps = 1
	for _, next := range append(beside(s), below(s)...) {
		more, loops := expansion(next, known)
		endless = endless || loops
		steps = min(steps+more, maxSteps+1)
	}
	known[s] = steps
	return steps, endless
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

// steps counts the visits s makes on v and inside it, up to maxSteps+1.
func (m meter) steps(s *jsonschema.Schema, v any) int {
	if s == nil {
		return 0
	}
	at := visit{s, address(v)}
	if known, ok := m[at]; ok && at.container != 0 {
		return known // 0 for a reference back to itself, which the validator refuses
	}
	m[at] = 0
	sum := 1
	for _, next := range beside(s) {
		sum = min(sum+m.steps(next, v), maxSteps+1)
	}
	sum = min(sum+m.inside(s, v), maxSteps+1)
	m[at] = sum
	return sum
}

func (m meter) inside(s *jsonschema.Schema, v any) (sum int) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			for _, next := range append(valuesOf(s, name), s.UnevaluatedProperties) {
				sum = min(sum+m.steps(next, value), maxSteps+1)
			}
		}
	case []any:
		for _, next := range items(s) {
			for _, value := range v {
				sum = min(sum+m.steps(next, value), maxSteps+1)
			}
		}
	}
	return sum
}

// address tells containers apart; 0 for what contains nothing.
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
