package strictjson

import (
	"cmp"
	"math/big"
	"math/bits"
)

// decimal is a number as it is written: digits / scale.
type decimal struct {
	negative bool // never of zero
	digits   uint64
	scale    uint64 // a power of ten
}

// integer makes a decimal.
func integer(v int64) decimal {
	if v < 0 {
		return decimal{true, uint64(-v), 1}
	}
	return decimal{false, uint64(v), 1}
}

// mostDigits is how many digits a decimal may have, so that nothing in it
// exceeds 64 bits.
const mostDigits = 18

// parseDecimal reads a valid number. It does not take one with an exponent or
// with more than mostDigits digits.
func parseDecimal(literal []byte) (d decimal, ok bool) {
	d.scale = 1
	if literal[0] == '-' {
		d.negative = true
		literal = literal[1:]
	}
	if len(literal) > mostDigits {
		return d, false
	}
	for i, b := range literal {
		switch {
		case isDigit(b):
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

// tens are the powers of ten.
var tens = func() (list [mostDigits + 1]uint64) {
	list[0] = 1
	for i := 1; i < len(list); i++ {
		list[i] = list[i-1] * 10
	}
	return list
}()

func (d decimal) whole() bool { return d.scale == 1 || d.digits%d.scale == 0 }

// Ratio is a number that decimals are compared with exactly. The zero Ratio is
// no number.
type Ratio struct {
	negative    bool
	over, under uint64
}

// NewRatio makes a Ratio, if the number's two parts have at most 64 bits.
func NewRatio(r *big.Rat) (ratio Ratio, ok bool) {
	if r.Num().BitLen() > 64 || r.Denom().BitLen() > 64 {
		return Ratio{}, false
	}
	return Ratio{r.Sign() < 0, new(big.Int).Abs(r.Num()).Uint64(), r.Denom().Uint64()}, true
}

// compare gives -1, 0 or 1 as d is less than, equal to or more than r.
func (d decimal) compare(r Ratio) int {
	switch {
	case d.negative && !r.negative:
		return -1
	case !d.negative && r.negative:
		return 1
	}
	order := compareProducts(d.digits, r.under, r.over, d.scale)
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

// multipleOf says whether d surely is a multiple of r.
func (d decimal) multipleOf(r Ratio) bool {
	high, step := bits.Mul64(d.scale, r.over)
	if high != 0 || step == 0 {
		return false
	}
	high, low := bits.Mul64(d.digits, r.under)
	return bits.Rem64(high, low, step) == 0
}

// among says whether d is one of a few.
func (d decimal) among(list []Ratio) bool {
	for _, r := range list {
		if d.compare(r) == 0 {
			return true
		}
	}
	return false
}
