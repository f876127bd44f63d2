package parameter

import (
	"strings"

	"github.com/tidwall/gjson"
)

// valueList is a list of values, as JSON, or of expressions. The empty choice
// says nothing.
type valueList struct {
	texts       map[string]bool // those of values that are strings
	values      []gjson.Result
	expressions []*expression
}

func (c *valueList) empty() bool { return len(c.values) == 0 && len(c.expressions) == 0 }

func (c *valueList) add(r gjson.Result) {
	if r.Type == gjson.String {
		if c.texts == nil {
			c.texts = map[string]bool{}
		}
		c.texts[r.Str] = true
	}
	c.values = append(c.values, r)
}

// has says whether r is in the list, where same says what of values is equal.
func (c *valueList) has(r gjson.Result, same func(a, b gjson.Result) bool) bool {
	if r.Type == gjson.String {
		return c.texts[r.Str] || c.matches(r.Str)
	}
	for _, v := range c.values {
		if same(r, v) {
			return true
		}
	}
	return false
}

func (c *valueList) matches(text string) bool {
	for _, e := range c.expressions {
		if e.MatchString(text) {
			return true
		}
	}
	return false
}

// describe says what the list holds, the beginning of a long one.
func (c *valueList) describe() string {
	const most = 10
	var list []string
	for _, v := range c.values[:min(len(c.values), most)] {
		list = append(list, brief(v.Raw))
	}
	for _, e := range c.expressions[:min(len(c.expressions), most)] {
		list = append(list, "text that matches "+brief(e.source))
	}
	if len(c.values) > most || len(c.expressions) > most {
		list = append(list, "others")
	}
	if last := len(list) - 1; last > 0 {
		return strings.Join(list[:last], ", ") + " or " + list[last]
	}
	return strings.Join(list, "")
}
