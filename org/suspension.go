package org

import (
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// Suspended reports whether the operator has suspended r. Its agents and its callers may
// then call nothing, and nothing is spawned or started with it. The roles that its agents
// created may use nothing either, as with a deleted creator.
func (r *Role) Suspended() bool { return !r.SuspendedAt.IsZero() }

// SuspendRole suspends a role until ResumeRole, also one of the configuration, and returns
// who loses tools. A suspended role that is suspended again does not change.
//
// Updates and configurations keep a suspension, and so does a role of the operator or the
// configuration that is created under the name of a suspended one that was deleted.
//
// Errors have the codes RoleNotFound, InsufficientPermissions if by is not the operator, and
// Conflict for RootRole: root works in every task that names no role.
func (o *Org) SuspendRole(by identity.Principal, id identity.RoleID) (Role, PermissionDiff, []RecordChange, error) {
	return o.setSuspension("suspend", by, id, true, false)
}

// ResumeRole ends the suspension of a role and returns who gains tools. The errors are those
// of SuspendRole. A role that is not suspended does not change.
func (o *Org) ResumeRole(by identity.Principal, id identity.RoleID) (Role, PermissionDiff, []RecordChange, error) {
	return o.setSuspension("resume", by, id, false, false)
}

// setSuspension suspends or resumes a role, unless dryRun is set. Errors name the change with verb.
func (o *Org) setSuspension(verb string, by identity.Principal, id identity.RoleID, suspend, dryRun bool) (Role, PermissionDiff, []RecordChange, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	old, ok := o.roles[id]
	switch {
	case by.Kind != identity.Operator:
		return Role{}, PermissionDiff{}, nil, errcode.New(errcode.InsufficientPermissions, "%s role %q: only the operator may %s roles", verb, id, verb)
	case id == RootRole:
		return Role{}, PermissionDiff{}, nil, errcode.New(errcode.Conflict, "%s role root: root cannot be suspended; cancel its tasks, or suspend the roles of the agents that it spawns", verb)
	case !ok || old.Status != Active:
		return Role{}, PermissionDiff{}, nil, notFound(errcode.RoleNotFound, "role", string(id))
	case old.Suspended() == suspend:
		return *old, o.diff(old), nil, nil
	}
	next := *old
	next.Revision, next.SuspendedAt = old.Revision+1, time.Time{}
	if suspend {
		next.SuspendedAt = o.config.Now().UTC()
	}
	diff, changes := o.replaceRole(old, &next, dryRun)
	return next, diff, changes, nil
}

// errSuspended returns the error for an attempt that a suspended role rules out.
func errSuspended(attempt string, r *Role) error {
	return errcode.New(errcode.InsufficientPermissions, "%s role %q: the operator has suspended it", attempt, r.Name)
}

// suspensionOf returns since when a new role is suspended, the zero time if it is not. The
// youngest declared role that has or had the name of a declared one decides, so that
// deleting a role and creating it again does not resume it.
func (o *Org) suspensionOf(made *Role) time.Time {
	if !made.declared() || !o.keptNames[made.Name] {
		return time.Time{}
	}
	var last *Role
	for _, r := range o.roles {
		if r.declared() && (r.Name == made.Name || slices.Contains(r.FormerNames, made.Name)) && r.youngerThan(last) {
			last = r
		}
	}
	if last == nil {
		return time.Time{}
	}
	return last.SuspendedAt
}

// suspension returns why the agents of a scope are denied everything until a role is
// resumed, "" if they are not. Only their own role is named.
func suspension(use constraint, limits []constraint) string {
	switch {
	case use.suspended:
		return use.reason
	case slices.ContainsFunc(limits, func(c constraint) bool { return c.suspended }):
		return "a role that bounds this one is suspended"
	}
	return ""
}
