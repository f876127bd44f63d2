package bounds

import "slices"

// Satisfiable reports whether some arguments may be within all checks. It reports false only
// if there are certainly none; the call decides what cannot be decided here. Its time does not
// grow with the lengths of texts, beyond one check of each.
func Satisfiable(checks []*Check) bool {
	if slices.ContainsFunc(checks, func(c *Check) bool { return !c.Readable() }) {
		return false
	}
	for _, c := range checks {
		for i := range c.paths {
			if p := &c.paths[i]; !p.allowMissing && contradicts(p, checks) {
				return false
			}
		}
	}
	return true
}

// contradicts reports whether certainly no value is within p and all conditions of the same
// path.
func contradicts(p *pathRule, checks []*Check) bool {
	same := conditionsAt(p.pointer, checks)
	values, ok := p.fixedValues()
	if ok {
		return !slices.ContainsFunc(values, func(v jsonValue) bool {
			return !slices.ContainsFunc(same, func(c condition) bool { return c.certainlyRejects(v) })
		})
	}
	least, most := limitsOf(same)
	return least != nil && most != nil && least.compare(*most) > 0
}

// conditionsAt returns the conditions of all checks for one path.
func conditionsAt(pointer string, checks []*Check) (list []condition) {
	for _, c := range checks {
		for _, p := range c.paths {
			if p.pointer == pointer {
				list = append(list, p.condition)
			}
		}
	}
	return list
}

// fixedValues returns the values of which one must be passed. It reports false if other values
// may pass too.
func (c condition) fixedValues() (values []jsonValue, ok bool) {
	for _, op := range c.operators {
		switch o := op.(type) {
		case *equal:
			return []jsonValue{o.value}, true
		case anyOf:
			if values, ok = o.fixedValues(); ok {
				return values, true
			}
		}
	}
	return nil, false
}

func (list anyOf) fixedValues() (values []jsonValue, ok bool) {
	for _, c := range list {
		more, ok := c.fixedValues()
		if !ok {
			return nil, false
		}
		values = append(values, more...)
	}
	return values, true
}

// certainlyRejects reports whether c rejects a value in every task.
func (c condition) certainlyRejects(v jsonValue) bool {
	for _, op := range c.operators {
		switch o := op.(type) {
		case input: // what the task has is not known here
		case anyOf:
			if !slices.ContainsFunc(o, func(inner condition) bool { return !inner.certainlyRejects(v) }) {
				return true
			}
		default:
			if e := (evaluation{budget: maxWork}); !op.holds(v, &e) && e.budget >= 0 {
				return true
			}
		}
	}
	return false
}

// limitsOf returns the largest min and the smallest max of conditions, nil for none. It does
// not look into lists.
func limitsOf(list []condition) (least, most *number) {
	for _, c := range list {
		for _, op := range c.operators {
			o, ok := op.(*limit)
			switch {
			case !ok:
			case o.least && (least == nil || o.value.compare(*least) > 0):
				least = &o.value
			case !o.least && (most == nil || o.value.compare(*most) < 0):
				most = &o.value
			}
		}
	}
	return least, most
}

// WiderPath returns a path for which r certainly allows a value that other rejects in every
// task, "" if none is known. This rejects early a rule that allows more than the creating role
// may grant. At a call, the bounds of both roles hold in any case.
func (r Rule) WiderPath(other Rule) string {
	for i := range r.paths {
		p := &r.paths[i]
		if j := slices.IndexFunc(other.paths, func(o pathRule) bool { return o.pointer == p.pointer }); j >= 0 && p.isWider(&other.paths[j]) {
			return p.pointer
		}
	}
	return ""
}

// isWider reports whether p certainly allows a value that other rejects.
func (p *pathRule) isWider(other *pathRule) bool {
	if p.allowMissing && !other.allowMissing {
		return true
	}
	values, ok := p.fixedValues()
	if ok {
		return slices.ContainsFunc(values, func(v jsonValue) bool {
			_, allows := p.holds(v, &evaluation{budget: maxWork})
			return allows && other.certainlyRejects(v)
		})
	}
	least, most := limitsOf([]condition{p.condition})
	otherLeast, otherMost := limitsOf([]condition{other.condition})
	onlyLimits := !slices.ContainsFunc(p.operators, func(op operator) bool { _, ok := op.(*limit); return !ok })
	return onlyLimits && (otherMost != nil && (most == nil || most.compare(*otherMost) > 0) ||
		otherLeast != nil && (least == nil || least.compare(*otherLeast) < 0)) && (least == nil || most == nil || least.compare(*most) <= 0)
}
