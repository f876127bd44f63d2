package bounds

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/internal/test/short"
)

// reference checks arguments as reading does, but reads them again for each path, with gjson.
type reference struct {
	*evaluation
	rule     *pathRule
	defaults []gjson.Result // by step; nil if there are none
}

func checkByReference(c *Check, args string, inputs TaskInputs, steps int) *Violation {
	e := evaluation{inputs: inputs, budget: steps}
	for i := range c.paths {
		w := reference{evaluation: &e, rule: &c.paths[i]}
		if c.defaults != nil {
			w.defaults = c.defaults[i]
		}
		if v := w.at(gjson.Parse(args), 0); v != nil {
			return v
		}
	}
	return nil
}

func (w *reference) at(v gjson.Result, i int) *Violation {
	switch {
	case !w.spend(1 + len(v.Raw)/16):
		return w.rule.violation("size", "")
	case v.Type == gjson.Null:
		return w.missing()
	case i == len(w.rule.steps):
		return w.value(v)
	case v.IsArray():
		return w.elements(v, i)
	case v.IsObject() && w.rule.steps[i] != every:
		return w.member(v, i)
	}
	return w.rule.violation("type", "")
}

func (w *reference) value(v gjson.Result) *Violation {
	name, ok := w.rule.holds(jsonValue{v.Type, v.Raw, v.Str}, w.evaluation)
	switch {
	case ok:
		return nil
	case w.budget < 0:
		name = "size"
	case v.IsArray() || v.IsObject():
		name = "type"
	}
	return w.rule.violation(name, "")
}

func (w *reference) elements(v gjson.Result, i int) (found *Violation) {
	step := w.rule.steps[i]
	want, err := strconv.Atoi(step)
	if step != every && (err != nil || strconv.Itoa(want) != step || want < 0) {
		return w.rule.violation("type", "")
	}
	list := v.Array()
	if step != every {
		list = list[min(want, len(list)):min(want+1, len(list))]
	}
	for _, element := range list {
		if found == nil {
			found = w.at(element, i+1)
		}
	}
	if len(list) == 0 {
		return w.missing()
	}
	return found
}

func (w *reference) member(v gjson.Result, i int) *Violation {
	step := w.rule.steps[i]
	var value gjson.Result
	similar := false
	v.ForEach(func(key, member gjson.Result) bool {
		if key.Str == step {
			value = member
		} else if strings.EqualFold(key.Str, step) {
			similar = true
		}
		return w.spend(1)
	})
	if similar {
		return w.rule.violation("case", "")
	}
	if !value.Exists() && w.defaults != nil {
		value = w.defaults[i]
	}
	if !value.Exists() {
		return w.missing()
	}
	return w.at(value, i+1)
}

func (w *reference) missing() *Violation {
	if w.rule.allowMissing && w.budget >= 0 {
		return nil
	}
	return w.rule.violation("missing", "")
}

// randomText writes random rules, schemas and arguments over the same few names.
type randomText struct{ *rand.Rand }

func (r randomText) pick(list ...string) string { return list[r.IntN(len(list))] }

// list joins up to n texts.
func (r randomText) list(n int, one func() string) string {
	var texts []string
	for range r.IntN(n + 1) {
		texts = append(texts, one())
	}
	return strings.Join(texts, r.pick(",", ", ", " ,\n"))
}

func (r randomText) name() string { return r.pick("a", "b", "A", "0", "1", "", "a-b", "k") }

func (r randomText) path() string {
	path := ""
	for range 1 + r.IntN(3) {
		path += "/" + r.pick(r.name(), "a", "*")
	}
	return path
}

func (r randomText) scalar() string {
	return r.pick(`1`, `1e0`, `-1`, `2.50`, `"a"`, `"\u0061"`, `"b\"]}"`, `true`, `false`, `null`, `"`+strings.Repeat("x", r.IntN(40))+`"`)
}

func (r randomText) condition(depth int) string {
	switch n := r.IntN(8); {
	case n == 0 && depth < 2:
		return `"any": [` + `{` + r.condition(depth+1) + `}, {` + r.condition(depth+1) + `}]`
	case n < 3:
		return `"max": 2, "min": ` + r.pick("0", "-3")
	case n == 3:
		return `"glob": "*"`
	case n == 4:
		return `"matches": "[ab\"\\]}]*"`
	case n == 5:
		return `"input": ` + r.pick(`"one"`, `"list"`, `"none"`)
	}
	return `"equal": ` + r.pick(`1`, `"a"`, `true`, `"b\"]}"`)
}

func (r randomText) rule() string {
	conditions := map[string]json.RawMessage{}
	for range 1 + r.IntN(5) {
		missing := r.pick(`, "missing": "allow"`, "")
		conditions[r.path()] = json.RawMessage(`{` + r.condition(0) + missing + `}`)
	}
	text, _ := json.Marshal(conditions)
	return string(text)
}

func (r randomText) value(depth int) string {
	switch n := r.IntN(6); {
	case n < 2 && depth > 0:
		return r.object(depth - 1)
	case n == 2 && depth > 0:
		return `[` + r.list(3, func() string { return r.value(depth - 1) }) + r.pick("", " ") + `]`
	}
	return r.scalar()
}

func (r randomText) object(depth int) string {
	key := func() string {
		return r.pick(`"a"`, `"\u0061"`, `"b"`, `"A"`, `"0"`, `"1"`, `""`, `"a-b"`, `"k"`, `"\u212a"`)
	}
	return `{` + r.pick("", "\n") + r.list(4, func() string { return key() + r.pick(":", " : ") + r.value(depth) }) + `}`
}

func (r randomText) schema(depth int) string {
	parts := `"type": ` + r.pick(`"object"`, `"array"`)
	if r.IntN(3) == 0 {
		parts += `, "default": ` + r.value(2)
	}
	if depth > 0 {
		parts += `, "items": ` + r.schema(depth-1) + `, "properties": {"a": ` + r.schema(depth-1) + `, "b": ` + r.schema(depth-1) + `}`
	}
	return `{` + parts + `}`
}

// compareWithReference returns how a check differs from the reference. It must reject the same
// arguments, and name the same path and operator. If the steps do not suffice, only the first
// of these counts: the paths take their steps in another order.
func compareWithReference(c *Check, args string, inputs TaskInputs, steps int) error {
	got, want := c.read(args, inputs, steps), checkByReference(c, args, inputs, steps)
	switch {
	case (got == nil) != (want == nil):
	case got == nil || steps < maxWork || got.Path == want.Path && got.Operator == want.Operator && got.Bound == want.Bound:
		return nil
	}
	return fmt.Errorf("%s with %s and %v in %d steps: got %v, want %v", c, args, c.defaults, steps, got, want)
}

// Reading the arguments once decides as reading them for each path does.
func TestRead_AsReference(t *testing.T) {
	inputs := func(name string) (json.RawMessage, bool) {
		value, ok := map[string]string{"one": `"a"`, "list": `["a", 1]`}[name]
		return json.RawMessage(value), ok
	}
	r := randomText{rand.New(rand.NewPCG(1, 51))}
	allowed := 0
	for range short.Count(2_000, 30_000) {
		rule, err := ParseRule([]byte(r.rule()))
		if err != nil {
			t.Fatal(err)
		}
		c := rule.ForSchema(json.RawMessage(r.schema(r.IntN(3))))
		for range 4 {
			args := r.object(3)
			if strictjson.CheckObject([]byte(args), nil) != nil {
				continue // a name twice
			}
			steps := maxWork
			if r.IntN(4) == 0 {
				steps = r.IntN(60)
			}
			if err := compareWithReference(c, args, inputs, steps); err != nil {
				t.Fatal(err)
			}
			if c.read(args, inputs, steps) == nil {
				allowed++
			}
		}
	}
	if allowed == 0 {
		t.Error("no arguments are allowed")
	}
}

// Any JSON is decided as the reference decides it.
func FuzzRead(f *testing.F) {
	f.Add(`{"/to/*": {"equal": "a"}, "/to/0": {"glob": "*"}, "/x": {"max": 1, "missing": "allow"}}`, `{"to": ["a", "b"], "\u0078": 1}`)
	f.Add(`{"/a": {"max": 1}, "/a/b": {"equal": true}, "/a-b": {"matches": "x"}}`, ` {"a": {"b": true}, "A": null} `)
	f.Fuzz(func(t *testing.T, text, args string) {
		rule, err := ParseRule([]byte(text))
		if err != nil || strictjson.CheckKeys([]byte(args), nil) != nil {
			return
		}
		if err := compareWithReference(rule.ForSchema(nil), args, nil, maxWork); err != nil {
			t.Fatal(err)
		}
	})
}
