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

// Widens reports whether next may allow something that old does not, now or later. This may be
// groups that are no part of the groups of old, or other arguments, hosts or tasks. Widens errs on
// the side of true. A bound or a restriction that is replaced by another counts, whatever the two
// say. The zero Role stands for no role. Widens does not compare names, prompts, models and
// limits.
func (o *Org) Widens(old, next *Role) bool {
	return o.addsGroups(old, old.Use, next.Use) || o.addsGroups(old, old.Grant, next.Grant) || old.repins(next) || old.loosens(next) ||
		old.Server != "" && next.Server != old.Server || old.Hosts != nil && !old.hosts().Equal(next.hosts()) ||
		next.Tasks != old.Tasks || next.Agent != nil && !next.Agent.equal(old.Agent) ||
		slices.ContainsFunc(next.States, func(s string) bool { return !slices.Contains(old.States, s) })
}

// addsGroups reports whether the set next has groups that are no part of the groups in the set was
// of a role. It does not compare their current tools: tools come later, and hours end.
func (o *Org) addsGroups(old *Role, was, next toolgroups.GroupSet) bool {
	if was.IsAll() || next.IsAll() {
		return !was.IsAll()
	}
	s, held := o.config.Groups.CurrentSnapshot(), old.Bound(was)
	held.Set = toolgroups.SetOf(slices.DeleteFunc(was.GroupIDs(), func(id toolgroups.GroupID) bool {
		owner := s.GroupOwner(id)
		return owner == "" || owner != old.GroupOwners[id]
	})...)
	return slices.ContainsFunc(next.GroupIDs(), func(id toolgroups.GroupID) bool { return !was.Has(id) && !s.CoversAlways(held, id) })
}

// repins reports whether a group that r has gets another owner.
func (r *Role) repins(next *Role) bool {
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
