package argschema

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// constraint converts a schema that has assertions only into a ruleSet. It leaves out the rules of
// kinds of values that the schema does not allow.
type constraint struct {
	*jsonschema.Schema
	shape       *strictjson.Shape
	kinds       kindSet
	enum        enumValues
	unsupported bool // a ruleSet cannot represent the schema
}

// constraintRules returns the rules of s, nil if a ruleSet cannot represent all of it. keys has
// the names of its properties.
func constraintRules(s *jsonschema.Schema, keys *strictjson.Shape) *ruleSet {
	enum, ok := enumOf(s)
	c := constraint{Schema: s, shape: keys, kinds: kindsOf(s) & enum.kinds, enum: enum}
	c.unsupported = !ok || !c.isSupported()
	rules := &ruleSet{kinds: c.kinds, strings: c.stringRule(), numbers: c.numberRule(), arrays: c.arrayRule(), objects: c.objectRule()}
	if c.unsupported {
		return nil
	}
	return rules
}

// allows reports whether the schema allows a kind of values.
func (c *constraint) allows(kind kindSet) bool { return c.kinds&kind != 0 }

// stringRule returns the rules of strings, nil if there are none; so do the methods below for
// other kinds. They set unsupported if they cannot represent a keyword.
func (c *constraint) stringRule() *stringRule {
	if !c.allows(kindString) || c.MinLength == nil && c.MaxLength == nil && c.Pattern == nil && c.enum.strings == nil {
		return nil
	}
	t := &stringRule{length: rangeOf(c.MinLength, c.MaxLength)}
	if c.enum.strings != nil {
		t.enum = newStringEnum(c.enum.strings)
	}
	if c.Pattern != nil {
		pattern, ok := c.Pattern.(matcher)
		t.match, c.unsupported = pattern, c.unsupported || !ok
	}
	return t
}

func (c *constraint) numberRule() *numberRule {
	bounded := cmp.Or(c.Minimum, c.ExclusiveMinimum, c.Maximum, c.ExclusiveMaximum, c.MultipleOf) != nil
	if !c.allows(kindNumber) || !bounded && !c.integersOnly() && c.enum.numbers == nil {
		return nil
	}
	n := newNumberRule()
	n.integer, n.oneOf = c.integersOnly(), c.enum.numbers
	if c.MultipleOf != nil {
		n.multipleOf = c.ratio(c.MultipleOf)
	}
	c.addBound(n.addMin, c.Minimum, including)
	c.addBound(n.addMin, c.ExclusiveMinimum, excluding)
	c.addBound(n.addMax, c.Maximum, including)
	c.addBound(n.addMax, c.ExclusiveMaximum, excluding)
	return n
}

// Values of exclusive.
const (
	including = false // the limit itself is allowed
	excluding = true
)

// addBound adds a limit, if there is one, with addMin or addMax of a numberRule.
func (c *constraint) addBound(add func(limit *big.Rat, exclusive bool) bool, limit *big.Rat, exclusive bool) {
	c.unsupported = c.unsupported || limit != nil && !add(limit, exclusive)
}

func (c *constraint) ratio(r *big.Rat) ratio {
	exact, ok := newRatio(r)
	c.unsupported = c.unsupported || !ok
	return exact
}

func (c *constraint) arrayRule() *arrayRule {
	if !c.allows(kindArray) || c.MinItems == nil && c.MaxItems == nil && !c.UniqueItems {
		return nil
	}
	return &arrayRule{count: rangeOf(c.MinItems, c.MaxItems), unique: c.UniqueItems}
}

func (c *constraint) objectRule() *objectRule {
	closed := c.AdditionalProperties == false
	if !c.allows(kindObject) || c.MinProperties == nil && c.MaxProperties == nil && len(c.Required) == 0 && !closed {
		return nil
	}
	required, ok := c.shape.Places(c.Required)
	c.unsupported = c.unsupported || !ok
	return &objectRule{count: rangeOf(c.MinProperties, c.MaxProperties), required: required, closed: closed}
}

// integersOnly reports whether numbers must be integers.
func (c *constraint) integersOnly() bool {
	return c.Types != nil && !slices.Contains(c.Types.ToStrings(), "number")
}

// isSupported reports whether a Shape can represent the schemas of elements and properties.
// They are allowed only where the schema allows arrays or objects: else they would apply to
// the values of another alternative.
func (c *constraint) isSupported() bool {
	_, tuple := c.Items.([]*jsonschema.Schema)
	inArrays := c.Items != nil || c.Items2020 != nil
	inObjects := len(c.Properties) > 0 || c.AdditionalProperties != nil
	return !tuple && (c.allows(kindArray) || !inArrays) && (c.allows(kindObject) || !inObjects)
}

// rangeOf returns the range of two limits, of which each may be nil.
func rangeOf(low, high *int) countRange {
	r := anyCount
	if low != nil {
		r.low = *low
	}
	if high != nil {
		r.high = *high
	}
	return r
}

// kindsOf returns the kinds of values that the schema's types allow.
func kindsOf(s *jsonschema.Schema) (kinds kindSet) {
	if s.Bool != nil && !*s.Bool {
		return 0
	}
	if s.Types == nil {
		return kindAny
	}
	for _, name := range s.Types.ToStrings() {
		kinds |= kindsByType[name]
	}
	return kinds
}

var kindsByType = map[string]kindSet{
	"null": kindNull, "boolean": kindTrue | kindFalse, "string": kindString,
	"number": kindNumber, "integer": kindNumber, "array": kindArray, "object": kindObject,
}
