package argschema

import "math/big"

// numberRule has the rules of numbers. Make one with newNumberRule.
type numberRule struct {
	integer    bool    // only integers, such as 1 and 1.0
	multipleOf ratio   // the zero ratio allows every number
	oneOf      []ratio // the allowed numbers; nil allows every number

	bounds    []bound
	low, high int64 // the smallest and the largest integer within all bounds
}

// bound is a lower or upper limit.
type bound struct {
	limit     ratio
	upper     bool
	exclusive bool // does not include limit
}

// beyondDecimals is larger than every decimal.
const beyondDecimals = 1 << 62

// newNumberRule returns rules that allow every number.
func newNumberRule() *numberRule { return &numberRule{low: -beyondDecimals, high: beyondDecimals} }

// addMin adds a lower limit; an exclusive one does not include limit itself. It reports false
// if newRatio does not accept the limit.
func (n *numberRule) addMin(limit *big.Rat, exclusive bool) (ok bool) {
	exact, ok := newRatio(limit)
	n.bounds = append(n.bounds, bound{limit: exact, exclusive: exclusive})
	floor := integerBelow(limit)
	if exclusive || !limit.IsInt() {
		floor++
	}
	n.low = max(n.low, floor)
	return ok
}

// addMax adds an upper limit, as addMin adds a lower one.
func (n *numberRule) addMax(limit *big.Rat, exclusive bool) (ok bool) {
	exact, ok := newRatio(limit)
	n.bounds = append(n.bounds, bound{limit: exact, upper: true, exclusive: exclusive})
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
func (n *numberRule) fitsInteger(v int64) bool {
	return n.low <= v && v <= n.high && (n.multipleOf.divisor == 0 && n.oneOf == nil || n.inEnum(integerDecimal(v)))
}

// fits reports whether a number satisfies the rules.
func (n *numberRule) fits(d decimal) bool {
	if n.integer && !d.isInteger() {
		return false
	}
	for _, b := range n.bounds {
		if !b.contains(d) {
			return false
		}
	}
	return n.inEnum(d)
}

// inEnum reports whether a number satisfies multipleOf and oneOf.
func (n *numberRule) inEnum(d decimal) bool {
	return (n.multipleOf.divisor == 0 || d.isMultipleOf(n.multipleOf)) && (n.oneOf == nil || d.isOneOf(n.oneOf))
}

// contains reports whether d is within the bound.
func (b bound) contains(d decimal) bool {
	order := d.compare(b.limit)
	if b.upper {
		order = -order
	}
	return order > 0 || order == 0 && !b.exclusive
}
