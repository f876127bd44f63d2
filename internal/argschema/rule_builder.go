package argschema

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// The fields of a compiled schema that ruleSets and Shapes can represent. A schema that sets
// any other field has no ruleSet. This includes fields that a later version of the library may
// add.
var (
	applicators = []string{"Ref", "AllOf", "AnyOf", "OneOf"} // apply other schemas
	assertions  = []string{
		"Bool", "Types", "Enum", "Const",
		"MaxProperties", "MinProperties", "Required", "Properties", "AdditionalProperties",
		"MinItems", "MaxItems", "UniqueItems", "Items", "Items2020",
		"MinLength", "MaxLength", "Pattern",
		"Maximum", "Minimum", "ExclusiveMaximum", "ExclusiveMinimum", "MultipleOf",
	}
	annotations = []string{ // do not restrict the value
		"DraftVersion", "Location", "ID", "Anchor",
		"Title", "Description", "Default", "Comment", "ReadOnly", "WriteOnly", "Examples", "Deprecated",
	}
)

// rulesOf returns the rules of a place that s alone describes and whose names are in keys. It
// returns nil if a ruleSet cannot represent all of s.
func rulesOf(s *jsonschema.Schema, keys *strictjson.Shape) *ruleSet {
	r := ruleBuilder{shape: keys}
	return r.rules(s)
}

// ruleBuilder builds the ruleSet of one place.
type ruleBuilder struct {
	shape *strictjson.Shape
	path  []*jsonschema.Schema // from the first schema to the current one, to detect cycles
}

// rules returns the rules of s. It returns nil for a schema that refers to itself without going
// down, or has keywords that a ruleSet cannot represent.
func (r *ruleBuilder) rules(s *jsonschema.Schema) *ruleSet {
	if slices.Contains(r.path, s) {
		return nil
	}
	r.path = append(r.path, s)
	defer func() { r.path = r.path[:len(r.path)-1] }()
	switch n := countKeywords(s); {
	case n == (keywordCount{applying: 1}) && len(s.AllOf) <= 1:
		return r.union(siblings(s))
	case n == (keywordCount{asserting: n.asserting}):
		return constraintRules(s, r.shape)
	}
	return nil
}

// union returns the combined rules of alternatives that allow different kinds of values, so
// that the kind decides which of them applies. It returns nil for other alternatives.
func (r *ruleBuilder) union(alternatives []*jsonschema.Schema) *ruleSet {
	sum := new(ruleSet)
	for _, s := range alternatives {
		if s == nil {
			continue
		}
		one := r.rules(s)
		if one == nil || one.kinds == 0 || one.kinds&sum.kinds != 0 {
			return nil
		}
		sum = join(sum, one)
	}
	return sum
}

// join combines two ruleSets of different kinds.
func join(a, b *ruleSet) *ruleSet {
	return &ruleSet{
		kinds:   a.kinds | b.kinds,
		strings: cmp.Or(a.strings, b.strings),
		numbers: cmp.Or(a.numbers, b.numbers),
		arrays:  cmp.Or(a.arrays, b.arrays),
		objects: cmp.Or(a.objects, b.objects),
	}
}

// keywordCount is the number of fields that a schema sets: applicators, assertions and others.
type keywordCount struct{ applying, asserting, other int }

// countKeywords returns the number of fields that s sets, without annotations.
func countKeywords(s *jsonschema.Schema) (n keywordCount) {
	v := reflect.ValueOf(s).Elem()
	for _, f := range keywords {
		if !v.Field(f.field).IsZero() {
			n.applying += f.applying
			n.asserting += f.asserting
			n.other += f.other
		}
	}
	return n
}

// keyword is a field of a compiled schema that is not an annotation, with the count it adds.
type keyword struct {
	field int
	keywordCount
}

var keywords = func() (list []keyword) {
	for f := range reflect.TypeFor[jsonschema.Schema]().Fields() {
		switch at := f.Index[0]; {
		case !f.IsExported() || slices.Contains(annotations, f.Name):
		case slices.Contains(applicators, f.Name):
			list = append(list, keyword{at, keywordCount{applying: 1}})
		case slices.Contains(assertions, f.Name):
			list = append(list, keyword{at, keywordCount{asserting: 1}})
		default:
			list = append(list, keyword{at, keywordCount{other: 1}})
		}
	}
	return list
}()
