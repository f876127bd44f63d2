package argschema

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// constraint converts a schema that has assertions only into Rules. It leaves out the rules of
// kinds of values that the schema does not allow.
type constraint struct {
	*jsonschema.Schema
	keySet      *strictjson.KeySet
	kinds       strictjson.Kinds
	enum        enumValues
	unsupported bool // Rules cannot represent the schema
}

// constraintRules returns the Rules of s, nil if Rules cannot represent all of it. keys has the
// names of its properties.
func constraintRules(s *jsonschema.Schema, keys *strictjson.KeySet) *strictjson.Rules {
	enum, ok := enumOf(s)
	c := constraint{Schema: s, keySet: keys, kinds: kindsOf(s) & enum.kinds, enum: enum}
	c.unsupported = !ok || !c.isSupported()
	rules := &strictjson.Rules{Kinds: c.kinds, Strings: c.stringRule(), Numbers: c.numberRule(), Arrays: c.arrayRule(), Objects: c.objectRule()}
	if c.unsupported {
		return nil
	}
	return rules
}

// allows reports whether the schema allows a kind of values.
func (c *constraint) allows(kind strictjson.Kinds) bool { return c.kinds&kind != 0 }

// stringRule returns the rules of strings, nil if there are none; so do the methods below for
// other kinds. They set unsupported if they cannot represent a keyword.
func (c *constraint) stringRule() *strictjson.StringRule {
	if !c.allows(strictjson.IsString) || c.MinLength == nil && c.MaxLength == nil && c.Pattern == nil && c.enum.strings == nil {
		return nil
	}
	t := &strictjson.StringRule{Length: rangeOf(c.MinLength, c.MaxLength)}
	if c.enum.strings != nil {
		t.Enum = strictjson.NewEnum(c.enum.strings)
	}
	if c.Pattern != nil {
		pattern, ok := c.Pattern.(strictjson.Matcher)
		t.Match, c.unsupported = pattern, c.unsupported || !ok
	}
	return t
}

func (c *constraint) numberRule() *strictjson.NumberRule {
	bounded := cmp.Or(c.Minimum, c.ExclusiveMinimum, c.Maximum, c.ExclusiveMaximum, c.MultipleOf) != nil
	if !c.allows(strictjson.IsNumber) || !bounded && !c.integersOnly() && c.enum.numbers == nil {
		return nil
	}
	n := strictjson.NewNumberRule()
	n.Integer, n.OneOf = c.integersOnly(), c.enum.numbers
	if c.MultipleOf != nil {
		n.MultipleOf = c.ratio(c.MultipleOf)
	}
	c.bound(n.AtLeast, c.Minimum, false)
	c.bound(n.AtLeast, c.ExclusiveMinimum, true)
	c.bound(n.AtMost, c.Maximum, false)
	c.bound(n.AtMost, c.ExclusiveMaximum, true)
	return n
}

// bound adds a limit, if there is one, with AtLeast or AtMost of a NumberRule.
func (c *constraint) bound(add func(limit *big.Rat, exclusive bool) bool, limit *big.Rat, exclusive bool) {
	c.unsupported = c.unsupported || limit != nil && !add(limit, exclusive)
}

func (c *constraint) ratio(r *big.Rat) strictjson.Ratio {
	ratio, ok := strictjson.NewRatio(r)
	c.unsupported = c.unsupported || !ok
	return ratio
}

func (c *constraint) arrayRule() *strictjson.ArrayRule {
	if !c.allows(strictjson.IsArray) || c.MinItems == nil && c.MaxItems == nil && !c.UniqueItems {
		return nil
	}
	return &strictjson.ArrayRule{Count: rangeOf(c.MinItems, c.MaxItems), Unique: c.UniqueItems}
}

func (c *constraint) objectRule() *strictjson.ObjectRule {
	closed := c.AdditionalProperties == false
	if !c.allows(strictjson.IsObject) || c.MinProperties == nil && c.MaxProperties == nil && len(c.Required) == 0 && !closed {
		return nil
	}
	required, ok := c.keySet.Places(c.Required)
	c.unsupported = c.unsupported || !ok
	return &strictjson.ObjectRule{Count: rangeOf(c.MinProperties, c.MaxProperties), Required: required, Closed: closed}
}

// integersOnly reports whether numbers must be integers.
func (c *constraint) integersOnly() bool {
	return c.Types != nil && !slices.Contains(c.Types.ToStrings(), "number")
}

// isSupported reports whether a KeySet can represent the schemas of elements and properties.
// They are allowed only where the schema allows arrays or objects: else they would apply to
// the values of another alternative.
func (c *constraint) isSupported() bool {
	_, tuple := c.Items.([]*jsonschema.Schema)
	inArrays := c.Items != nil || c.Items2020 != nil
	inObjects := len(c.Properties) > 0 || c.AdditionalProperties != nil
	return !tuple && (c.allows(strictjson.IsArray) || !inArrays) && (c.allows(strictjson.IsObject) || !inObjects)
}

// rangeOf returns the range of two limits, of which each may be nil.
func rangeOf(low, high *int) strictjson.Range {
	r := strictjson.Unbounded
	if low != nil {
		r.Min = *low
	}
	if high != nil {
		r.Max = *high
	}
	return r
}

// kindsOf returns the kinds of values that the schema's types allow.
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
