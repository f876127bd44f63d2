package strictjson

import "math/big"

// NumberRule has the rules of numbers. Make one with NewNumberRule.
type NumberRule struct {
	Integer    bool    // only integers, such as 1 and 1.0
	MultipleOf Ratio   // the zero Ratio allows every number
	OneOf      []Ratio // the allowed numbers; nil allows every number

	bounds    []bound
	low, high int64 // the smallest and the largest integer within all bounds
}

// bound is a lower or upper limit.
type bound struct {
	limit     Ratio
	upper     bool
	exclusive bool // does not include limit
}

// beyondDecimals is larger than every decimal.
const beyondDecimals = 1 << 62

// NewNumberRule returns rules that allow every number.
func NewNumberRule() *NumberRule { return &NumberRule{low: -beyondDecimals, high: beyondDecimals} }

// AtLeast adds a lower limit; an exclusive one does not include limit itself. It reports false
// if NewRatio does not accept the limit.
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

// AtMost adds an upper limit, as AtLeast adds a lower one.
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

// integerBelow returns the largest integer that is not above r, limited to plus and minus
// beyondDecimals.
func integerBelow(r *big.Rat) int64 {
	floor := new(big.Int).Div(r.Num(), r.Denom()) // rounds down: denominators are positive
	if floor.CmpAbs(big.NewInt(beyondDecimals)) >= 0 {
		return beyondDecimals * int64(floor.Sign())
	}
	return floor.Int64()
}

// fitsInteger reports whether an integer satisfies the rules. It is faster than fits.
func (n *NumberRule) fitsInteger(v int64) bool {
	return n.low <= v && v <= n.high && (n.MultipleOf.divisor == 0 && n.OneOf == nil || n.inEnum(integerDecimal(v)))
}

// fits reports whether a number satisfies the rules.
func (n *NumberRule) fits(d decimal) bool {
	if n.Integer && !d.isInteger() {
		return false
	}
	for _, b := range n.bounds {
		if !b.contains(d) {
			return false
		}
	}
	return n.inEnum(d)
}

// inEnum reports whether a number satisfies MultipleOf and OneOf.
func (n *NumberRule) inEnum(d decimal) bool {
	return (n.MultipleOf.divisor == 0 || d.multipleOf(n.MultipleOf)) && (n.OneOf == nil || d.oneOf(n.OneOf))
}

// contains reports whether d is within the bound.
func (b bound) contains(d decimal) bool {
	order := d.compare(b.limit)
	if b.upper {
		order = -order
	}
	return order > 0 || order == 0 && !b.exclusive
}
