package argschema

import "math"

// ruleSet has the constraints on the values at one place of a document. It has the most frequent
// keywords of schemas, in a form that is fast to check. The zero ruleSet allows no value.
//
// It implements strictjson.KeyRules, whose Fits methods report true only for a value that certainly
// satisfies the rules. They also report false for values that take much time or memory to check.
// These are numbers with exponents or very many digits, and strings with escapes that have a
// pattern.
type ruleSet struct {
	kinds   kindSet
	strings *stringRule // further rules of strings; nil, here and below, means none
	numbers *numberRule
	arrays  *arrayRule
	objects *objectRule
}

// kindSet is a set of kinds of values.
type kindSet uint8

// The kinds of values.
const (
	kindNull kindSet = 1 << iota
	kindTrue
	kindFalse
	kindNumber
	kindString
	kindArray
	kindObject

	kindAny = kindNull | kindTrue | kindFalse | kindNumber | kindString | kindArray | kindObject
)

// countRange is a range of lengths or counts, both ends included. The zero countRange allows
// only 0.
type countRange struct{ low, high int }

// anyCount is the countRange of all lengths.
var anyCount = countRange{0, math.MaxInt}

// contains reports whether n is in the range.
func (r countRange) contains(n int) bool { return r.low <= n && n <= r.high }

// arrayRule has the rules of arrays.
type arrayRule struct {
	count  countRange
	unique bool // no two elements may be equal
}

// objectRule has the rules of objects. The names are the names of the Shape.
type objectRule struct {
	count    countRange
	required uint64 // the result of Shape.Places for the required names
	closed   bool   // unknown names are not allowed
}

// FitsLiteral implements strictjson.KeyRules.
func (r *ruleSet) FitsLiteral(word string) bool {
	switch word[0] {
	case 't':
		return r.kinds&kindTrue != 0
	case 'f':
		return r.kinds&kindFalse != 0
	}
	return r.kinds&kindNull != 0
}

// FitsInteger implements strictjson.KeyRules.
func (r *ruleSet) FitsInteger(value int64, known bool) bool {
	return r.kinds&kindNumber != 0 && (r.numbers == nil || known && r.numbers.fitsInteger(value))
}

// FitsNumber implements strictjson.KeyRules.
func (r *ruleSet) FitsNumber(literal []byte) bool {
	if r.kinds&kindNumber == 0 || r.numbers == nil {
		return r.kinds&kindNumber != 0
	}
	d, ok := parseDecimal(literal)
	return ok && r.numbers.fits(d)
}

// FitsString implements strictjson.KeyRules.
func (r *ruleSet) FitsString(quoted []byte, escaped bool) bool {
	return r.kinds&kindString != 0 && (r.strings == nil || r.strings.fits(quoted, escaped))
}

// FitsArray implements strictjson.KeyRules.
func (r *ruleSet) FitsArray(count int) bool {
	return r.kinds&kindArray != 0 && (r.arrays == nil || r.arrays.count.contains(count))
}

// FitsObject implements strictjson.KeyRules.
func (r *ruleSet) FitsObject(count int, seen uint64) bool {
	return r.kinds&kindObject != 0 && (r.objects == nil || r.objects.count.contains(count) && seen&r.objects.required == r.objects.required)
}

// UniqueElements implements strictjson.KeyRules.
func (r *ruleSet) UniqueElements() bool { return r.arrays != nil && r.arrays.unique }

// KnownNamesOnly implements strictjson.KeyRules.
func (r *ruleSet) KnownNamesOnly() bool { return r.objects != nil && r.objects.closed }
