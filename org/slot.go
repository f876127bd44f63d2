package org

import (
	"encoding/json"
	"slices"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// slot is the place of all agents that share role and limits: one View for
// them all. A slot's inputs never change, only what they come to.
type slot struct {
	toolgroups.ViewRef
	role   identity.RoleID
	root   bool
	parent *slot           // of the agents' parents, or one that grants the same (short); nil at the top
	bounds []limit         // of the task, at the top
	caller identity.RoleID // of the task's caller, at the top; "" when no role bounds it
	orphan bool            // the parent or task is missing: nothing is allowed
}

type slotKey struct {
	role   identity.RoleID
	root   bool
	parent *slot
	bounds string
	caller identity.RoleID
	orphan bool
}

// slots interns slots and knows which of them a change touches.
type slots struct {
	byKey   map[slotKey]*slot
	byRole  map[identity.RoleID]map[*slot]bool
	byGroup map[toolgroups.GroupID]map[*slot]bool
	all     map[*slot]bool // those that use All
}

func newSlots() slots {
	return slots{
		byKey:   map[slotKey]*slot{},
		byRole:  map[identity.RoleID]map[*slot]bool{},
		byGroup: map[toolgroups.GroupID]map[*slot]bool{},
		all:     map[*slot]bool{},
	}
}

// slotOf gives the slot of an agent whose parent has one, compiled.
func (o *Org) slotOf(m *member) *slot {
	key := slotKey{role: m.role, root: m.root}
	var bounds []limit
	task, ok := o.tasks[m.task]
	switch {
	case m.lost:
		key.orphan = true
	case m.parent != nil:
		key.parent = m.parent.slot.short()
	case ok && task.Top == m.id && task.whole():
		bounds = task.bounds()
		key.bounds, key.caller = keyOf(bounds), task.CallerRole
	default:
		key.orphan = true
	}
	return o.intern(key, bounds)
}

// intern gives the slot of a key, compiled; bounds are those its text says.
func (o *Org) intern(key slotKey, bounds []limit) *slot {
	if s, ok := o.slots.byKey[key]; ok {
		return s
	}
	s := &slot{role: key.role, root: key.root, parent: key.parent, bounds: bounds, caller: key.caller, orphan: key.orphan}
	o.slots.byKey[key] = s
	o.recompile([]*slot{s})
	return s
}

// short gives the slot furthest up whose agents may grant the same. A role that
// stands above itself bounds nothing more: so the slots one above the other are
// as many as roles, however deep the agents stand.
func (s *slot) short() *slot {
	for at := s.parent; at != nil && !s.root && !s.orphan; at = at.parent {
		if at.role == s.role && !at.root && !at.orphan {
			return s.parent
		}
	}
	return s
}

// keyOf gives limits as text, the same for the same limits.
func keyOf(limits []limit) string {
	if len(limits) == 0 {
		return ""
	}
	text, _ := json.Marshal(limits) // sets and maps of strings always marshal
	return string(text)
}

// rights gives what a slot's agents use and the limits that must let it pass.
func (s *slot) rights(find lookup) (use limit, limits []limit) {
	switch {
	case s.orphan:
		return nothing("the agent's parent or task is gone"), nil
	case s.root: // bounds of a task limit what root gives, never its own use
		return limit{BoundSet: toolgroups.BoundSet{
			Set:    toolgroups.Of(toolgroups.OrgManagement),
			Owners: map[toolgroups.GroupID]toolgroups.Owner{toolgroups.OrgManagement: toolgroups.Builtin},
		}, rule: "root uses org_management alone"}, nil
	}
	role, ok := find(s.role)
	if !ok {
		return nothing("the role is gone"), nil
	}
	return role.use("the toolGroups of role " + role.Name), append(ceiling(find, role), s.above(find)...)
}

// grants lists everything that what a slot's agents give must pass.
func (s *slot) grants(find lookup) []limit {
	switch {
	case s.orphan:
		return []limit{nothing("the agent's parent or task is gone")}
	case s.root:
		return s.top(find)
	}
	role, ok := find(s.role)
	if !ok {
		return []limit{nothing("the role " + string(s.role) + " is gone")}
	}
	own := role.grant("what role " + role.Name + " may grant")
	return append(append(ceiling(find, role), own), s.above(find)...)
}

// above lists what the parent may grant, or the task's bounds at the top.
func (s *slot) above(find lookup) []limit {
	if s.parent != nil {
		return s.parent.grants(find)
	}
	return s.top(find)
}

// top lists the bounds of the task, with what its caller's role is worth now.
func (s *slot) top(find lookup) []limit {
	if s.caller == "" {
		return s.bounds
	}
	role, ok := find(s.caller)
	if !ok {
		return []limit{nothing("the role of the task's caller is gone")}
	}
	now := role.use("what the role " + role.Name + " of the task's caller may use")
	return slices.Concat(s.bounds, ceiling(find, role), []limit{now})
}

func (s *slot) compile(snapshot *toolgroups.Snapshot, find lookup) *toolgroups.View {
	use, limits := s.rights(find)
	gated, bindings := use.gated, make([]toolgroups.BoundSet, len(limits))
	for i, l := range limits {
		gated, bindings[i] = gated || l.gated, l.BoundSet
	}
	view := snapshot.Compile(use.BoundSet, bindings...)
	if gated {
		view.SetToolGated()
	}
	return view
}

// rule names the first rule that keeps a tool from a slot's agents; "" when
// none does.
func (s *slot) rule(snapshot *toolgroups.Snapshot, find lookup, h *toolgroups.Handle) string {
	use, limits := s.rights(find)
	for _, l := range append([]limit{use}, limits...) {
		if why := l.keeps(snapshot, h); why != "" {
			return why
		}
	}
	return ""
}

// recompile puts the current views of slots in force and notes what they
// depend on.
func (o *Org) recompile(list []*slot) {
	snapshot := o.config.Groups.Snapshot()
	for _, s := range list {
		o.slots.note(s, o.role)
		view := s.compile(snapshot, o.role)
		view.SetEpoch(o.epoch)
		s.Publish(view)
	}
}

// note indexes a slot under every role and group its view depends on. Old
// entries stay: a slot too many costs time, one too few would cost truth.
func (x *slots) note(s *slot, find lookup) {
	use, limits := s.rights(find)
	if use.Set.IsAll() {
		x.all[s] = true
	}
	for _, b := range append(limits, use) {
		for _, id := range b.Set.IDs() {
			add(x.byGroup, id, s)
		}
	}
	for at := s; at != nil; at = at.parent {
		x.noteMakers(s, at.role, find)
		x.noteMakers(s, at.caller, find)
	}
}

func (x *slots) noteMakers(s *slot, id identity.RoleID, find lookup) {
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

func add[K comparable](index map[K]map[*slot]bool, key K, s *slot) {
	if index[key] == nil {
		index[key] = map[*slot]bool{}
	}
	index[key][s] = true
}

// underRole lists the slots that a change of a role may touch.
func (x *slots) underRole(id identity.RoleID) []*slot {
	var list []*slot
	for s := range x.byRole[id] {
		list = append(list, s)
	}
	return list
}

// holding lists the slots that a change of groups may touch.
func (x *slots) holding(ids []toolgroups.GroupID) []*slot {
	found := map[*slot]bool{}
	for s := range x.all {
		found[s] = true
	}
	for _, id := range ids {
		for s := range x.byGroup[id] {
			found[s] = true
		}
	}
	list := make([]*slot, 0, len(found))
	for s := range found {
		list = append(list, s)
	}
	return list
}
