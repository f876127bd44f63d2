package toolgroups

import (
	"slices"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// RulesFor returns the rules of b for a tool, under each of its names.
func (b PinnedSet) RulesFor(h *ToolHandle) (list []bounds.Rule) {
	for _, name := range []string{h.Definition.Name, h.OtherName()} {
		if r, ok := b.Bind.RuleFor(name); ok {
			list = append(list, r)
		}
	}
	return list
}

// ToolChecks returns the bounds on the arguments of a tool that v allows, nil if there are none.
// All of them must hold at a call. Callers must not change the list.
func (v *View) ToolChecks(h *ToolHandle) []*bounds.Check {
	if v == nil {
		return nil
	}
	return v.checks[h.index]
}

// ToolChecks returns the bounds of the View that decided, see View.ToolChecks.
func (e *Evaluation) ToolChecks(h *ToolHandle) []*bounds.Check { return e.view.ToolChecks(h) }

// ToolBounds returns the bounds on the tools that v shows in some state, by name. Tools without
// bounds are left out.
func (v *View) ToolBounds() map[string][]bounds.Rule {
	byName := map[string][]bounds.Rule{}
	for _, h := range v.handles {
		for _, c := range v.ToolChecks(h) {
			byName[h.Definition.Name] = append(byName[h.Definition.Name], c.Rule)
		}
	}
	return byName
}

// applyBounds sets the checks of v and returns handles without the tools whose bounds surely let no
// arguments through.
func (v *View) applyBounds(handles []*ToolHandle, sets []PinnedSet) []*ToolHandle {
	sets = slices.DeleteFunc(sets, func(b PinnedSet) bool { return len(b.Bind) == 0 })
	if len(sets) == 0 {
		return handles
	}
	return slices.DeleteFunc(handles, func(h *ToolHandle) bool {
		checks := checksFor(h, sets)
		if len(checks) == 0 {
			return false
		}
		if !bounds.Satisfiable(checks) {
			return true
		}
		if v.checks == nil {
			v.checks = map[uint32][]*bounds.Check{}
		}
		v.checks[h.index] = checks
		return false
	})
}

// checksFor returns the checks of a tool, without rules that occur twice.
func checksFor(h *ToolHandle, sets []PinnedSet) (list []*bounds.Check) {
	for _, b := range sets {
		for _, r := range b.RulesFor(h) {
			if !slices.ContainsFunc(list, func(c *bounds.Check) bool { return c.Rule.Equal(r) }) {
				list = append(list, r.ForSchema(h.Definition.Input))
			}
		}
	}
	return list
}

// shownDefinition returns the definition of a tool as v shows it: bounds with fixed values stand in its
// schema.
func (v *View) shownDefinition(h *ToolHandle) tool.Definition {
	d, checks := h.Definition, v.ToolChecks(h)
	if len(checks) == 0 {
		return d
	}
	if d.Shown != nil {
		d.Shown = bounds.NarrowSchema(d.Shown, checks)
	}
	d.Input = bounds.NarrowSchema(d.Input, checks)
	return d
}
