package org

import (
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// scope is shared by all agents with the same role and the same limits. They use one
// compiled View, so that ten thousand agents of a role cost one compilation. The fields
// of a scope never change; what they allow does, because roles change.
type scope struct {
	toolgroups.ViewRef
	role     identity.RoleID
	root     bool            // the agents are roots of tasks
	parent   *scope          // of the agents' parents, or an equivalent one (canonical); nil at the top of a task
	bounds   []constraint    // of the task; only at the top
	caller   identity.RoleID // role of the task's caller; only at the top; "" if the caller has no role
	orphaned bool            // the parent or the task is missing: nothing is allowed
	agents   agentList       // changes, unlike the other fields
	used     atomic.Bool     // by a caller with a limit, since addLimited has looked at it; changes
}

// scopeKey identifies a scope. It has the fields of scope, with bounds as text.
type scopeKey struct {
	role   identity.RoleID
	root   bool
	parent *scope
	bounds string
	caller identity.RoleID
	orphan bool
}

// scopeIndex holds all scopes and finds the scopes that a change may affect.
type scopeIndex struct {
	byKey   map[scopeKey]*scope
	byRole  map[identity.RoleID]map[*scope]bool
	byGroup map[toolgroups.GroupID]map[*scope]bool
	all     map[*scope]bool // scopes of roles that use All
	limited []scopeKey      // of callers with a limit, the oldest first; at most maxLimitedScopes
}

func newScopeIndex() scopeIndex {
	return scopeIndex{
		byKey:   map[scopeKey]*scope{},
		byRole:  map[identity.RoleID]map[*scope]bool{},
		byGroup: map[toolgroups.GroupID]map[*scope]bool{},
		all:     map[*scope]bool{},
	}
}

// scopeOf returns the scope of an agent. The parent must have its scope already. It
// must be called with mu held.
func (o *Org) scopeOf(m *agentNode) *scope {
	key := scopeKey{role: m.role, root: m.root}
	var bounds []constraint
	task, ok := o.tasks[m.task]
	switch {
	case m.orphaned:
		key.orphan = true
	case m.parent != nil:
		key.parent = m.parent.scope.canonical()
	case ok && task.Top == m.id && task.isValid():
		bounds = task.bounds()
		key.bounds, key.caller = boundsKey(bounds), task.CallerRole
	default:
		key.orphan = true
	}
	return o.intern(key, bounds)
}

// intern returns the scope with the given key. It creates and compiles the scope if
// there is none. bounds are those whose text is in key.
func (o *Org) intern(key scopeKey, bounds []constraint) *scope {
	if s, ok := o.scopes.byKey[key]; ok {
		return s
	}
	s := &scope{role: key.role, root: key.root, parent: key.parent, bounds: bounds, caller: key.caller, orphaned: key.orphan}
	o.scopes.byKey[key] = s
	o.recompile([]*scope{s})
	return s
}

// canonical returns a scope that grants the same as s and is not deeper than the number
// of roles. If the role of s already occurs among the ancestors of s, s adds no limit to
// the limits of its parent. Chains of scopes therefore stay short however deep the tree
// of agents is.
func (s *scope) canonical() *scope {
	for at := s.parent; at != nil && !s.root && !s.orphaned; at = at.parent {
		if at.role == s.role && !at.root && !at.orphaned {
			return s.parent
		}
	}
	return s
}

// boundsKey returns a text that is equal for equal limits, "" for none.
func boundsKey(limits []constraint) string {
	if len(limits) == 0 {
		return ""
	}
	text, _ := json.Marshal(limits) // sets and maps of strings always marshal
	return string(text)
}

// permissions returns what the agents of s use and all limits within which they use it.
func (s *scope) permissions(find roleLookup) (use constraint, limits []constraint) {
	switch {
	case s.orphaned:
		return denyAll("the agent's parent or task does not exist"), nil
	case s.root: // the bounds of a task limit what root grants, never what it uses
		return constraint{PinnedSet: toolgroups.PinnedSet{
			Set:    toolgroups.SetOf(toolgroups.OrgManagement),
			Owners: map[toolgroups.GroupID]toolgroups.GroupOwner{toolgroups.OrgManagement: toolgroups.Builtin},
		}, reason: "root uses org_management alone", kind: LimitUse}, nil
	}
	role, ok := find(s.role)
	if !ok {
		return denyAll("the role does not exist"), nil
	}
	return role.useLimit("the toolGroups of role " + role.Name).as(LimitUse), append(ceiling(find, role), s.parentLimits(find)...)
}

// grantLimits returns all limits on what the agents of s may grant.
func (s *scope) grantLimits(find roleLookup) []constraint {
	switch {
	case s.orphaned:
		return []constraint{denyAll("the agent's parent or task does not exist")}
	case s.root:
		return slices.Concat(s.taskLimits(find), rootLimits(find))
	}
	role, ok := find(s.role)
	if !ok {
		return []constraint{denyAll("the role " + string(s.role) + " does not exist")}
	}
	own := role.grantLimit("what role " + role.Name + " may grant").as(LimitParent)
	return append(append(ceiling(find, role), own), s.parentLimits(find)...)
}

// parentLimits returns what the parent may grant, at the top the limits of the task. What
// root may grant does not limit the agents of declared roles that it has spawned.
func (s *scope) parentLimits(find roleLookup) []constraint {
	if s.parent == nil {
		return s.taskLimits(find)
	}
	if role, ok := find(s.role); ok && s.parent.root && role.isDeclared() {
		return s.parent.taskLimits(find)
	}
	return s.parent.grantLimits(find)
}

// taskLimits returns the bounds of the task and what its caller's tasks may use now.
func (s *scope) taskLimits(find roleLookup) []constraint {
	if s.caller == "" {
		return s.bounds
	}
	return slices.Concat(s.bounds, ofCaller(callerTaskLimits(find, s.caller)...))
}

// compile returns the View of s. It is tool-gated if the role or one of the limits is.
func (s *scope) compile(snapshot *toolgroups.Snapshot, find roleLookup) *toolgroups.View {
	use, limits := s.permissions(find)
	gating, sets := use.gating, make([]toolgroups.PinnedSet, len(limits))
	for i, l := range limits {
		gating, sets[i] = max(gating, l.gating), l.PinnedSet
	}
	view := snapshot.Compile(use.PinnedSet, sets...)
	view.SetGating(gating)
	snapshot.SetApprovalRules(view, s.approvalRules(find, append(limits, use)))
	if why := suspensionReason(use, limits); why != "" {
		view.SetSuspended(why)
	}
	return view
}

// recompile compiles and publishes the Views of the given scopes, and indexes what they
// depend on now. It must be called with mu held, after the epoch was incremented.
func (o *Org) recompile(list []*scope) {
	snapshot := o.config.Groups.CurrentSnapshot()
	for _, s := range list {
		o.scopes.add(s, o.lookupRole)
		view := o.viewUnlessPaused(s.compile(snapshot, o.lookupRole))
		view.SetEpoch(o.epoch)
		s.PublishView(view)
	}
}

// add indexes a scope under every role and group that its View depends on. It does not
// remove older entries. Recompiling a scope in vain costs time, but a missing entry
// would leave a revoked permission active.
func (x *scopeIndex) add(s *scope, find roleLookup) {
	use, limits := s.permissions(find)
	if use.Set.IsAll() {
		x.all[s] = true
	}
	for _, b := range append(limits, use) {
		for _, id := range b.Set.GroupIDs() {
			whole, _ := id.WholeGroup() // changes are reported by the ids of groups
			addTo(x.byGroup, whole, s)
		}
	}
	for _, r := range s.approvalRules(find, append(limits, use)) {
		for _, id := range r.Groups { // the tools that a rule selects change with its groups
			group, _ := toolgroups.GroupID(id).WholeGroup()
			addTo(x.byGroup, group, s)
		}
	}
	addTo(x.byRole, RootRole, s) // it has the rules of the organization
	for at := s; at != nil; at = at.parent {
		x.addCreators(s, at.role, find)
		x.addCreators(s, at.caller, find)
		if caller, ok := find(at.caller); ok && caller.Tasks.As != "" {
			x.addCreators(s, caller.Tasks.As, find)
		}
	}
}

// addCreators indexes s under a role and under all roles above it by creation.
func (x *scopeIndex) addCreators(s *scope, id identity.RoleID, find roleLookup) {
	for seen := map[identity.RoleID]bool{}; !seen[id]; {
		seen[id] = true
		addTo(x.byRole, id, s)
		role, ok := find(id)
		if !ok {
			return
		}
		id = identity.RoleID(role.CreatedByRole)
	}
}

func addTo[K comparable](index map[K]map[*scope]bool, key K, s *scope) {
	if index[key] == nil {
		index[key] = map[*scope]bool{}
	}
	index[key][s] = true
}

// byRoleID returns the scopes that a change of a role may affect.
func (x *scopeIndex) byRoleID(id identity.RoleID) []*scope {
	var list []*scope
	for s := range x.byRole[id] {
		list = append(list, s)
	}
	return list
}

// byGroups returns the scopes that a change of groups may affect.
func (x *scopeIndex) byGroups(ids []toolgroups.GroupID) map[*scope]bool {
	found := map[*scope]bool{}
	if len(ids) > 0 {
		maps.Copy(found, x.all)
	}
	for _, id := range ids {
		maps.Copy(found, x.byGroup[id])
	}
	return found
}

// addScopesOf adds the scopes that a change of a role may affect.
func (x *scopeIndex) addScopesOf(found map[*scope]bool, id identity.RoleID) map[*scope]bool {
	maps.Copy(found, x.byRole[id])
	return found
}
