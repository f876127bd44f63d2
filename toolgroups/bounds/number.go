package bounds

import (
	"cmp"
	"strconv"
	"strings"
)

// number is the exact value of a JSON number: 0.digits times ten to the power of point.
type number struct {
	negative bool
	digits   string // without zeros at either end; "" is zero
	point    int
}

// parseNumber parses a JSON number, which must be valid. A number without fraction and
// exponent takes no memory.
func parseNumber(text string) (n number) {
	text, n.negative = strings.CutPrefix(text, "-")
	whole, fraction := text, ""
	if at := endOfDigits(text); at < len(text) {
		if e := strings.IndexAny(text, "eE"); e >= 0 {
			n.point, _ = strconv.Atoi(strings.TrimPrefix(text[e+1:], "+")) // package strictjson limits exponents
			text = text[:e]
		}
		whole, fraction, _ = strings.Cut(text, ".")
	}
	n.point += len(whole)
	digits := strings.TrimLeft(whole+fraction, "0")
	n.point -= len(whole) + len(fraction) - len(digits)
	if n.digits = strings.TrimRight(digits, "0"); n.digits == "" {
		return number{}
	}
	return n
}

// endOfDigits returns the number of digits that a text begins with.
func endOfDigits(text string) int {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return i
		}
	}
	return len(text)
}

// compare returns -1, 0 or 1 if n is less than, equal to or more than other.
func (n number) compare(other number) int {
	if order := cmp.Compare(n.sign(), other.sign()); order != 0 {
		return order
	}
	order := cmp.Or(cmp.Compare(n.point, other.point), strings.Compare(n.digits, other.digits))
	if n.negative {
		return -order
	}
	return order
}

func (n number) sign() int {
	switch {
	case n.digits == "":
		return 0
	case n.negative:
		return -1
	}
	return 1
}

// String returns n as a JSON number.
func (n number) String() string {
	if n.digits == "" {
		return "0"
	}
	text, exponent := n.digits, n.point-len(n.digits)
	switch {
	case exponent >= 0 && exponent <= 20:
		text += strings.Repeat("0", exponent)
	case exponent < 0 && n.point > 0:
		text = n.digits[:n.point] + "." + n.digits[n.point:]
	default:
		text += "e" + strconv.Itoa(exponent)
	}
	if n.negative {
		return "-" + text
	}
	return text
}
