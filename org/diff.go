package org

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// MaxDiffNames is the length of each list of a PermissionDiff.
const MaxDiffNames = 100

// PermissionDiff is the effect of a change of a role. It says who gains or loses tools,
// may pass other arguments, or may reach other hosts. Each list names at most
// MaxDiffNames; Counts counts all. Agents of ended tasks are left out. The time to make
// one does not grow with the number of agents.
type PermissionDiff struct {
	Agents  []AgentDiff  `json:"agents"`  // sorted by creation time; of each set of agents with the same limits, the oldest
	Roles   []RoleDiff   `json:"roles"`   // sorted by name
	Callers []CallerDiff `json:"callers"` // sorted by role and user
	Tasks   []TasksDiff  `json:"tasks"`   // sorted by name of the callers' role
	Counts  DiffCounts   `json:"counts"`
}

// DiffCounts counts who is affected by a change.
type DiffCounts struct {
	Agents  int `json:"agents"`
	Roles   int `json:"roles"`
	Callers int `json:"callers"`
	Tasks   int `json:"tasks"`
}

// IsEmpty reports whether no role, agent, caller or task is affected.
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

	// Bounds are the changes of bounds on the arguments of tools that are allowed after the
	// change, sorted by tool. A tool that is gained may have some.
	Bounds []BoundChange `json:"bounds,omitempty"`
}

// BoundChange says which bounds on the arguments of a tool hold since a change, and which do not
// any more. A bound that was changed is in both lists. All bounds along the line count.
type BoundChange struct {
	Tool    string        `json:"tool"`
	Added   []bounds.Rule `json:"added,omitempty"`
	Removed []bounds.Rule `json:"removed,omitempty"`
}

// isEmpty reports whether nothing is gained or lost.
func (c *AccessChange) isEmpty() bool {
	return len(c.Gains)+len(c.Loses)+len(c.Hosts)+len(c.Bounds) == 0
}

// diff returns the effect if next replaces a role. It must be called with mu held.
func (o *Org) diff(next *Role) PermissionDiff {
	return o.diffViews(next.ID, o.config.Groups.CurrentSnapshot(), func(id identity.RoleID) (*Role, bool) {
		if id == next.ID {
			return next, true
		}
		return o.lookupRole(id)
	})
}

// diffViews returns the effect of a change of a role: the difference between now and what
// a snapshot and the roles that find returns allow. It must be called with mu held.
func (o *Org) diffViews(changed identity.RoleID, snapshot *toolgroups.Snapshot, find roleLookup) PermissionDiff {
	d := differ{Org: o, now: o.config.Groups.CurrentSnapshot(), next: snapshot, find: find}
	d.diff = PermissionDiff{Agents: []AgentDiff{}, Roles: []RoleDiff{}, Callers: []CallerDiff{}, Tasks: []TasksDiff{}}
	for s := range o.scopes.byRole[changed] {
		d.addAgents(s)
	}
	for _, role := range o.rolesBelow(changed) {
		d.addRole(role)
		d.addCallers(role)
	}
	for _, holder := range d.holdersOf(changed) {
		d.addTasks(holder)
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

// compareScope compares what the current View was of a scope allows with the scope after the
// compareScope.
func (d *differ) compareScope(s *scope, was *toolgroups.View) AccessChange {
	return d.compareViews(was, s.compile(d.next, d.find), s.hostLimits)
}

// compareViews compares a View before the change with one after it. limits returns the
// constraints whose Hosts limit requests.
func (d *differ) compareViews(was, is *toolgroups.View, limits func(roleLookup) []constraint) AccessChange {
	gains, loses := compareTools(was, is)
	c := AccessChange{Gains: gains, Loses: loses, Bounds: compareBounds(was, is)}
	if allowsNetwork(d.now, was) && allowsNetwork(d.next, is) {
		c.Hosts = changedHostRules(limits(d.lookupRole), limits(d.find))
	}
	return c
}

// addAgents adds the agents of a scope.
func (d *differ) addAgents(s *scope) {
	if s.agents.count == 0 {
		return
	}
	c := d.compareScope(s, s.CurrentView())
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
	c := d.compareScope(s, s.compile(d.now, d.lookupRole))
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
	c := d.compareScope(s, s.compile(d.now, d.lookupRole))
	if c.isEmpty() {
		return
	}
	d.diff.Counts.Callers += len(users)
	for _, user := range users[:min(len(users), MaxDiffNames-len(d.diff.Callers))] {
		d.diff.Callers = append(d.diff.Callers, CallerDiff{User: user, Role: role.Name, AccessChange: c})
	}
}

// holdersOf returns the roles with tasks.as, before or after the change, whose tasks the change may
// concern. These are the changed role, and the roles whose tasks it bounds. They are sorted by
// name.
func (d *differ) holdersOf(changed identity.RoleID) (list []*Role) {
	bounds := func(r *Role) bool {
		as, given := r.tasksAs(d.lookupRole)
		return given && (r.ID == changed || as != nil && d.isBelow(as, changed))
	}
	roles := d.sortedRoles()
	if r, ok := d.roles[changed]; ok && r.Status != Active { // it becomes active
		roles = append(roles, r)
	}
	for _, r := range roles {
		if after, ok := d.find(r.ID); bounds(r) || ok && bounds(after) {
			list = append(list, r)
		}
	}
	return list
}

// addTasks adds the tasks of callers in a role.
func (d *differ) addTasks(holder *Role) {
	limits := func(find roleLookup) []constraint { return callerTaskLimits(find, holder.ID) }
	c := d.compareViews(d.taskView(d.now, d.lookupRole, holder.ID), d.taskView(d.next, d.find, holder.ID), limits)
	if c.isEmpty() {
		return
	}
	t := TasksDiff{ID: holder.ID, Role: holder.Name, AccessChange: c}
	if after, ok := d.find(holder.ID); ok {
		t.Role = after.Name
		if as, given := after.tasksAs(d.find); given && as != nil {
			t.As = as.Name
		}
	}
	if d.diff.Counts.Tasks++; len(d.diff.Tasks) < MaxDiffNames {
		d.diff.Tasks = append(d.diff.Tasks, t)
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
	slices.SortFunc(d.diff.Tasks, func(a, b TasksDiff) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.ID, b.ID)) })
	slices.SortFunc(d.diff.Callers, func(a, b CallerDiff) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.User, b.User)) })
	return d.diff
}

// rolesBelow returns a role and the active roles whose permissions it bounds, sorted by name. The
// role or a role below it created them.
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

// RolesConcerned returns the roles whose agents or callers a change of a role may concern. These
// are the roles that it bounds, and the role itself.
func (o *Org) RolesConcerned(id identity.RoleID) []identity.RoleID {
	o.mu.RLock()
	defer o.mu.RUnlock()
	found := map[identity.RoleID]bool{id: true}
	for s := range o.scopes.byRole[id] {
		found[s.role] = true
	}
	for _, r := range o.rolesBelow(id) {
		found[r.ID] = true
	}
	return slices.Collect(maps.Keys(found))
}

// isBelow reports whether r is the role with this id or was created by it or by a role
// below it.
func (o *Org) isBelow(r *Role, id identity.RoleID) bool {
	return o.isBelowAny(r, map[identity.RoleID]bool{id: true})
}

// isBelowAny reports whether isBelow holds for one of the ids.
func (o *Org) isBelowAny(r *Role, ids map[identity.RoleID]bool) bool {
	for seen := map[identity.RoleID]bool{}; !ids[r.ID] && !seen[r.ID]; {
		seen[r.ID] = true
		creator, ok := o.lookupRole(identity.RoleID(r.CreatedByRole))
		if !ok {
			return false
		}
		r = creator
	}
	return ids[r.ID]
}

// roleName returns the name of a role, or its id if it is unknown.
func (o *Org) roleName(id identity.RoleID) string {
	if r, ok := o.roles[id]; ok {
		return r.Name
	}
	return string(id)
}

// compareTools returns the names of the tools that only after and only before allows, sorted.
func compareTools(before, after *toolgroups.View) (gains, loses []string) {
	was, is := namesOf(before), namesOf(after)
	return namesWithout(is, was), namesWithout(was, is)
}

// compareBounds returns the changes of bounds on the tools that after allows, sorted.
func compareBounds(before, after *toolgroups.View) (list []BoundChange) {
	was, is := before.ToolBounds(), after.ToolBounds()
	for _, name := range after.ToolNames() {
		c := BoundChange{Tool: name, Added: rulesWithout(is[name], was[name]), Removed: rulesWithout(was[name], is[name])}
		if len(c.Added)+len(c.Removed) > 0 {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b BoundChange) int { return cmp.Compare(a.Tool, b.Tool) })
	return list
}

// rulesWithout returns the rules that are in list and not in other.
func rulesWithout(list, other []bounds.Rule) (rest []bounds.Rule) {
	for _, r := range list {
		if !slices.ContainsFunc(other, r.Equal) {
			rest = append(rest, r)
		}
	}
	return rest
}

func namesOf(v *toolgroups.View) map[string]bool {
	names := map[string]bool{}
	for _, name := range v.ToolNames() {
		names[name] = true
	}
	return names
}

// namesWithout returns the names that are in list and not in other, sorted.
func namesWithout(list, other map[string]bool) []string {
	names := []string{}
	for name := range list {
		if !other[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
