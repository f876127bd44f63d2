package parameter

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/textutil"
)

// valueList is a list of values, as JSON, and of expressions. An empty one restricts
// nothing.
type valueList struct {
	texts       map[string]bool // the values that are strings
	values      []gjson.Result
	expressions []*expression
}

func (l *valueList) empty() bool { return len(l.values) == 0 && len(l.expressions) == 0 }

func (l *valueList) add(r gjson.Result) {
	if r.Type == gjson.String {
		if l.texts == nil {
			l.texts = map[string]bool{}
		}
		l.texts[r.Str] = true
	}
	l.values = append(l.values, r)
}

// has reports whether r is in the list, or matches an expression. same compares two
// values.
func (l *valueList) has(r gjson.Result, same func(a, b gjson.Result) bool) bool {
	if r.Type == gjson.String {
		return l.texts[r.Str] || l.matches(r.Str)
	}
	for _, v := range l.values {
		if same(r, v) {
			return true
		}
	}
	return false
}

func (l *valueList) matches(text string) bool {
	for _, e := range l.expressions {
		if e.MatchString(text) {
			return true
		}
	}
	return false
}

// describe returns the entries for a message. Of a long list it returns only the first entries.
func (l *valueList) describe() string {
	const most = 10
	var list []string
	for _, v := range l.values[:min(len(l.values), most)] {
		list = append(list, textutil.Truncate(v.Raw, maxQuote))
	}
	for _, e := range l.expressions[:min(len(l.expressions), most)] {
		list = append(list, "text that matches "+textutil.Truncate(e.source, maxQuote))
	}
	if len(l.values) > most || len(l.expressions) > most {
		list = append(list, "others")
	}
	if last := len(list) - 1; last > 0 {
		return strings.Join(list[:last], ", ") + " or " + list[last]
	}
	return strings.Join(list, "")
}
