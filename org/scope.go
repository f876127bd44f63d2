package org

import (
	"encoding/json"
	"slices"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// scope is the place of all agents that share role and limits: one View for
// them all. A slot's inputs never change, only what they come to.
type scope struct {
	toolgroups.ViewRef
	role     identity.RoleID
	root     bool
	parent   *scope          // of the agents' parents, or one that grants the same (short); nil at the top
	bounds   []constraint    // of the task, at the top
	caller   identity.RoleID // of the task's caller, at the top; "" when no role bounds it
	orphaned bool            // the parent or task is missing: nothing is allowed
}

type scopeKey struct {
	role   identity.RoleID
	root   bool
	parent *scope
	bounds string
	caller identity.RoleID
	orphan bool
}

// scopeIndex interns slots and knows which of them a change touches.
type scopeIndex struct {
	byKey   map[scopeKey]*scope
	byRole  map[identity.RoleID]map[*scope]bool
	byGroup map[toolgroups.GroupID]map[*scope]bool
	all     map[*scope]bool // those that use All
}

func newSlots() scopeIndex {
	return scopeIndex{
		byKey:   map[scopeKey]*scope{},
		byRole:  map[identity.RoleID]map[*scope]bool{},
		byGroup: map[toolgroups.GroupID]map[*scope]bool{},
		all:     map[*scope]bool{},
	}
}

// scopeOf gives the slot of an agent whose parent has one, compiled.
func (o *Org) scopeOf(m *agentNode) *scope {
	key := scopeKey{role: m.role, root: m.root}
	var bounds []constraint
	task, ok := o.tasks[m.task]
	switch {
	case m.orphaned:
		key.orphan = true
	case m.parent != nil:
		key.parent = m.parent.slot.canonical()
	case ok && task.Top == m.id && task.valid():
		bounds = task.bounds()
		key.bounds, key.caller = keyOf(bounds), task.CallerRole
	default:
		key.orphan = true
	}
	return o.intern(key, bounds)
}

// intern gives the slot of a key, compiled; bounds are those its text says.
func (o *Org) intern(key scopeKey, bounds []constraint) *scope {
	if s, ok := o.slots.byKey[key]; ok {
		return s
	}
	s := &scope{role: key.role, root: key.root, parent: key.parent, bounds: bounds, caller: key.caller, orphaned: key.orphan}
	o.slots.byKey[key] = s
	o.recompile([]*scope{s})
	return s
}

// canonical gives the slot furthest up whose agents may grant the same. A role that
// stands above itself bounds nothing more: so the slots one above the other are
// as many as roles, however deep the agents stand.
func (s *scope) canonical() *scope {
	for at := s.parent; at != nil && !s.root && !s.orphaned; at = at.parent {
		if at.role == s.role && !at.root && !at.orphaned {
			return s.parent
		}
	}
	return s
}

// keyOf gives limits as text, the same for the same limits.
func keyOf(limits []constraint) string {
	if len(limits) == 0 {
		return ""
	}
	text, _ := json.Marshal(limits) // sets and maps of strings always marshal
	return string(text)
}

// permissions gives what a slot's agents use and the limits that must let it pass.
func (s *scope) permissions(find lookup) (use constraint, limits []constraint) {
	switch {
	case s.orphaned:
		return denyAll("the agent's parent or task is gone"), nil
	case s.root: // bounds of a task limit what root gives, never its own use
		return constraint{BoundSet: toolgroups.BoundSet{
			Set:    toolgroups.Of(toolgroups.OrgManagement),
			Owners: map[toolgroups.GroupID]toolgroups.Owner{toolgroups.OrgManagement: toolgroups.Builtin},
		}, reason: "root uses org_management alone"}, nil
	}
	role, ok := find(s.role)
	if !ok {
		return denyAll("the role is gone"), nil
	}
	return role.use("the toolGroups of role " + role.Name), append(ceiling(find, role), s.parentLimits(find)...)
}

// grantLimits lists everything that what a slot's agents give must pass.
func (s *scope) grantLimits(find lookup) []constraint {
	switch {
	case s.orphaned:
		return []constraint{denyAll("the agent's parent or task is gone")}
	case s.root:
		return s.taskLimits(find)
	}
	role, ok := find(s.role)
	if !ok {
		return []constraint{denyAll("the role " + string(s.role) + " is gone")}
	}
	own := role.grant("what role " + role.Name + " may grant")
	return append(append(ceiling(find, role), own), s.parentLimits(find)...)
}

// parentLimits lists what the parent may grant, or the task's bounds at the top.
func (s *scope) parentLimits(find lookup) []constraint {
	if s.parent != nil {
		return s.parent.grantLimits(find)
	}
	return s.taskLimits(find)
}

// taskLimits lists the bounds of the task, with what its caller's role is worth now.
func (s *scope) taskLimits(find lookup) []constraint {
	if s.caller == "" {
		return s.bounds
	}
	role, ok := find(s.caller)
	if !ok {
		return []constraint{denyAll("the role of the task's caller is gone")}
	}
	now := role.use("what the role " + role.Name + " of the task's caller may use")
	return slices.Concat(s.bounds, ceiling(find, role), []constraint{now})
}

func (s *scope) compile(snapshot *toolgroups.Snapshot, find lookup) *toolgroups.View {
	use, limits := s.permissions(find)
	gated, bindings := use.toolGated, make([]toolgroups.BoundSet, len(limits))
	for i, l := range limits {
		gated, bindings[i] = gated || l.toolGated, l.BoundSet
	}
	view := snapshot.Compile(use.BoundSet, bindings...)
	if gated {
		view.SetToolGated()
	}
	return view
}

// deniedBy names the first rule that keeps a tool from a slot's agents; "" when
// none does.
func (s *scope) deniedBy(snapshot *toolgroups.Snapshot, find lookup, h *toolgroups.Handle) string {
	use, limits := s.permissions(find)
	for _, l := range append([]constraint{use}, limits...) {
		if why := l.denies(snapshot, h); why != "" {
			return why
		}
	}
	return ""
}

// recompile puts the current views of slots in force and notes what they
// depend on.
func (o *Org) recompile(list []*scope) {
	snapshot := o.config.Groups.Snapshot()
	for _, s := range list {
		o.slots.add(s, o.role)
		view := s.compile(snapshot, o.role)
		view.SetEpoch(o.epoch)
		s.Publish(view)
	}
}

// add indexes a slot under every role and group its view depends on. Old
// entries stay: a slot too many costs time, one too few would cost truth.
func (x *scopeIndex) add(s *scope, find lookup) {
	use, limits := s.permissions(find)
	if use.Set.IsAll() {
		x.all[s] = true
	}
	for _, b := range append(limits, use) {
		for _, id := range b.Set.IDs() {
			add(x.byGroup, id, s)
		}
	}
	for at := s; at != nil; at = at.parent {
		x.addCreators(s, at.role, find)
		x.addCreators(s, at.caller, find)
	}
}

func (x *scopeIndex) addCreators(s *scope, id identity.RoleID, find lookup) {
	for seen := map[identity.RoleID]bool{}; !seen[id]; {
		seen[id] = true
		add(x.byRole, id, s)
		role, ok := find(id)
		if !ok {
			return
		}
		id = identity.RoleID(role.CreatedByRole)
	}
}

func add[K comparable](index map[K]map[*scope]bool, key K, s *scope) {
	if index[key] == nil {
		index[key] = map[*scope]bool{}
	}
	index[key][s] = true
}

// byRoleID lists the slots that a change of a role may touch.
func (x *scopeIndex) byRoleID(id identity.RoleID) []*scope {
	var list []*scope
	for s := range x.byRole[id] {
		list = append(list, s)
	}
	return list
}

// byGroups lists the slots that a change of groups may touch.
func (x *scopeIndex) byGroups(ids []toolgroups.GroupID) []*scope {
	found := map[*scope]bool{}
	for s := range x.all {
		found[s] = true
	}
	for _, id := range ids {
		for s := range x.byGroup[id] {
			found[s] = true
		}
	}
	list := make([]*scope, 0, len(found))
	for s := range found {
		list = append(list, s)
	}
	return list
}
