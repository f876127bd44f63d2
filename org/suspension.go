package org

import (
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// Suspension says since when a role is paused, and by whom. A role that is not paused has the zero
// Suspension.
type Suspension struct {
	SuspendedAt   time.Time `json:"suspendedAt,omitzero"`    // since when it is paused; zero if it is not
	SuspendedBy   string    `json:"suspendedBy,omitempty"`   // identity.Principal.String
	SuspendReason string    `json:"suspendReason,omitempty"` // what the operator gave
}

// Suspended reports whether the operator has paused r. Its agents and its callers may
// then call nothing, and nothing is spawned or started with it. The roles that its agents
// created may use nothing either, as with a deleted creator.
func (s Suspension) Suspended() bool { return !s.SuspendedAt.IsZero() }

// PauseRole pauses a role until ResumeRole, also one of the configuration, and returns
// who loses tools. A paused role keeps its first pause, and there are no changes. The revision of the
// role stays: what it may do when it is resumed has not changed.
//
// Updates and configurations keep a pause. A paused role may be deleted. A role that the
// operator or the configuration creates under its name is paused, too.
//
// Errors have the codes RoleNotFound, InsufficientPermissions if by is not the operator, and
// Conflict for RootRole: root works in every task that names no role.
func (o *Org) PauseRole(by identity.Principal, id identity.RoleID, reason string) (Role, PermissionDiff, []RecordChange, error) {
	return o.setSuspension("pause", by, id, Suspension{o.config.Now().UTC(), by.String(), reason})
}

// ResumeRole ends the pause of a role and returns who gains tools. It returns the errors of
// PauseRole. A role that is not paused does not change.
func (o *Org) ResumeRole(by identity.Principal, id identity.RoleID) (Role, PermissionDiff, []RecordChange, error) {
	return o.setSuspension("resume", by, id, Suspension{})
}

// setSuspension pauses or resumes a role. Errors name the change with verb.
func (o *Org) setSuspension(verb string, by identity.Principal, id identity.RoleID, set Suspension) (Role, PermissionDiff, []RecordChange, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	old, ok := o.roles[id]
	switch {
	case by.Kind != identity.Operator:
		return Role{}, PermissionDiff{}, nil, errcode.New(errcode.InsufficientPermissions, "%s role %q: only the operator may %s roles", verb, id, verb)
	case id == RootRole:
		return Role{}, PermissionDiff{}, nil, errcode.New(errcode.Conflict, "%s role root: root cannot be paused; pause its tasks, or the roles of the agents that it spawns", verb)
	case !ok || old.Status != Active:
		return Role{}, PermissionDiff{}, nil, notFound(errcode.RoleNotFound, "role", string(id))
	case old.Suspended() == set.Suspended():
		return *old, o.diff(old), nil, nil
	}
	next := *old
	next.Suspension = set
	diff, changes := o.replaceRole(old, &next, Apply)
	return next, diff, changes, nil
}

// errSuspended returns the error for an attempt that a paused role rules out.
func errSuspended(attempt string, r *Role) error {
	return errcode.New(errcode.InsufficientPermissions, "%s role %q: the operator has paused it", attempt, r.Name)
}

// suspensionOf returns the pause of a new role. A role without a pause has the zero
// Suspension. A new declared role takes the pause of the youngest declared role that
// has or had its name. So deleting a role and creating it again does not resume it.
// Without such a role, a damaged record may be the record of a paused role.
func (o *Org) suspensionOf(made *Role) Suspension {
	if !made.isDeclared() {
		return Suspension{}
	}
	var last *Role
	if o.reservedNames[made.Name] {
		for _, r := range o.roles {
			if r.isDeclared() && (r.Name == made.Name || slices.Contains(r.FormerNames, made.Name)) && r.youngerThan(last) {
				last = r
			}
		}
	}
	switch {
	case last != nil:
		return last.Suspension
	case o.lost.has(made.Name):
		return o.lost.suspension(made.CreatedAt)
	}
	return Suspension{}
}

// suspensionReason returns why the agents of a scope are denied everything until a role is resumed. It
// returns "" if they are not denied everything. Only their own role is named.
func suspensionReason(use constraint, limits []constraint) string {
	switch {
	case use.suspended:
		return use.reason
	case slices.ContainsFunc(limits, func(c constraint) bool { return c.suspended }):
		return "a role that bounds this one is paused"
	}
	return ""
}
