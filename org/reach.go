package org

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// maxReachRoles limits how many roles below a changed role CompareReach compares.
const maxReachRoles = 20

// ReachDiff is the effect of a change of a role on what agents of one role reach through other
// agents. It describes agents directly below a root, in a task without limits.
type ReachDiff struct {
	ID    identity.RoleID `json:"id"` // "" is a planned role
	Name  string          `json:"name"`
	Roles ReachChange     `json:"roles"` // roles of the operator and the configuration whose agents they may spawn
	Tools ReachChange     `json:"tools"` // tools that they may put into roles which they create
}

// ReachChange has the names that are gained and lost, sorted, at most MaxDiffNames of each.
type ReachChange struct {
	Gains []string `json:"gains"`
	Loses []string `json:"loses"`
}

func (c ReachChange) isEmpty() bool { return len(c.Gains)+len(c.Loses) == 0 }

// reach is what agents of a role reach, by name.
type reach struct{ roles, tools map[string]bool }

// CompareReach returns the effect of next on what agents reach. next replaces the role with its
// id. Without an id it is created, as a role of PlanRole. CompareReach compares the role and at
// most 20 roles that it bounds. For all other roles it compares whether their agents may spawn
// agents of next. The list is sorted by name. CompareReach may be called concurrently.
func (o *Org) CompareReach(next Role) []ReachDiff {
	o.mu.RLock()
	defer o.mu.RUnlock()
	all, planned := o.sortedRoles(), next.ID == ""
	if planned {
		next.ID = identity.RoleID(identity.NewID()) // no role has an empty id
		all = append(all, &next)
		slices.SortStableFunc(all, func(a, b *Role) int { return strings.Compare(a.Name, b.Name) })
	}
	then := func(id identity.RoleID) (*Role, bool) {
		if id == next.ID {
			return &next, true
		}
		return o.lookupRole(id)
	}
	below := o.rolesBelow(next.ID)
	below = append([]*Role{}, below[:min(len(below), maxReachRoles)]...)
	list := []ReachDiff{}
	for _, r := range all {
		targets := all
		if r.ID != next.ID && !slices.Contains(below, r) {
			targets = []*Role{{ID: next.ID}}
		}
		was, is := o.reachOf(r.ID, o.lookupRole, targets), o.reachOf(r.ID, then, targets)
		d := ReachDiff{ID: r.ID, Name: r.Name, Roles: reachChange(was.roles, is.roles), Tools: reachChange(was.tools, is.tools)}
		if planned && r.ID == next.ID {
			d.ID = ""
		}
		if !d.Roles.isEmpty() || !d.Tools.isEmpty() {
			list = append(list, d)
		}
	}
	return list
}

// reachOf returns what agents of a role reach. Of the roles it considers the targets.
func (o *Org) reachOf(id identity.RoleID, find roleLookup, targets []*Role) reach {
	r := reach{roles: map[string]bool{}, tools: map[string]bool{}}
	snapshot, s := o.config.Groups.CurrentSnapshot(), o.previewScope(id, toolgroups.AllGroups())
	own := s.compile(snapshot, find)
	spawns := hasBuiltin(snapshot, own, "spawn_agent") || hasBuiltin(snapshot, own, "spawn_agent_with_task")
	if !spawns {
		return r
	}
	g := grantor{role: string(id), limits: s.grantLimits(find)}
	for _, t := range targets {
		if role, ok := find(t.ID); ok && role.Status == Active && role.isDeclared() && !role.Suspended() && o.covers(g, role) {
			r.roles[role.Name] = true
		}
	}
	if hasBuiltin(snapshot, own, "create_role") {
		r.tools = namesOf(snapshot.Compile(toolgroups.PinnedSet{Set: toolgroups.AllGroups()}, pinnedSets(g.limits)...))
	}
	return r
}

// pinnedSets returns the sets of constraints.
func pinnedSets(limits []constraint) []toolgroups.PinnedSet {
	sets := make([]toolgroups.PinnedSet, len(limits))
	for i, l := range limits {
		sets[i] = l.PinnedSet
	}
	return sets
}

// hasBuiltin reports whether a View has a built-in tool.
func hasBuiltin(s *toolgroups.Snapshot, v *toolgroups.View, name string) bool {
	h, ok := s.LookupTool(name)
	return ok && h.Owner == toolgroups.Builtin && v.HasTool(h)
}

// reachChange compares two sets of names.
func reachChange(was, is map[string]bool) ReachChange {
	gains, loses := namesWithout(is, was), namesWithout(was, is)
	return ReachChange{Gains: gains[:min(len(gains), MaxDiffNames)], Loses: loses[:min(len(loses), MaxDiffNames)]}
}
