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
	deferring = []string{"Ref", "AllOf", "AnyOf", "OneOf"} // to other schemas
	asserting = []string{
		"Bool", "Types", "Enum", "Const",
		"MaxProperties", "MinProperties", "Required", "Properties", "AdditionalProperties",
		"MinItems", "MaxItems", "UniqueItems", "Items", "Items2020",
		"MinLength", "MaxLength", "Pattern",
		"Maximum", "Minimum", "ExclusiveMaximum", "ExclusiveMinimum", "MultipleOf",
	}
	silent = []string{ // about the value
		"DraftVersion", "Location", "ID", "Anchor",
		"Title", "Description", "Default", "Comment", "ReadOnly", "WriteOnly", "Examples", "Deprecated",
	}
)

// rulesOf gives the Rules of the place that s alone describes, whose shape has
// all its names; nil if Rules cannot say everything that s says.
func rulesOf(s *jsonschema.Schema, shape *strictjson.Shape) *strictjson.Rules {
	r := ruler{shape: shape}
	return r.rules(s)
}

// ruler makes the Rules of one place.
type ruler struct {
	shape *strictjson.Shape
	trail []*jsonschema.Schema // that led here; one that leads to itself has no Rules
}

func (r *ruler) rules(s *jsonschema.Schema) *strictjson.Rules {
	if slices.Contains(r.trail, s) {
		return nil
	}
	r.trail = append(r.trail, s)
	defer func() { r.trail = r.trail[:len(r.trail)-1] }()
	switch saying := says(s); {
	case saying == (sayings{deferring: 1}) && len(s.AllOf) <= 1:
		return r.either(beside(s))
	case saying == (sayings{asserting: saying.asserting}):
		return leafRules(s, r.shape)
	}
	return nil
}

// either joins the Rules of alternatives, if the kind of a value tells which
// of them it has to keep.
func (r *ruler) either(alternatives []*jsonschema.Schema) *strictjson.Rules {
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

// sayings counts the fields a schema sets, by what they do.
type sayings struct{ deferring, asserting, other int }

func says(s *jsonschema.Schema) (n sayings) {
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
	sayings
}

var keywords = func() (list []keyword) {
	for f := range reflect.TypeFor[jsonschema.Schema]().Fields() {
		switch at := f.Index[0]; {
		case !f.IsExported() || slices.Contains(silent, f.Name):
		case slices.Contains(deferring, f.Name):
			list = append(list, keyword{at, sayings{deferring: 1}})
		case slices.Contains(asserting, f.Name):
			list = append(list, keyword{at, sayings{asserting: 1}})
		default:
			list = append(list, keyword{at, sayings{other: 1}})
		}
	}
	return list
}()
