package bounds

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"unsafe"

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
// leaves out have the defaults of the schema. These are the defaults of properties, also of
// those within items, through references within the schema. Defaults in allOf, anyOf, oneOf and if do
// not count.
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
// allow them. args must be strict JSON (package strictjson), which the gate has checked. The
// arguments are walked once for all paths, an array once for each step below it.
func (c *Check) CheckArguments(args json.RawMessage, inputs TaskInputs) *Violation {
	if !c.Readable() {
		return &Violation{Operator: "bind", Problem: "the stored bounds cannot be read"}
	}
	return c.read(unsafe.String(unsafe.SliceData(args), len(args)), inputs, maxWork) // not kept: a Violation has no part of it
}

// read compares arguments with all paths of c, in at most so many steps.
func (c *Check) read(args string, inputs TaskInputs, steps int) *Violation {
	r := readings.Get().(*reading)
	*r = reading{check: c, evaluation: evaluation{inputs: inputs, budget: steps}, rejected: len(c.paths)}
	r.checkAt(&c.tree[0], 0, args[skipTo(args, 0):])
	found := r.violation
	*r = reading{}
	readings.Put(r)
	return found
}

// readings saves the memory of one reading for each call.
var readings = sync.Pool{New: func() any { return new(reading) }}

// maxWork limits the steps for the arguments of one call. A step takes a nanosecond, or
// some tens of a slow expression.
const maxWork = 10_000_000

// evaluation has the inputs of one evaluation, and the steps that are left.
type evaluation struct {
	inputs TaskInputs
	budget int // steps that are left
}

// spend takes steps from the budget. It reports false if there are not so many.
func (e *evaluation) spend(steps int) bool {
	e.budget -= steps
	return e.budget >= 0
}

// reading compares arguments with all paths of a check. Of the paths that reject them, the first
// one counts.
type reading struct {
	evaluation
	check     *Check
	rejected  int        // the first path that rejects the arguments; the number of paths if none does
	violation *Violation // of that path
}

// reject records that a path rejects the arguments, unless an earlier one does, or the same one
// at an earlier place.
func (r *reading) reject(path int, operator, problem string) {
	if path < r.rejected {
		r.rejected, r.violation = path, r.check.paths[path].violation(operator, problem)
	}
}

// rejectTooLarge rejects arguments for which the steps do not suffice.
func (r *reading) rejectTooLarge(n *node) {
	r.reject(n.firstPath, "size", "the arguments take too many steps to check")
}

// checkAt checks a value, as JSON, that is at a node. depth is the number of steps that lead there.
func (r *reading) checkAt(n *node, depth int, value string) {
	switch {
	case n.firstPath >= r.rejected: // no earlier path leads here
	case !r.spend(n.pathCount * (1 + len(value)/16)):
		r.rejectTooLarge(n)
	case kindOf(value) == gjson.Null:
		r.rejectMissing(n, "is null")
	default:
		if n.end >= 0 {
			r.checkScalar(n, parseValue(value))
		}
		if n.firstChild >= 0 {
			r.checkBelow(n, depth, value)
		}
	}
}

// checkBelow checks what is in a value.
func (r *reading) checkBelow(n *node, depth int, value string) {
	tree := r.check.tree
	switch value[0] {
	case '[':
		for i := n.firstChild; i >= 0; i = tree[i].sibling {
			r.checkElements(&tree[i], depth+1, value)
		}
	case '{':
		r.checkMembers(n, depth, value)
	default:
		r.reject(tree[n.firstChild].firstPath, "type", otherType)
	}
}

const otherType = "the argument has another type than the path expects"

// checkScalar checks the value at the end of a path.
func (r *reading) checkScalar(n *node, v jsonValue) {
	name, ok := r.check.paths[n.end].holds(v, &r.evaluation)
	switch {
	case ok:
	case r.budget < 0:
		r.reject(n.end, "size", "the arguments take too many steps to check")
	case v.Type == gjson.JSON:
		r.reject(n.end, "type", "the argument is not a single value")
	default:
		r.reject(n.end, name, "the argument is outside the bound")
	}
}

// checkElements checks an array: every element, or the element whose number is the step of the node. An
// array without elements is a missing value.
func (r *reading) checkElements(n *node, depth int, array string) {
	want, err := strconv.Atoi(n.step)
	if n.step != every && (err != nil || strconv.Itoa(want) != n.step || want < 0) {
		r.reject(n.firstPath, "type", "the argument is a list")
		return
	}
	at, checked := 0, false
	for element := range elementsOf(array) {
		if n.step == every || at == want {
			checked = true
			r.checkAt(n, depth, element)
		}
		if at++; n.firstPath >= r.rejected || n.step != every && checked {
			break
		}
	}
	if !checked {
		r.rejectMissing(n, "is missing")
	}
}

// checkMembers checks the members of an object that the nodes below n name, or their defaults. A
// member whose name differs in case only is rejected. A tool might take it for the member that
// the rule bounds.
func (r *reading) checkMembers(n *node, depth int, object string) {
	var few [8]string
	found, similar := few[:], uint32(0) // by child, of which there are at most MaxPaths
	if n.childCount > len(few) {
		found = make([]string, n.childCount)
	}
	tree := r.check.tree
	for key, value := range membersOf(object) {
		for i, c := n.firstChild, 0; i >= 0; i, c = tree[i].sibling, c+1 {
			if step := tree[i].step; key == step {
				found[c] = value
			} else if len(key) <= 4*len(step) && strings.EqualFold(key, step) {
				similar |= 1 << c
			}
		}
		if !r.spend(n.pathCount) {
			r.rejectTooLarge(n)
			return
		}
	}
	for i, c := n.firstChild, 0; i >= 0; i, c = tree[i].sibling, c+1 {
		r.checkMember(&tree[i], depth+1, found[c], similar>>c&1 == 1)
	}
}

// checkMember checks the value of a member, "" if there is none.
func (r *reading) checkMember(n *node, depth int, value string, similar bool) {
	if value == "" {
		value = r.defaultOf(n, depth)
	}
	switch {
	case n.step == every:
		r.reject(n.firstPath, "type", otherType)
	case similar:
		r.reject(n.firstPath, "case", "an argument differs from the bounded one in case only")
	case value == "":
		r.rejectMissing(n, "is missing")
	default:
		r.checkAt(n, depth, value)
	}
}

// defaultOf returns the default of the schema for a node, "" if there is none.
func (r *reading) defaultOf(n *node, depth int) string {
	if r.check.defaults == nil || r.check.defaults[n.firstPath] == nil {
		return ""
	}
	return r.check.defaults[n.firstPath][depth-1].Raw
}

// rejectMissing rejects a missing value unless all paths that lead there allow it.
func (r *reading) rejectMissing(n *node, how string) {
	if n.required >= 0 {
		r.reject(n.required, "missing", "the argument "+how)
	}
}

func (p *pathRule) violation(operator, problem string) *Violation {
	return &Violation{p.pointer, operator, shorten(p.text), problem}
}
