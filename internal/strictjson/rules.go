package strictjson

import "math"

// Rules say which values there may be at one place of a document. They are
// what schemas say most often, in the form that is quickest to check. The
// zero Rules allow nothing.
type Rules struct {
	Kinds   Kinds
	Texts   *StringRule // further rules of strings; nil, here and below, for none
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

// Range is a range of lengths or counts. The zero Span allows only none.
type Range struct{ Min, Max int }

// Unbounded is the Span of every length.
var Unbounded = Range{0, math.MaxInt}

func (s Range) contains(n int) bool { return s.Min <= n && n <= s.Max }

// ArrayRule are rules of arrays.
type ArrayRule struct {
	Count  Range
	Unique bool // no two elements are equal
}

// ObjectRule are rules of objects. Which names there are says the Shape.
type ObjectRule struct {
	Count    Range
	Required uint64 // by Shape.Places
	Closed   bool   // there are only known names
}
