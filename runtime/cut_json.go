package runtime

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// ellipsis ends a text that is cut.
const ellipsis = "…"

// jsonCutter shortens a JSON document and keeps its shape: objects have their fields, and the
// longest of them are cut. A text ends with …, a list after an element.
type jsonCutter struct {
	cut  bool
	next int // offset in the document of the first byte that is left out
}

// leaveOut notes that the document is cut at an offset.
func (c *jsonCutter) leaveOut(offset int) {
	if !c.cut || offset < c.next {
		c.next = offset
	}
	c.cut = true
}

// value returns a value that takes about budget bytes. It must be part of a document that
// gjson.Parse has parsed, and which begins with it or a value around it.
func (c *jsonCutter) value(v gjson.Result, budget int) string {
	switch {
	case len(v.Raw) <= budget:
		return v.Raw
	case v.Type == gjson.String:
		return c.text(v, budget)
	case v.IsArray():
		return c.list(v, budget)
	case v.IsObject():
		return "{" + strings.Join(c.fields(v, budget-len("{}"), nil), ",") + "}"
	}
	c.leaveOut(v.Index)
	return "null"
}

// text cuts a string, between two characters.
func (c *jsonCutter) text(v gjson.Result, budget int) string {
	inner := v.Raw[1 : len(v.Raw)-1]
	n := 0
	for n < len(inner) {
		size := charSize(inner[n:])
		if n+size > budget-len(`""`+ellipsis) {
			break
		}
		n += size
	}
	c.leaveOut(v.Index + 1 + n)
	return `"` + inner[:n] + ellipsis + `"`
}

// charSize returns how many bytes the first character takes in a JSON string without quotes.
func charSize(quoted string) int {
	if quoted[0] != '\\' {
		_, size := utf8.DecodeRuneInString(quoted)
		return size
	}
	size := len(`\n`)
	if strings.HasPrefix(quoted, `\u`) {
		size = len(`\u0000`)
		if strings.HasPrefix(strings.ToLower(quoted), `\ud`) && strings.IndexByte("89abAB", quoted[3]) >= 0 {
			size *= 2 // a surrogate pair
		}
	}
	return min(size, len(quoted))
}

// list keeps the first elements of a list. One that takes most of the list is cut, others are
// left out.
func (c *jsonCutter) list(v gjson.Result, budget int) string {
	var kept []string
	left := budget - len("[]")
	v.ForEach(func(_, element gjson.Result) bool {
		size := len(element.Raw)
		if size <= left {
			kept = append(kept, element.Raw)
			left -= size + len(",")
			return true
		}
		if left >= minElement && size > budget/2 {
			kept = append(kept, c.value(element, left)) // it is larger than left, so this cuts it
		} else {
			c.leaveOut(element.Index)
		}
		return false
	})
	return "[" + strings.Join(kept, ",") + "]"
}

// minElement is how many bytes an element needs to be cut. A shorter rest of a list says little.
const minElement = 32

// fields returns the fields of an object, without the fields in except. They take about budget
// bytes. Short fields stay as they are, and the longest fields share the rest.
func (c *jsonCutter) fields(object gjson.Result, budget int, except []string) []string {
	var keys []string
	var values []gjson.Result
	object.ForEach(func(key, value gjson.Result) bool {
		if !slices.Contains(except, key.Str) {
			keys, values = append(keys, key.Raw), append(values, value)
		}
		return true
	})
	for i, key := range keys {
		if budget -= len(key) + len(":,") + minField; budget < 0 {
			c.leaveOut(values[i].Index)
			keys, values = keys[:i], values[:i]
			budget = 0
			break
		}
	}
	var list []string
	for i, share := range shares(values, budget+minField*len(values)) {
		list = append(list, keys[i]+":"+c.value(values[i], share))
	}
	return list
}

// minField is how many bytes of each field an object with many fields has at least.
const minField = 8

// shares returns how many bytes of budget each value gets. A short value gets all bytes that it
// takes. The other values get equal shares of the rest.
func shares(values []gjson.Result, budget int) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(values[a].Raw) - len(values[b].Raw) })
	list := make([]int, len(values))
	for n, i := range order {
		list[i] = min(len(values[i].Raw), budget/(len(values)-n))
		budget -= list[i]
	}
	return list
}
