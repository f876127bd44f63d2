package argschema

import (
	"reflect"
	"unsafe"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// maxSteps limits how many values a validation compares with a schema. The validator tries
// every alternative at every level, so a schema that contains itself in three alternatives
// takes 3^n steps for n levels.
const maxSteps = 1 << 21

// patternBytesPerStep is how many bytes of a text match a pattern in one step.
const patternBytesPerStep = 32

// maxValues limits the values that Validate decodes.
const maxValues = strictjson.MaxDecoded

// tooMany stands for all numbers of steps above maxSteps, and for the steps of a schema that
// contains itself.
const tooMany = maxSteps + 1

// withinBudget reports whether doc, which has size bytes, can be validated in maxSteps. It
// counts the steps only if maxStepsPerValue does not decide.
//
// perValue*size is an upper bound. Every value and every name takes at least one byte of size. A
// text or name also takes more bytes than the steps of matching it with one pattern.
func (c *compiled) withinBudget(doc any, size int) bool {
	return c.perValue < tooMany && c.perValue*size <= maxSteps || stepCounter{}.steps(c.validator, doc) <= maxSteps
}

// maxStepsPerValue returns an upper bound of the steps of a validation with s for each value, or
// tooMany for a schema that contains itself. known has the results so far; a schema that is
// being counted is tooMany there.
func maxStepsPerValue(s *jsonschema.Schema, known map[*jsonschema.Schema]int) int {
	if s == nil {
		return 0
	}
	if steps, ok := known[s]; ok {
		return steps
	}
	known[s] = tooMany
	steps := weight(s)
	for _, next := range append(siblings(s), children(s)...) {
		steps = min(steps+maxStepsPerValue(next, known), tooMany)
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

// stepKey identifies a schema and the object, array or long text that it is compared with, by
// address.
type stepKey struct {
	schema    *jsonschema.Schema
	container uintptr
}

// steps returns the steps that s takes for v and the values in it, at most tooMany.
func (m stepCounter) steps(s *jsonschema.Schema, v any) int {
	if s == nil {
		return 0
	}
	at := stepKey{s, address(v)}
	if known, ok := m[at]; ok {
		return known
	}
	m[at] = 0 // while s is counted; the validator rejects a value for which s refers to itself
	sum := weight(s)
	if text, ok := v.(string); ok && s.Pattern != nil {
		sum += matchSteps(1, text)
	}
	for _, next := range siblings(s) {
		if sum >= tooMany {
			break
		}
		sum += m.steps(next, v)
	}
	if sum < tooMany {
		sum += m.children(s, v)
	}
	m[at] = min(sum, tooMany)
	return m[at]
}

// matchSteps returns the steps of matching a text with patterns, at most tooMany.
func matchSteps(patterns int, text string) int {
	return int(min(int64(patterns)*int64(1+len(text)/patternBytesPerStep), tooMany))
}

// children returns the steps that s takes for the values in v, at most tooMany. It stops
// there: counting on matches names with patterns, and would take as long as the validation.
func (m stepCounter) children(s *jsonschema.Schema, v any) (sum int) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			sum += matchSteps(len(s.PatternProperties), name) + m.steps(s.PropertyNames, name)
			if sum >= tooMany {
				return tooMany
			}
			for _, next := range append(valuesOf(s, name), s.UnevaluatedProperties) {
				if sum += m.steps(next, value); sum >= tooMany {
					return tooMany
				}
			}
		}
	case []any:
		for _, next := range items(s) {
			for _, value := range v {
				if sum += m.steps(next, value); sum >= tooMany {
					return tooMany
				}
			}
		}
	}
	return sum
}

// address returns the address of an object, a long text, or an array that is not empty, so that it
// can be a key. It is 0 for all other values. With one schema these take the same steps, but for
// the one step of a pattern.
func address(v any) uintptr {
	switch v := v.(type) {
	case map[string]any:
		return reflect.ValueOf(v).Pointer()
	case []any:
		if len(v) > 0 {
			return reflect.ValueOf(v).Pointer()
		}
	case string:
		if len(v) >= patternBytesPerStep {
			return uintptr(unsafe.Pointer(unsafe.StringData(v)))
		}
	}
	return 0
}
