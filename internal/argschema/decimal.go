package argschema

import (
	"cmp"
	"math/big"
	"math/bits"
)

// decimal is a number as it is written, with the value digits / scale.
type decimal struct {
	negative bool // false for zero
	digits   uint64
	scale    uint64 // a power of ten
}

// integerDecimal returns v as a decimal.
func integerDecimal(v int64) decimal {
	if v < 0 {
		return decimal{true, uint64(-v), 1}
	}
	return decimal{false, uint64(v), 1}
}

// maxDigits is the maximum number of digits of a decimal, so that its fields fit into 64 bits.
const maxDigits = 18

// parseDecimal parses a valid number. It reports false for a number with an exponent or with
// more than maxDigits digits.
func parseDecimal(literal []byte) (d decimal, ok bool) {
	d.scale = 1
	if literal[0] == '-' {
		d.negative = true
		literal = literal[1:]
	}
	if len(literal) > maxDigits {
		return d, false
	}
	for i, b := range literal {
		switch {
		case '0' <= b && b <= '9':
			d.digits = d.digits*10 + uint64(b-'0')
		case b == '.':
			d.scale = tens[len(literal)-i-1]
		default:
			return d, false
		}
	}
	d.negative = d.negative && d.digits != 0
	return d, true
}

// tens has the powers of ten.
var tens = func() (list [maxDigits + 1]uint64) {
	list[0] = 1
	for i := 1; i < len(list); i++ {
		list[i] = list[i-1] * 10
	}
	return list
}()

func (d decimal) isInteger() bool { return d.scale == 1 || d.digits%d.scale == 0 }

// ratio is a fraction that numbers are compared with exactly. The zero ratio is not a number.
type ratio struct {
	negative           bool
	numerator, divisor uint64
}

// newRatio returns r as a ratio. It reports false if the numerator or the denominator has more
// than 64 bits.
func newRatio(r *big.Rat) (exact ratio, ok bool) {
	if r.Num().BitLen() > 64 || r.Denom().BitLen() > 64 {
		return ratio{}, false
	}
	return ratio{r.Sign() < 0, new(big.Int).Abs(r.Num()).Uint64(), r.Denom().Uint64()}, true
}

// compare returns -1, 0 or 1 if d is less than, equal to or more than r.
func (d decimal) compare(r ratio) int {
	switch {
	case d.negative && !r.negative:
		return -1
	case !d.negative && r.negative:
		return 1
	}
	order := compareProducts(d.digits, r.divisor, r.numerator, d.scale)
	if d.negative {
		return -order
	}
	return order
}

// compareProducts compares a*b with c*d.
func compareProducts(a, b, c, d uint64) int {
	high1, low1 := bits.Mul64(a, b)
	high2, low2 := bits.Mul64(c, d)
	return cmp.Or(cmp.Compare(high1, high2), cmp.Compare(low1, low2))
}

// isMultipleOf reports whether d is certainly a multiple of r.
func (d decimal) isMultipleOf(r ratio) bool {
	high, step := bits.Mul64(d.scale, r.numerator)
	if high != 0 || step == 0 {
		return false
	}
	high, low := bits.Mul64(d.digits, r.divisor)
	return bits.Rem64(high, low, step) == 0
}

// isOneOf reports whether d is in list.
func (d decimal) isOneOf(list []ratio) bool {
	for _, r := range list {
		if d.compare(r) == 0 {
			return true
		}
	}
	return false
}
