package strictjson

import "math"

// Rules are the constraints on the values at one place of a document: the most frequent
// keywords of schemas, in a form that is fast to check. The zero Rules allow no value.
type Rules struct {
	Kinds   Kinds
	Strings *StringRule // further rules of strings; nil, here and below, means none
	Numbers *NumberRule
	Arrays  *ArrayRule
	Objects *ObjectRule
}

// Kinds is a set of kinds of values.
type Kinds uint8

// The kinds of values.
const (
	IsNull Kinds = 1 << iota
	IsTrue
	IsFalse
	IsNumber
	IsString
	IsArray
	IsObject

	IsAny = IsNull | IsTrue | IsFalse | IsNumber | IsString | IsArray | IsObject
)

// Range is a range of lengths or counts, both ends included. The zero Range allows only 0.
type Range struct{ Min, Max int }

// Unbounded is the Range of all lengths.
var Unbounded = Range{0, math.MaxInt}

func (s Range) contains(n int) bool { return s.Min <= n && n <= s.Max }

// ArrayRule has the rules of arrays.
type ArrayRule struct {
	Count  Range
	Unique bool // no two elements may be equal
}

// ObjectRule has the rules of objects. The names are those of the KeySet.
type ObjectRule struct {
	Count    Range
	Required uint64 // the result of KeySet.Places for the required names
	Closed   bool   // unknown names are not allowed
}
