package bounds

import (
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"
)

// operator is one test of a value.
type operator interface {
	name() string // as in a rule

	// holds reports whether a value passes the test. It counts its work with e.spend, and
	// reports false when the budget of e is used up.
	holds(v jsonValue, e *evaluation) bool
}

// holds reports whether all operators of c hold. If not, name is the name of the first operator
// that does not hold.
func (c *condition) holds(v jsonValue, e *evaluation) (name string, ok bool) {
	for _, op := range c.operators {
		if !e.spend(1) || !op.holds(v, e) {
			return op.name(), false
		}
	}
	return "", len(c.operators) > 0
}

// anyOf holds if one of its conditions holds.
type anyOf []condition

func (anyOf) name() string { return "any" }

func (list anyOf) holds(v jsonValue, e *evaluation) bool {
	for i := range list {
		if _, ok := list[i].holds(v, e); ok {
			return true
		}
	}
	return false
}

// equal holds for one string, number or boolean.
type equal struct {
	value  jsonValue
	number number // of a number
}

func newEqual(value any) (operator, error) {
	switch v := value.(type) {
	case string:
		if len(v) > maxText {
			return nil, errors.New("the text is too long")
		}
	case json.Number, bool:
	default:
		return nil, errors.New("want a text, a number, true or false")
	}
	return equalTo(parseValue(canonical(value))), nil
}

// equalTo returns the operator for a scalar value.
func equalTo(v jsonValue) *equal {
	e := &equal{value: v}
	if v.Type == gjson.Number {
		e.number = parseNumber(v.Raw)
	}
	return e
}

func (*equal) name() string { return "equal" }

func (o *equal) holds(v jsonValue, e *evaluation) bool {
	if v.Type != o.value.Type {
		return false
	}
	switch v.Type {
	case gjson.String:
		return v.Str == o.value.Str
	case gjson.Number:
		return e.spend(len(v.Raw)) && parseNumber(v.Raw).compare(o.number) == 0
	}
	return v.Type == gjson.True || v.Type == gjson.False
}

// limit holds for numbers up to a limit, or from a limit on.
type limit struct {
	least bool // the limit is the least number, not the most
	value number
}

func newLimit(name string, value any) (operator, error) {
	text, ok := value.(json.Number)
	if !ok {
		return nil, errors.New("want a number")
	}
	return &limit{name == "min", parseNumber(text.String())}, nil
}

func (o *limit) name() string {
	if o.least {
		return "min"
	}
	return "max"
}

func (o *limit) holds(v jsonValue, e *evaluation) bool {
	if v.Type != gjson.Number || !e.spend(len(v.Raw)) {
		return false
	}
	order := parseNumber(v.Raw).compare(o.value)
	return order == 0 || o.least == (order > 0)
}

// input holds for a value of the task's input, or for an element of it if it is an array.
type input string

func newInput(value any) (operator, error) {
	text, err := textOf(value, "recipients")
	return input(text), err
}

func (input) name() string { return "input" }

func (o input) holds(v jsonValue, e *evaluation) bool {
	if e.inputs == nil {
		return false
	}
	text, ok := e.inputs(string(o))
	if !ok || !e.spend(len(text)) {
		return false
	}
	doc := gjson.ParseBytes(text)
	if !doc.IsArray() {
		return isEqual(doc, v, e)
	}
	found := false
	doc.ForEach(func(_, element gjson.Result) bool {
		found = isEqual(element, v, e)
		return !found && e.spend(1)
	})
	return found
}

// isEqual reports whether a value of a task's input is a string, a number or a boolean that is
// equal to v.
func isEqual(input gjson.Result, v jsonValue, e *evaluation) bool {
	scalar := input.Type != gjson.JSON && input.Type != gjson.Null
	return scalar && equalTo(jsonValue{input.Type, input.Raw, input.Str}).holds(v, e)
}
