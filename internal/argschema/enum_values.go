package argschema

import (
	"encoding/json"
	"math/big"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// enumValues has the values that the keywords enum and const allow.
type enumValues struct {
	kinds   kindSet
	strings []string
	numbers []ratio
}

// maxEnumNumbers is the maximum number of numbers in an enum: a numberRule compares them one by one.
const maxEnumNumbers = 16

// enumOf returns the values that s lists, or all kinds of values if it lists none. It reports
// false if a ruleSet cannot represent the list. The list may have objects, arrays or too many
// numbers. Or there are both an enum and a const.
func enumOf(s *jsonschema.Schema) (f enumValues, ok bool) {
	switch {
	case s.Enum != nil && s.Const != nil:
		return enumValues{}, false
	case s.Enum != nil:
		return enumFrom(s.Enum.Values)
	case s.Const != nil:
		return enumFrom([]any{*s.Const})
	}
	return enumValues{kinds: kindAny}, true
}

// enumFrom returns the values of a list. It reports false as enumOf does.
func enumFrom(list []any) (f enumValues, ok bool) {
	for _, v := range list {
		if !f.add(v) {
			return enumValues{}, false
		}
	}
	return f, len(f.numbers) <= maxEnumNumbers
}

// add adds a value. It reports false for objects and arrays, and for numbers that are too large.
func (f *enumValues) add(v any) (ok bool) {
	switch v := v.(type) {
	case nil:
		f.kinds |= kindNull
	case bool:
		f.kinds |= kindOfBool(v)
	case string:
		f.kinds |= kindString
		f.strings = append(f.strings, v)
	case json.Number:
		f.kinds |= kindNumber
		return f.addNumber(v)
	default:
		return false
	}
	return true
}

func (f *enumValues) addNumber(n json.Number) bool {
	value, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return false
	}
	exact, ok := newRatio(value)
	f.numbers = append(f.numbers, exact)
	return ok
}

func kindOfBool(b bool) kindSet {
	if b {
		return kindTrue
	}
	return kindFalse
}
