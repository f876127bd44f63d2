package tool

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// The fields of a compiled schema that Rules and Shapes can stand for. A
// schema that sets any other has no Rules, so nothing is overlooked, not even
// a field that a later version of the library brings.
var (
	applicators = []string{"Ref", "AllOf", "AnyOf", "OneOf"} // to other schemas
	assertions  = []string{
		"Bool", "Types", "Enum", "Const",
		"MaxProperties", "MinProperties", "Required", "Properties", "AdditionalProperties",
		"MinItems", "MaxItems", "UniqueItems", "Items", "Items2020",
		"MinLength", "MaxLength", "Pattern",
		"Maximum", "Minimum", "ExclusiveMaximum", "ExclusiveMinimum", "MultipleOf",
	}
	annotations = []string{ // about the value
		"DraftVersion", "Location", "ID", "Anchor",
		"Title", "Description", "Default", "Comment", "ReadOnly", "WriteOnly", "Examples", "Deprecated",
	}
)

// rulesOf gives the Rules of the place that s alone describes, whose shape has
// all its names; nil if Rules cannot say everything that s says.
func rulesOf(s *jsonschema.Schema, shape *strictjson.KeySet) *strictjson.Rules {
	r := ruleBuilder{shape: shape}
	return r.rules(s)
}

// ruleBuilder makes the Rules of one place.
type ruleBuilder struct {
	shape *strictjson.KeySet
	trail []*jsonschema.Schema // that led here; one that leads to itself has no Rules
}

func (r *ruleBuilder) rules(s *jsonschema.Schema) *strictjson.Rules {
	if slices.Contains(r.trail, s) {
		return nil
	}
	r.trail = append(r.trail, s)
	defer func() { r.trail = r.trail[:len(r.trail)-1] }()
	switch saying := countKeywords(s); {
	case saying == (keywordCount{deferring: 1}) && len(s.AllOf) <= 1:
		return r.union(siblings(s))
	case saying == (keywordCount{asserting: saying.asserting}):
		return constraintRules(s, r.shape)
	}
	return nil
}

// union joins the Rules of alternatives, if the kind of a value tells which
// of them it has to keep.
func (r *ruleBuilder) union(alternatives []*jsonschema.Schema) *strictjson.Rules {
	sum := new(strictjson.Rules)
	for _, s := range alternatives {
		if s == nil {
			continue
		}
		one := r.rules(s)
		if one == nil || one.Kinds == 0 || one.Kinds&sum.Kinds != 0 {
			return nil
		}
		sum = join(sum, one)
	}
	return sum
}

// join adds Rules of other kinds.
func join(a, b *strictjson.Rules) *strictjson.Rules {
	return &strictjson.Rules{
		Kinds:   a.Kinds | b.Kinds,
		Texts:   cmp.Or(a.Texts, b.Texts),
		Numbers: cmp.Or(a.Numbers, b.Numbers),
		Arrays:  cmp.Or(a.Arrays, b.Arrays),
		Objects: cmp.Or(a.Objects, b.Objects),
	}
}

// keywordCount counts the fields a schema sets, by what they do.
type keywordCount struct{ deferring, asserting, other int }

func countKeywords(s *jsonschema.Schema) (n keywordCount) {
	v := reflect.ValueOf(s).Elem()
	for _, f := range keywords {
		if !v.Field(f.at).IsZero() {
			n.deferring += f.deferring
			n.asserting += f.asserting
			n.other += f.other
		}
	}
	return n
}

// keyword is a field of a compiled schema that is not silent.
type keyword struct {
	at int
	keywordCount
}

var keywords = func() (list []keyword) {
	for f := range reflect.TypeFor[jsonschema.Schema]().Fields() {
		switch at := f.Index[0]; {
		case !f.IsExported() || slices.Contains(annotations, f.Name):
		case slices.Contains(applicators, f.Name):
			list = append(list, keyword{at, keywordCount{deferring: 1}})
		case slices.Contains(assertions, f.Name):
			list = append(list, keyword{at, keywordCount{asserting: 1}})
		default:
			list = append(list, keyword{at, keywordCount{other: 1}})
		}
	}
	return list
}()
