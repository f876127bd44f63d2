package strictjson

import "math/big"

// NumberRule are rules of numbers. NewNumbers has none yet.
type NumberRule struct {
	Whole      bool    // there is no fraction; 1.0 has none
	MultipleOf Ratio   // the zero Ratio for every number
	Among      []Ratio // nil for every number

	bounds    []bound // all of them hold
	low, high int64   // between which integers are within all bounds
}

// bound is a limit of numbers.
type bound struct {
	limit     Ratio
	upper     bool
	exclusive bool // limit itself is out
}

// maxShift is beyond all decimals.
const maxShift = 1 << 62

// NewNumbers makes rules that allow every number.
func NewNumbers() *NumberRule { return &NumberRule{low: -maxShift, high: maxShift} }

// AtLeast adds a lower limit; exclusive, of numbers above it only. It is not
// ok if NewRatio does not take the limit.
func (n *NumberRule) AtLeast(limit *big.Rat, exclusive bool) (ok bool) {
	ratio, ok := NewRatio(limit)
	n.bounds = append(n.bounds, bound{limit: ratio, exclusive: exclusive})
	floor := integerBelow(limit)
	if exclusive || !limit.IsInt() {
		floor++
	}
	n.low = max(n.low, floor)
	return ok
}

// AtMost adds an upper limit in the same way.
func (n *NumberRule) AtMost(limit *big.Rat, exclusive bool) (ok bool) {
	ratio, ok := NewRatio(limit)
	n.bounds = append(n.bounds, bound{limit: ratio, upper: true, exclusive: exclusive})
	floor := integerBelow(limit)
	if exclusive && limit.IsInt() {
		floor--
	}
	n.high = min(n.high, floor)
	return ok
}

// integerBelow gives the largest integer that is not above r, or one beyond
// all decimals for one that is farther.
func integerBelow(r *big.Rat) int64 {
	floor := new(big.Int).Div(r.Num(), r.Denom()) // rounds down: denominators are positive
	if floor.CmpAbs(big.NewInt(maxShift)) >= 0 {
		return maxShift * int64(floor.Sign())
	}
	return floor.Int64()
}

// fitsInteger says whether an integer keeps the rules; most numbers are one.
func (n *NumberRule) fitsInteger(v int64) bool {
	return n.low <= v && v <= n.high && (n.MultipleOf.under == 0 && n.Among == nil || n.inEnum(integer(v)))
}

// fits says the same of any number.
func (n *NumberRule) fits(d decimal) bool {
	if n.Whole && !d.whole() {
		return false
	}
	for _, b := range n.bounds {
		if !b.holds(d) {
			return false
		}
	}
	return n.inEnum(d)
}

// inEnum says whether a number is one of those that are not told by size.
func (n *NumberRule) inEnum(d decimal) bool {
	return (n.MultipleOf.under == 0 || d.multipleOf(n.MultipleOf)) && (n.Among == nil || d.among(n.Among))
}

func (b bound) holds(d decimal) bool {
	order := d.compare(b.limit)
	if b.upper {
		order = -order
	}
	return order > 0 || order == 0 && !b.exclusive
}
