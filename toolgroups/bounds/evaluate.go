package bounds

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// TaskInputs looks up a value of the input of the call's task. It reports false if there is no
// such value. A nil TaskInputs has none.
type TaskInputs func(name string) (value json.RawMessage, ok bool)

// Check is a Rule for the arguments of a tool with a known schema. The zero Check rejects all
// arguments. A Check does not change and is safe for concurrent use.
type Check struct {
	Rule
	defaults [][]gjson.Result // by path and step: the default of the schema; nil if there are none
}

// ForSchema returns the check of r for a tool with this input schema. Arguments that a call
// leaves out have the defaults of the schema: those of properties and items, through
// references within the schema, but not those in allOf, anyOf, oneOf and if.
func (r Rule) ForSchema(schema json.RawMessage) *Check {
	c, root := &Check{Rule: r}, gjson.ParseBytes(schema)
	for i, p := range r.paths {
		if list := defaultsOf(root, p.steps); list != nil {
			if c.defaults == nil {
				c.defaults = make([][]gjson.Result, len(r.paths))
			}
			c.defaults[i] = list
		}
	}
	return c
}

// CheckArguments returns the first bound that rejects the arguments of a call, nil if all
// allow them. args must be strict JSON (package strictjson). It is Check.CheckArguments for a
// tool without defaults.
func (r Rule) CheckArguments(args json.RawMessage, inputs TaskInputs) *Violation {
	return (&Check{Rule: r}).CheckArguments(args, inputs)
}

// CheckArguments returns the first bound that rejects the arguments of a call, nil if all
// allow them. args must be strict JSON (package strictjson), which the gate has checked.
func (c *Check) CheckArguments(args json.RawMessage, inputs TaskInputs) *Violation {
	if !c.Readable() {
		return &Violation{Operator: "bind", Problem: "the stored bounds cannot be read"}
	}
	e := evaluation{inputs: inputs, budget: maxWork}
	root := gjson.ParseBytes(args)
	for i := range c.paths {
		w := walk{evaluation: &e, rule: &c.paths[i]}
		if c.defaults != nil {
			w.defaults = c.defaults[i]
		}
		if v := w.at(root, 0); v != nil {
			return v
		}
	}
	return nil
}

// maxWork limits the steps for the arguments of one call. A step takes a nanosecond, or
// some tens of a slow expression.
const maxWork = 10_000_000

// evaluation is the state of one check.
type evaluation struct {
	inputs TaskInputs
	budget int // steps that are left
}

// spend takes steps from the budget. It reports false if there are not so many.
func (e *evaluation) spend(steps int) bool {
	e.budget -= steps
	return e.budget >= 0
}

// walk follows a path through the arguments.
type walk struct {
	*evaluation
	rule     *pathRule
	defaults []gjson.Result // by step; nil if there are none
}

// at checks what is at the path from step i on in v.
func (w *walk) at(v gjson.Result, i int) *Violation {
	switch {
	case !w.spend(1 + len(v.Raw)/16):
		return w.violation("size", "the arguments take too many steps to check")
	case v.Type == gjson.Null:
		return w.missing("is null")
	case i == len(w.rule.steps):
		return w.value(v)
	case v.IsArray():
		return w.elements(v, i)
	case v.IsObject() && w.rule.steps[i] != every:
		return w.member(v, i)
	}
	return w.violation("type", "the argument has another type than the path expects")
}

// every is the step that means every element of an array.
const every = "*"

// value checks the value at the end of the path.
func (w *walk) value(v gjson.Result) *Violation {
	name, ok := w.rule.holds(v, w.evaluation)
	switch {
	case ok:
		return nil
	case w.budget < 0:
		return w.violation("size", "the arguments take too many steps to check")
	case v.IsArray() || v.IsObject():
		return w.violation("type", "the argument is not a single value")
	}
	return w.violation(name, "the argument is outside the bound")
}

// elements checks an array: every element, or the one that the step numbers. An array without
// elements is a missing value.
func (w *walk) elements(v gjson.Result, i int) (found *Violation) {
	step := w.rule.steps[i]
	want, err := strconv.Atoi(step)
	if step != every && (err != nil || strconv.Itoa(want) != step || want < 0) {
		return w.violation("type", "the argument is a list")
	}
	at, checked := 0, false
	v.ForEach(func(_, element gjson.Result) bool {
		if step == every || at == want {
			checked, found = true, w.at(element, i+1)
		}
		at++
		return found == nil && (step == every || !checked)
	})
	if !checked {
		return w.missing("is missing")
	}
	return found
}

// member checks a member of an object, or its default. A member whose name differs in case
// only is rejected: a tool might take it for the one that the rule bounds.
func (w *walk) member(v gjson.Result, i int) *Violation {
	step := w.rule.steps[i]
	var value gjson.Result
	similar := false
	v.ForEach(func(key, member gjson.Result) bool {
		if key.Str == step {
			value = member
		} else if len(key.Str) <= 4*len(step) && strings.EqualFold(key.Str, step) {
			similar = true
		}
		return w.spend(1)
	})
	if similar {
		return w.violation("case", "an argument differs from the bounded one in case only")
	}
	if !value.Exists() && w.defaults != nil {
		value = w.defaults[i]
	}
	if !value.Exists() {
		return w.missing("is missing")
	}
	return w.at(value, i+1)
}

// missing rejects a missing value unless the rule allows it.
func (w *walk) missing(how string) *Violation {
	if w.rule.allowMissing && w.budget >= 0 {
		return nil
	}
	return w.violation("missing", "the argument "+how)
}

func (w *walk) violation(operator, problem string) *Violation {
	return &Violation{w.rule.pointer, operator, shorten(w.rule.text), problem}
}
