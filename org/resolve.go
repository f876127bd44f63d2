package org

import (
	"slices"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
)

// ResolveView returns the ViewRef and the workflow state of an agent, or of an external
// caller in its role. It implements gate.ViewResolver. For an unknown principal it returns
// a ViewRef that denies everything. So it does for the operator, who calls no tools.
func (o *Org) ResolveView(p identity.Principal) (*toolgroups.ViewRef, string) {
	switch p.Kind {
	case identity.Agent:
		o.mu.RLock()
		defer o.mu.RUnlock()
		if m, ok := o.agents[p.Agent]; ok {
			if state, known := o.stateOf(m); known {
				return &m.scope.ViewRef, state
			}
		}
	case identity.Caller:
		if s, state := o.callerScope(p); s != nil {
			return &s.ViewRef, state
		}
	}
	return &toolgroups.ViewRef{}, ""
}

// RoleView returns the View that an agent of the role would have directly below the
// root of a task that is limited by groups only.
func (o *Org) RoleView(id identity.RoleID, groups toolgroups.GroupSet) *toolgroups.View {
	return o.CallerRoleView(identity.ByCaller("", id), groups)
}

// CallerRoleView is RoleView for the role of a caller, within the limit of the caller.
func (o *Org) CallerRoleView(p identity.Principal, groups toolgroups.GroupSet) *toolgroups.View {
	o.mu.RLock()
	defer o.mu.RUnlock()
	view := o.previewScope(p.Role, groups, networkLimits(p)...).compile(o.config.Groups.CurrentSnapshot(), o.lookupRole)
	view.SetEpoch(o.epoch)
	return view
}

// RoleHasGroup reports whether a role uses a registered group. The role lists the group, or it uses
// all groups and its creators may grant this group.
func (o *Org) RoleHasGroup(id identity.RoleID, group toolgroups.GroupID) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	role, ok := o.lookupRole(id)
	if !ok || role.Status != Active {
		return false
	}
	sets := []constraint{role.useLimit("")}
	if role.Use.IsAll() {
		sets = append(sets, ceiling(o.lookupRole, role)...)
	}
	return !slices.ContainsFunc(sets, func(c constraint) bool { return !o.registry().CoversGroup(c.PinnedSet, group) })
}

// CallerView returns the View and the workflow state of an external caller, as
// ResolveView does, without remembering the caller. It reports false if the role is not
// active or the state is lost.
func (o *Org) CallerView(p identity.Principal) (view *toolgroups.View, state string, ok bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if CheckCaller(p) != nil {
		return new(toolgroups.View), "", false
	}
	if state, ok = o.activeCallerState(p); !ok {
		return new(toolgroups.View), "", false
	}
	view = o.viewUnlessPaused((&scope{role: p.Role, bounds: networkLimits(p)}).compile(o.config.Groups.CurrentSnapshot(), o.lookupRole))
	view.SetEpoch(o.epoch)
	return view, state, true
}

// previewScope returns a scope for RoleView that no agent uses, in a task with these limits.
func (o *Org) previewScope(id identity.RoleID, groups toolgroups.GroupSet, limits ...constraint) *scope {
	root := &scope{role: RootRole, root: true, bounds: limits}
	if !groups.IsAll() {
		root.bounds = append(root.bounds, constraint{PinnedSet: o.pinOwners(groups), Hosts: hosts.AnyHost(), reason: "the groups asked for", kind: LimitTaskGroups})
	}
	if id == RootRole {
		return root
	}
	return &scope{role: id, parent: root}
}
