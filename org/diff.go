package org

import (
	"cmp"
	"slices"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
)

// MaxDiffNames is the number of agents, of roles and of callers that a PermissionDiff names.
const MaxDiffNames = 100

// PermissionDiff is the effect of a change of a role: who gains or loses tools, or may
// reach other hosts. Each list names at most MaxDiffNames; Counts counts all. Agents of
// ended tasks are left out. The time to make one does not grow with the number of agents.
type PermissionDiff struct {
	Agents  []AgentDiff  `json:"agents"`  // sorted by creation time; of each set of agents with the same limits, the oldest
	Roles   []RoleDiff   `json:"roles"`   // sorted by name
	Callers []CallerDiff `json:"callers"` // sorted by role and user
	Counts  DiffCounts   `json:"counts"`
}

// DiffCounts counts who is affected by a change.
type DiffCounts struct {
	Agents  int `json:"agents"`
	Roles   int `json:"roles"`
	Callers int `json:"callers"`
}

// IsEmpty reports whether nobody is affected.
func (d *PermissionDiff) IsEmpty() bool { return d.Counts == DiffCounts{} }

// AgentDiff is the effect of a change on one agent.
type AgentDiff struct {
	Agent identity.AgentID `json:"agent"`
	Role  string           `json:"role"` // name
	AccessChange
}

// RoleDiff is the effect of a change on a role: on agents that root will spawn of it, as
// RoleView has them.
type RoleDiff struct {
	ID   identity.RoleID `json:"id"`
	Name string          `json:"name"`
	AccessChange
}

// CallerDiff is the effect of a change on an external caller. Callers are known if they
// have a workflow state, or have called since the program was started.
type CallerDiff struct {
	User identity.UserName `json:"user"`
	Role string            `json:"role"` // name
	AccessChange
}

// AccessChange says what is gained and lost.
type AccessChange struct {
	Gains []string `json:"gains"` // names of tools, sorted
	Loses []string `json:"loses"` // names of tools, sorted

	// Hosts are the rules that must all allow requests after the change. It is nil
	// if they do not change, or if no requests can be made both before and after.
	Hosts []hosts.HostRule `json:"hosts,omitempty"`
}

// isEmpty reports whether nothing is gained or lost.
func (c *AccessChange) isEmpty() bool { return len(c.Gains)+len(c.Loses)+len(c.Hosts) == 0 }

// diff returns the effect if next replaces a role. It must be called with mu held.
func (o *Org) diff(next *Role) PermissionDiff {
	return o.diffViews(next.ID, o.config.Groups.CurrentSnapshot(), func(id identity.RoleID) (*Role, bool) {
		if id == next.ID {
			return next, true
		}
		return o.role(id)
	})
}

// diffViews returns the effect of a change of a role: the difference between now and what
// a snapshot and the roles that find returns allow. It must be called with mu held.
func (o *Org) diffViews(changed identity.RoleID, snapshot *toolgroups.Snapshot, find roleLookup) PermissionDiff {
	d := differ{Org: o, now: o.config.Groups.CurrentSnapshot(), next: snapshot, find: find}
	d.diff = PermissionDiff{Agents: []AgentDiff{}, Roles: []RoleDiff{}, Callers: []CallerDiff{}}
	for s := range o.scopes.byRole[changed] {
		d.addAgents(s)
	}
	for _, role := range o.rolesBelow(changed) {
		d.addRole(role)
		d.addCallers(role)
	}
	return d.finish()
}

// differ makes a PermissionDiff. It is used with mu held.
type differ struct {
	*Org
	now, next *toolgroups.Snapshot
	find      roleLookup // the roles after the change
	agents    []affectedAgent
	diff      PermissionDiff
}

// affectedAgent is an agent that a PermissionDiff may name.
type affectedAgent struct {
	*agentNode
	change AccessChange
}

// change compares what the current View was of a scope allows with the scope after the
// change.
func (d *differ) change(s *scope, was *toolgroups.View) AccessChange {
	is := s.compile(d.next, d.find)
	gains, loses := compare(was, is)
	c := AccessChange{Gains: gains, Loses: loses}
	if allowsNetwork(d.now, was) && allowsNetwork(d.next, is) {
		c.Hosts = s.newHostRules(d.role, d.find)
	}
	return c
}

// addAgents adds the agents of a scope.
func (d *differ) addAgents(s *scope) {
	if s.agents.count == 0 {
		return
	}
	c := d.change(s, s.CurrentView())
	if c.isEmpty() {
		return
	}
	d.diff.Counts.Agents += s.agents.count
	named := 0
	for m := s.agents.first; m != nil && named < MaxDiffNames; m = m.nextInScope {
		d.agents = append(d.agents, affectedAgent{m, c})
		named++
	}
}

// addRole adds a role.
func (d *differ) addRole(role *Role) {
	s := d.previewScope(role.ID, toolgroups.AllGroups())
	c := d.change(s, s.compile(d.now, d.role))
	if c.isEmpty() {
		return
	}
	if d.diff.Counts.Roles++; len(d.diff.Roles) < MaxDiffNames {
		d.diff.Roles = append(d.diff.Roles, RoleDiff{ID: role.ID, Name: role.Name, AccessChange: c})
	}
}

// addCallers adds the known callers in a role.
func (d *differ) addCallers(role *Role) {
	users := d.callers.users[role.ID]
	if len(users) == 0 {
		return
	}
	s := &scope{role: role.ID}
	c := d.change(s, s.compile(d.now, d.role))
	if c.isEmpty() {
		return
	}
	d.diff.Counts.Callers += len(users)
	for _, user := range users[:min(len(users), MaxDiffNames-len(d.diff.Callers))] {
		d.diff.Callers = append(d.diff.Callers, CallerDiff{User: user, Role: role.Name, AccessChange: c})
	}
}

// finish sorts the lists and cuts them to their length.
func (d *differ) finish() PermissionDiff {
	slices.SortFunc(d.agents, func(a, b affectedAgent) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.id, b.id))
	})
	for _, m := range d.agents[:min(len(d.agents), MaxDiffNames)] {
		d.diff.Agents = append(d.diff.Agents, AgentDiff{Agent: m.id, Role: d.roleName(m.agentNode.role), AccessChange: m.change})
	}
	slices.SortFunc(d.diff.Callers, func(a, b CallerDiff) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.User, b.User)) })
	return d.diff
}

// rolesBelow returns a role and the active roles whose permissions it bounds, because it or
// a role below it created them, sorted by name.
func (o *Org) rolesBelow(id identity.RoleID) []*Role {
	var list []*Role
	if r, ok := o.roles[id]; ok && r.Status != Active { // it becomes active
		list = append(list, r)
	}
	for _, r := range o.sortedRoles() {
		if o.isBelow(r, id) {
			list = append(list, r)
		}
	}
	return list
}

// isBelow reports whether r is the role with this id or was created by it or by a role
// below it.
func (o *Org) isBelow(r *Role, id identity.RoleID) bool {
	for seen := map[identity.RoleID]bool{}; r.ID != id && !seen[r.ID]; {
		seen[r.ID] = true
		creator, ok := o.role(identity.RoleID(r.CreatedByRole))
		if !ok {
			return false
		}
		r = creator
	}
	return r.ID == id
}

// roleName returns the name of a role, or its id if it is unknown.
func (o *Org) roleName(id identity.RoleID) string {
	if r, ok := o.roles[id]; ok {
		return r.Name
	}
	return string(id)
}

// compare returns the names of the tools that only after and only before allows, sorted.
func compare(before, after *toolgroups.View) (gains, loses []string) {
	was, is := namesOf(before), namesOf(after)
	return without(is, was), without(was, is)
}

func namesOf(v *toolgroups.View) map[string]bool {
	names := map[string]bool{}
	for _, name := range v.ToolNames() {
		names[name] = true
	}
	return names
}

// without returns the names that are in list and not in other, sorted.
func without(list, other map[string]bool) []string {
	names := []string{}
	for name := range list {
		if !other[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
