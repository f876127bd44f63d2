package org

import (
	"slices"

	"github.com/rolecall/rolecall/identity"
)

// RoleShare says which sets of a role an action depended on. It would not have been allowed if the
// set had not contained it.
type RoleShare struct {
	Use      bool // of the principal's own role: what it uses, under the names that it uses
	UseLimit bool // what the role uses, as a limit on the tasks of callers
	Grant    bool // what the role may grant
}

// Any reports whether one of the sets is meant.
func (s RoleShare) Any() bool { return s.Use || s.UseLimit || s.Grant }

// AgentPlace is the place of an agent in its task. It has the task and the ids of the roles
// from the first agent of the task down to the agent. The place of an external caller is its
// role alone. RootRole is root at the first place only.
type AgentPlace struct {
	Roles []identity.RoleID
	Task  identity.TaskID
}

// CallShare returns the sets of a role on which a call from this place depends now, whether
// its agent still exists or not.
func (o *Org) CallShare(role identity.RoleID, at AgentPlace) RoleShare {
	o.mu.RLock()
	defer o.mu.RUnlock()
	use, limits := o.placeScope(at).permissions(o.lookupRole)
	return shareOf(role, append(limits, use))
}

// GrantShare returns the sets of a role on which the permission of an agent at this place depends
// now. The permission is to create a role, or to spawn an agent of a role.
func (o *Org) GrantShare(role identity.RoleID, at AgentPlace, spawned identity.RoleID) RoleShare {
	o.mu.RLock()
	defer o.mu.RUnlock()
	s := o.placeScope(at)
	if made, ok := o.roles[spawned]; ok && s.root && made.isDeclared() {
		return shareOf(role, s.taskLimits(o.lookupRole))
	}
	return shareOf(role, s.grantLimits(o.lookupRole))
}

// TaskShare returns the sets of a role on which it depends now what a task of callers in
// another role may use.
func (o *Org) TaskShare(role, caller identity.RoleID) RoleShare {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return shareOf(role, callerTaskLimits(o.lookupRole, caller))
}

// placeScope returns a scope that no agent uses. A role below itself adds no limit. It must
// be called with mu held.
func (o *Org) placeScope(at AgentPlace) *scope {
	if len(at.Roles) == 0 {
		return &scope{orphaned: true}
	}
	top := &scope{role: at.Roles[0], root: at.Roles[0] == RootRole}
	if task, ok := o.tasks[at.Task]; ok {
		top.caller = task.CallerRole
	}
	s, last := top, len(at.Roles)-1
	for i, role := range at.Roles[1:] {
		if i+1 == last || !slices.Contains(at.Roles[:i+1], role) {
			s = &scope{role: role, parent: s}
		}
	}
	return s
}

// shareOf returns which sets of a role are among limits.
func shareOf(role identity.RoleID, limits []constraint) (s RoleShare) {
	for _, c := range limits {
		switch {
		case c.role == nil || c.role.ID != role:
		case c.kind == LimitUse:
			s.Use = true
		case c.kind == LimitCreator || c.kind == LimitParent:
			s.Grant = true
		default:
			s.UseLimit = true
		}
	}
	return s
}
