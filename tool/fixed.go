package tool

import (
	"encoding/json"
	"math/big"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// fixed is what enum or const leave of all values.
type fixed struct {
	kinds   strictjson.Kinds
	words   []string
	numbers []strictjson.Ratio
}

// mostNumbers is how many numbers of an enum are compared one by one.
const mostNumbers = 16

// fixedBy gives the values s lists, of all if it lists none. It is not ok if
// there are too many, containers, or two lists.
func fixedBy(s *jsonschema.Schema) (f fixed, ok bool) {
	switch {
	case s.Enum != nil && s.Const != nil:
		return fixed{}, false
	case s.Enum != nil:
		return fixedTo(s.Enum.Values)
	case s.Const != nil:
		return fixedTo([]any{*s.Const})
	}
	return fixed{kinds: strictjson.IsAny}, true
}

func fixedTo(list []any) (f fixed, ok bool) {
	for _, v := range list {
		if !f.add(v) {
			return fixed{}, false
		}
	}
	return f, len(f.numbers) <= mostNumbers
}

func (f *fixed) add(v any) (ok bool) {
	switch v := v.(type) {
	case nil:
		f.kinds |= strictjson.IsNull
	case bool:
		f.kinds |= kindOfBool(v)
	case string:
		f.kinds |= strictjson.IsString
		f.words = append(f.words, v)
	case json.Number:
		f.kinds |= strictjson.IsNumber
		return f.addNumber(v)
	default:
		return false
	}
	return true
}

func (f *fixed) addNumber(n json.Number) bool {
	exact, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return false
	}
	ratio, ok := strictjson.NewRatio(exact)
	f.numbers = append(f.numbers, ratio)
	return ok
}

func kindOfBool(b bool) strictjson.Kinds {
	if b {
		return strictjson.IsTrue
	}
	return strictjson.IsFalse
}
