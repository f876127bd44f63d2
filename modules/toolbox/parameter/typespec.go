package parameter

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/textutil"
)

// typeSpec is the type and the constraints of a parameter, of the elements of an
// array, or of the values in a map.
type typeSpec struct {
	kind        string
	description string
	name        string // of an element, for the manifest

	allowed, excluded valueList
	low, high         string // JSON numbers; "" is no limit
	quote             quote
	inStatement       bool      // values become part of a statement's text
	items             *typeSpec // of array, and of map if its values have one type
}

// isUnrestricted reports whether there are values with strings that are neither quoted
// nor listed.
func (f *typeSpec) isUnrestricted() bool {
	switch f.kind {
	case TypeString:
		return f.quote == quote{} && (len(f.allowed.values) == 0 || len(f.allowed.expressions) > 0)
	case TypeArray:
		return f.items == nil || f.items.isUnrestricted()
	}
	return f.kind == TypeMap
}

// shownInErrors is the value of hidden for what no person keeps secret.
const shownInErrors = false

// read checks r and returns its value as a statement gets it. The error quotes the
// value unless hidden is set.
func (f *typeSpec) read(r gjson.Result, hidden bool) (any, error) {
	v, err := f.convert(r)
	if err == nil {
		err = f.checkConstraints(r, v)
	}
	if err != nil {
		return nil, describeValue(r, hidden, err)
	}
	switch {
	case f.kind == TypeString:
		return f.quote.quote(v.(string)), nil
	case f.kind == TypeArray:
		return f.readArray(r, hidden)
	case f.kind == TypeMap && f.items != nil:
		return f.readMap(r, hidden)
	}
	return v, nil
}

// describeValue puts the value before what is wrong with it.
func describeValue(r gjson.Result, hidden bool, err error) error {
	if hidden {
		return fmt.Errorf("it %w", err)
	}
	return fmt.Errorf("%s %w", textutil.Truncate(r.Raw, maxQuote), err)
}

// checkConstraints checks the constraints of a value; r is its JSON.
func (f *typeSpec) checkConstraints(r gjson.Result, v any) error {
	if !f.allowed.empty() && !f.allowed.has(r, equalExact) {
		return fmt.Errorf("is not an allowed value: want %s", f.allowed.describe())
	}
	if !f.excluded.empty() && f.excluded.has(r, f.equal) {
		return errors.New("is an excluded value")
	}
	if f.low != "" && compareNumbers(r.Raw, f.low) < 0 {
		return fmt.Errorf("is under the minimum value %s", f.low)
	}
	if f.high != "" && compareNumbers(r.Raw, f.high) > 0 {
		return fmt.Errorf("is above the maximum value %s", f.high)
	}
	if text, ok := v.(string); ok && f.inStatement && strings.ContainsRune(text, 0) {
		return errNUL
	}
	return nil
}

var errNUL = errors.New("contains the character U+0000, which a statement cannot contain")

// convert returns r as a value of f's type. For an array, and a map with typed
// values, it checks only the type and does not return a value.
func (f *typeSpec) convert(r gjson.Result) (v any, err error) {
	ok := false
	switch f.kind {
	case TypeString:
		v, ok = r.Str, r.Type == gjson.String
	case TypeBoolean:
		v, ok = r.Bool(), r.IsBool()
	case TypeInteger:
		return f.convertInteger(r)
	case TypeFloat:
		return f.convertFloat(r)
	case TypeArray:
		ok = r.IsArray()
	case TypeMap:
		if ok = r.IsObject(); ok && f.items == nil {
			return untypedValue(r)
		}
	}
	if !ok {
		return nil, f.errOtherType()
	}
	return v, nil
}

func (f *typeSpec) errOtherType() error { return fmt.Errorf("is not type %q", f.kind) }

func (f *typeSpec) convertInteger(r gjson.Result) (any, error) {
	if r.Type != gjson.Number {
		return nil, f.errOtherType()
	}
	n, ok := parseInteger(r.Raw)
	if !ok {
		return nil, fmt.Errorf("is not type %q: want a whole number of at most 64 bits", f.kind)
	}
	return n, nil
}

func (f *typeSpec) convertFloat(r gjson.Result) (any, error) {
	if r.Type != gjson.Number {
		return nil, f.errOtherType()
	}
	n, ok := parseFloat(r.Raw)
	if !ok {
		return nil, errors.New("is out of the range of float64")
	}
	return n, nil
}

func (f *typeSpec) readArray(r gjson.Result, hidden bool) (list []any, err error) {
	list = []any{}
	r.ForEach(func(_, element gjson.Result) bool {
		var v any
		if v, err = f.items.read(element, hidden); err != nil {
			err = fmt.Errorf("unable to parse element #%d: %w", len(list), err)
			return false
		}
		list = append(list, v)
		return true
	})
	return list, err
}

func (f *typeSpec) readMap(r gjson.Result, hidden bool) (o object, err error) {
	r.ForEach(func(key, value gjson.Result) bool {
		var v any
		if v, err = f.items.read(value, hidden); err != nil {
			err = fmt.Errorf("unable to parse value for %s: %w", describeKey(key, hidden), err)
			return false
		}
		o = append(o, member{key.Str, v})
		return true
	})
	return o, err
}

// describeKey returns how an error names the key of a map.
func describeKey(key gjson.Result, hidden bool) string {
	if hidden {
		return "a key"
	}
	return "key " + textutil.Truncate(key.Raw, maxQuote)
}

// untypedValue returns a value of no stated type. Its numbers keep every digit.
func untypedValue(r gjson.Result) (v any, err error) {
	switch {
	case r.IsObject():
		o := object(nil)
		r.ForEach(func(key, value gjson.Result) bool {
			v, err = untypedValue(value)
			o = append(o, member{key.Str, v})
			return err == nil
		})
		return o, err
	case r.IsArray():
		list := []any{}
		r.ForEach(func(_, element gjson.Result) bool {
			v, err = untypedValue(element)
			list = append(list, v)
			return err == nil
		})
		return list, err
	case r.Type == gjson.Number:
		if _, ok := parseFloat(r.Raw); !ok {
			return nil, fmt.Errorf("contains %s, which is out of the range of float64", textutil.Truncate(r.Raw, maxQuote))
		}
		return json.Number(r.Raw), nil
	}
	return r.Value(), nil
}
