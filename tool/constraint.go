package tool

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// constraint makes the Rules of a schema that sets asserting fields only. Of kinds
// that are not allowed there are none.
type constraint struct {
	*jsonschema.Schema
	shape       *strictjson.KeySet
	kinds       strictjson.Kinds
	fixed       enumValues
	unsupported bool // something cannot be said in Rules
}

// constraintRules gives the Rules of s; nil if Rules cannot say all of it.
func constraintRules(s *jsonschema.Schema, shape *strictjson.KeySet) *strictjson.Rules {
	fixed, ok := enumOf(s)
	l := constraint{Schema: s, shape: shape, kinds: kindsOf(s) & fixed.kinds, fixed: fixed}
	l.unsupported = !ok || !l.ok()
	rules := &strictjson.Rules{Kinds: l.kinds, Texts: l.texts(), Numbers: l.numbers(), Arrays: l.arrays(), Objects: l.objects()}
	if l.unsupported {
		return nil
	}
	return rules
}

func (l *constraint) allows(kind strictjson.Kinds) bool { return l.kinds&kind != 0 }

func (l *constraint) texts() *strictjson.StringRule {
	if !l.allows(strictjson.IsString) || l.MinLength == nil && l.MaxLength == nil && l.Pattern == nil && l.fixed.strings == nil {
		return nil
	}
	t := &strictjson.StringRule{Length: span(l.MinLength, l.MaxLength)}
	if l.fixed.strings != nil {
		t.Enum = strictjson.NewEnum(l.fixed.strings)
	}
	if l.Pattern != nil {
		pattern, ok := l.Pattern.(strictjson.Matcher)
		t.Match, l.unsupported = pattern, l.unsupported || !ok
	}
	return t
}

func (l *constraint) numbers() *strictjson.NumberRule {
	said := cmp.Or(l.Minimum, l.ExclusiveMinimum, l.Maximum, l.ExclusiveMaximum, l.MultipleOf) != nil
	if !l.allows(strictjson.IsNumber) || !said && !l.whole() && l.fixed.numbers == nil {
		return nil
	}
	n := strictjson.NewNumbers()
	n.Whole, n.Among = l.whole(), l.fixed.numbers
	if l.MultipleOf != nil {
		n.MultipleOf = l.ratio(l.MultipleOf)
	}
	l.bound(n.AtLeast, l.Minimum, false)
	l.bound(n.AtLeast, l.ExclusiveMinimum, true)
	l.bound(n.AtMost, l.Maximum, false)
	l.bound(n.AtMost, l.ExclusiveMaximum, true)
	return n
}

func (l *constraint) bound(add func(limit *big.Rat, exclusive bool) bool, limit *big.Rat, exclusive bool) {
	l.unsupported = l.unsupported || limit != nil && !add(limit, exclusive)
}

func (l *constraint) ratio(r *big.Rat) strictjson.Ratio {
	ratio, ok := strictjson.NewRatio(r)
	l.unsupported = l.unsupported || !ok
	return ratio
}

func (l *constraint) arrays() *strictjson.ArrayRule {
	if !l.allows(strictjson.IsArray) || l.MinItems == nil && l.MaxItems == nil && !l.UniqueItems {
		return nil
	}
	return &strictjson.ArrayRule{Count: span(l.MinItems, l.MaxItems), Unique: l.UniqueItems}
}

func (l *constraint) objects() *strictjson.ObjectRule {
	closed := l.AdditionalProperties == false
	if !l.allows(strictjson.IsObject) || l.MinProperties == nil && l.MaxProperties == nil && len(l.Required) == 0 && !closed {
		return nil
	}
	required, ok := l.shape.Places(l.Required)
	l.unsupported = l.unsupported || !ok
	return &strictjson.ObjectRule{Count: span(l.MinProperties, l.MaxProperties), Required: required, Closed: closed}
}

// whole says whether numbers must be integers.
func (l *constraint) whole() bool {
	return l.Types != nil && !slices.Contains(l.Types.ToStrings(), "number")
}

// ok says whether what is inside of containers is described in a form that
// Shapes have, and only where containers are allowed: else it would hold for
// the containers of another alternative.
func (l *constraint) ok() bool {
	_, tuple := l.Items.([]*jsonschema.Schema)
	inArrays := l.Items != nil || l.Items2020 != nil
	inObjects := len(l.Properties) > 0 || l.AdditionalProperties != nil
	return !tuple && (l.allows(strictjson.IsArray) || !inArrays) && (l.allows(strictjson.IsObject) || !inObjects)
}

func span(least, most *int) strictjson.Range {
	s := strictjson.Unbounded
	if least != nil {
		s.Min = *least
	}
	if most != nil {
		s.Max = *most
	}
	return s
}

// kindsOf gives the kinds of values of the schema's types.
func kindsOf(s *jsonschema.Schema) (kinds strictjson.Kinds) {
	if s.Bool != nil && !*s.Bool {
		return 0
	}
	if s.Types == nil {
		return strictjson.IsAny
	}
	for _, name := range s.Types.ToStrings() {
		kinds |= kindsByType[name]
	}
	return kinds
}

var kindsByType = map[string]strictjson.Kinds{
	"null": strictjson.IsNull, "boolean": strictjson.IsTrue | strictjson.IsFalse, "string": strictjson.IsString,
	"number": strictjson.IsNumber, "integer": strictjson.IsNumber, "array": strictjson.IsArray, "object": strictjson.IsObject,
}
