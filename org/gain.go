package org

import (
	"slices"

	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// Gains reports whether a role, agent, caller or task that d names gains a tool.
func (d *PermissionDiff) Gains() bool {
	return slices.ContainsFunc(d.Agents, func(x AgentDiff) bool { return len(x.Gains) > 0 }) ||
		slices.ContainsFunc(d.Roles, func(x RoleDiff) bool { return len(x.Gains) > 0 }) ||
		slices.ContainsFunc(d.Callers, func(x CallerDiff) bool { return len(x.Gains) > 0 }) ||
		slices.ContainsFunc(d.Tasks, func(x TasksDiff) bool { return len(x.Gains) > 0 })
}

// Widens reports whether next may allow what old does not, now or later: tools that no group of old
// has, groups without tools, other arguments, hosts or tasks. It errs on the side of true: a bound or
// a restriction that is replaced by another counts, whatever the two say. The zero Role stands for
// no role. It does not compare names, prompts, models and limits.
func (o *Org) Widens(old, next *Role) bool {
	return o.addsTools(old, old.Use, next.Use) || o.addsTools(old, old.Grant, next.Grant) || old.rebinds(next) || old.loosens(next) ||
		old.Server != "" && next.Server != old.Server || old.Hosts != nil && !old.hosts().Equal(next.hosts()) ||
		next.Tasks != old.Tasks || next.Agent != nil && !next.Agent.equal(old.Agent) ||
		slices.ContainsFunc(next.States, func(s string) bool { return !slices.Contains(old.States, s) })
}

// addsTools reports whether the set next has tools, or groups without tools, that the set was of a
// role does not have.
func (o *Org) addsTools(old *Role, was, next toolgroups.GroupSet) bool {
	added := was.MissingFrom(next)
	if next.IsAll() || len(added) == 0 {
		return len(added) > 0
	}
	s, had := o.config.Groups.CurrentSnapshot(), map[string]bool{}
	for _, id := range was.GroupIDs() {
		if owner := old.GroupOwners[id]; owner != "" && owner == s.GroupOwner(id) {
			for _, t := range s.ToolsWhenOpen(id) {
				had[t.Definition.Name] = true
			}
		}
	}
	return slices.ContainsFunc(added, func(id toolgroups.GroupID) bool {
		list := s.ToolsWhenOpen(id)
		return len(list) == 0 || slices.ContainsFunc(list, func(t *toolgroups.ToolHandle) bool { return !had[t.Definition.Name] })
	})
}

// rebinds reports whether a group that r has gets another owner.
func (r *Role) rebinds(next *Role) bool {
	return slices.ContainsFunc(append(next.Use.GroupIDs(), next.Grant.GroupIDs()...), func(id toolgroups.GroupID) bool {
		return (slices.Contains(r.Use.GroupIDs(), id) || slices.Contains(r.Grant.GroupIDs(), id)) && r.GroupOwners[id] != next.GroupOwners[id]
	})
}

// loosens reports whether next lacks a bound on arguments, or an approval, that r has.
func (r *Role) loosens(next *Role) bool {
	for name, was := range r.Bind {
		if is, bounded := next.Bind.RuleFor(name); !bounded || !is.Equal(was) {
			return true
		}
	}
	return slices.ContainsFunc(r.Approval, func(was approval.Rule) bool {
		return !slices.ContainsFunc(next.Approval, func(is approval.Rule) bool { return is.Equal(&was) })
	})
}
