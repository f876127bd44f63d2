package parameter

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// toJSONNumber returns a number of a configuration as a JSON number: ".5", "+5" and
// "0x1F" are valid only in the former. It does not accept a leading zero, since
// readers disagree whether the number is octal.
func toJSONNumber(text string) (string, bool) {
	if strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0o") {
		n, err := strconv.ParseInt(text, 0, 64)
		return strconv.FormatInt(n, 10), err == nil
	}
	sign, digits := "", strings.TrimPrefix(text, "+")
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		sign, digits = "-", rest
	}
	whole, rest, dotted := strings.Cut(digits, ".")
	if dotted && startsWithDigit(rest) {
		rest = "." + rest
		if whole == "" {
			whole = "0"
		}
	}
	number := sign + whole + rest
	return number, startsWithDigit(whole) && !strings.ContainsAny(number, " \t\r\n") && strictjson.CheckKeys([]byte(number), nil) == nil
}

// startsWithDigit reports whether text begins with a digit.
func startsWithDigit(text string) bool { return text != "" && '0' <= text[0] && text[0] <= '9' }

// parseInteger returns the value of a JSON number, and reports whether it is a whole
// number that fits an int64. The notation does not matter: 1e3 is a whole number.
func parseInteger(number string) (int64, bool) {
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		return n, true
	}
	if !strings.ContainsAny(number, ".eE") {
		return 0, false
	}
	exact, ok := new(big.Rat).SetString(number)
	if !ok || !exact.IsInt() || !exact.Num().IsInt64() {
		return 0, false
	}
	return exact.Num().Int64(), true
}

// parseFloat returns the float64 nearest to a JSON number, and reports whether it is
// finite.
func parseFloat(number string) (float64, bool) {
	f, err := strconv.ParseFloat(number, 64)
	return f, err == nil
}

// compareNumbers compares two finite JSON numbers exactly. Rounding keeps their
// order, so all digits are compared only if both round to the same float64.
func compareNumbers(a, b string) int {
	x, _ := parseFloat(a)
	y, _ := parseFloat(b)
	if x != y || a == b {
		return cmp.Compare(x, y)
	}
	exact, _ := new(big.Rat).SetString(a)
	other, _ := new(big.Rat).SetString(b)
	if exact == nil || other == nil { // not a number: equals nothing
		return -1
	}
	return exact.Cmp(other)
}
