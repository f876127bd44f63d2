package org

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// RoleConfig is the part of a configuration that defines roles.
type RoleConfig struct {
	Roles   []RoleSpec
	Default toolgroups.GroupSet // Use of roles that are created without one
	Root    toolgroups.GroupSet // what root may grant; with Keep it stays as it is

	// Approval selects the calls of all agents and callers that wait for people. The rules of roles
	// select further calls. With Keep, the stored rules do not change.
	Approval []approval.Rule

	Keep   bool // keep existing roles as they are, and deleted ones deleted; Roles only adds those that never existed
	Revive bool // with Keep: deleted roles of the configuration become active again
}

// RoleEdit is a role that ApplyRoles has changed. RootRole stands for what root may grant, and for the
// approval rules of the organization.
type RoleEdit struct {
	Role    Role
	Change  string          // created, updated, deleted or revived
	Diff    *PermissionDiff // nil if the role is new
	Records []RecordChange  // without the epoch
}

// roleIndex holds the roles and what belongs to them. A change that is prepared works on
// a copy.
type roleIndex struct {
	roles         map[identity.RoleID]*Role
	activeRoles   map[string][]*Role   // active roles by name; callers may each have one of a name. The slices are never changed, only replaced
	reservedNames map[string]bool      // names that declared roles have or had; no agent may use one for a role
	root          *Role                // of root; not in roles, and never changed
	lost          lostRoles            // roles whose records are damaged
	defaultGroups toolgroups.GroupSet  // Use of roles that are created without one
	draft         *toolgroups.Snapshot // what sets are pinned to; nil for the current registry
}

func newRoleIndex() roleIndex {
	return roleIndex{roles: map[identity.RoleID]*Role{}, activeRoles: map[string][]*Role{}, reservedNames: map[string]bool{}, root: unlimitedRoot(), defaultGroups: toolgroups.AllGroups()}
}

// copyFor returns a copy of x whose sets are pinned to a snapshot.
func (x roleIndex) copyFor(s *toolgroups.Snapshot) roleIndex {
	return roleIndex{
		roles: maps.Clone(x.roles), activeRoles: maps.Clone(x.activeRoles), reservedNames: maps.Clone(x.reservedNames), lost: x.lost.clone(),
		root: x.root, defaultGroups: x.defaultGroups, draft: s,
	}
}

// isDeclared reports whether the operator or the configuration created r.
func (r *Role) isDeclared() bool {
	return r.CreatedBy == CreatorOperator || r.CreatedBy == CreatorConfig
}

// reserveNames keeps the names of a declared role for the operator. A command or a file may
// name the role. If the role was deleted or renamed, the name must not find a role that an
// agent created later.
func (x *roleIndex) reserveNames(r *Role) {
	x.reservedNames[r.Name] = true
	for _, name := range r.FormerNames {
		x.reservedNames[name] = true
	}
}

// removeName removes r from the active roles of its name.
func (x *roleIndex) removeName(r *Role) {
	rest := slices.DeleteFunc(slices.Clone(x.activeRoles[r.Name]), func(other *Role) bool { return other.ID == r.ID })
	if x.activeRoles[r.Name] = rest; len(rest) == 0 {
		delete(x.activeRoles, r.Name)
	}
}

// lookupRole returns a role, active or deleted, or the role of root.
func (x *roleIndex) lookupRole(id identity.RoleID) (*Role, bool) {
	if id == RootRole {
		return x.root, x.root != nil
	}
	r, ok := x.roles[id]
	return r, ok
}

// rolePlan is a prepared change of roles.
type rolePlan struct {
	roleIndex
	edits []RoleEdit
}

// ApplyRoles replaces the roles of the configuration in one step with a change of the
// registry, which it publishes. Roles of the configuration that c does not name are
// deleted, unless Keep is set. The other roles are created or updated. Sets are pinned to
// the owners that groups have after the change. ApplyRoles returns the roles that it has
// changed, with RootRole if what root may grant or the rules of Approval have changed.
//
// A role whose name was deleted before is a new role with a new id. The agents of the old
// role, and of the roles that they created, get nothing back. Only Revive brings the old
// role back, with the permissions that it had when it was deleted.
//
// On an error nothing has changed. It returns the errors of CreateRole and UpdateRole,
// with the name of the role.
func (o *Org) ApplyRoles(c RoleConfig, groups toolgroups.Change) ([]RoleEdit, error) {
	plan, err := o.planConfig(c, groups.Next)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	o.planned = plan
	o.mu.Unlock()
	groups.Publish() // calls groupsChanged
	return plan.edits, nil
}

// planConfig prepares the change of ApplyRoles for the registry as it will be.
func (o *Org) planConfig(c RoleConfig, next *toolgroups.Snapshot) (*rolePlan, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	current := o.roleIndex
	plan := &rolePlan{roleIndex: current.copyFor(next)}
	plan.defaultGroups = c.Default
	o.roleIndex = plan.roleIndex // the functions that plan a role read it
	err := o.planRoles(plan, c)
	plan.root = o.root
	plan.draft, o.roleIndex = nil, current
	if err != nil {
		return nil, err
	}
	for i := range plan.edits {
		e := &plan.edits[i]
		if e.Change != roleCreated {
			diff := o.diffViews(e.Role.ID, next, plan.lookupRole)
			e.Diff = &diff
		}
		if e.Role.ID != RootRole {
			e.Records = []RecordChange{newRecord(KindRole, string(e.Role.ID), e.Role)}
		}
	}
	return plan, nil
}

// Values of RoleEdit.Change.
const (
	roleCreated = "created"
	roleUpdated = "updated"
	roleDeleted = "deleted"
	roleRevived = "revived"
)

// planRoles deletes, creates and updates the roles of a configuration in the current roleIndex,
// which is the roleIndex of plan. It must be called with mu held.
func (o *Org) planRoles(plan *rolePlan, c RoleConfig) error {
	if !c.Keep {
		plan.edits = o.deleteRolesExcept(c.Roles)
		plan.edits = append(plan.edits, o.planRootGrant(c.Root)...)
		if err := checkRules("organization", c.Approval); err != nil {
			return err
		}
		plan.edits = append(plan.edits, o.planRootApproval(c.Approval)...)
	}
	for _, spec := range c.Roles {
		edit, err := o.planRole(spec, c)
		if err != nil {
			return fmt.Errorf("configure role %q: %w", spec.Name, err)
		}
		if edit != nil {
			plan.edits = append(plan.edits, *edit)
		}
	}
	if err := o.checkApprovers(c); err != nil {
		return err
	}
	return o.planTasks(plan, c)
}

// deleteRolesExcept deletes the roles of the configuration that are not in keep.
func (o *Org) deleteRolesExcept(keep []RoleSpec) (edits []RoleEdit) {
	names := make(map[string]bool, len(keep))
	for _, s := range keep {
		names[s.Name] = true
	}
	for _, old := range o.sortedRoles() {
		if old.CreatedBy != CreatorConfig || names[old.Name] {
			continue
		}
		next := *old
		next.Status, next.Revision = Deleted, old.Revision+1
		o.addRole(&next)
		edits = append(edits, RoleEdit{Role: next, Change: roleDeleted})
	}
	return edits
}

// planRole creates, updates or revives one role of the configuration. It returns nil if
// nothing changes.
func (o *Org) planRole(spec RoleSpec, c RoleConfig) (*RoleEdit, error) {
	spec = spec.withDefaults(o.defaultGroups)
	old := o.roleNamed(operatorOwner(), spec.Name)
	switch {
	case c.Keep && old != nil && old.isDeclared():
		return nil, nil
	case c.Keep && old == nil && o.reservedNames[spec.Name]:
		return o.planRevival(spec.Name, c.Revive), nil
	case old == nil || old.CreatedBy != CreatorConfig:
		return o.createConfigured(spec)
	case old.MatchesSpec(spec):
		return nil, nil
	}
	next, err := o.revise(grantor{createdBy: CreatorConfig, role: CreatorConfig}, old, spec)
	if err != nil {
		return nil, err
	}
	o.addRole(next)
	return &RoleEdit{Role: *next, Change: roleUpdated}, nil
}

// createConfigured creates a role of the configuration. Its id is new. So it is never taken for a
// role that was deleted, or whose record is lost.
func (o *Org) createConfigured(spec RoleSpec) (*RoleEdit, error) {
	role, exists, err := o.planCreation(identity.Principal{Kind: identity.Configuration}, identity.RoleID(identity.NewID()), spec)
	if err != nil || exists {
		return nil, err
	}
	o.addRole(&role)
	return &RoleEdit{Role: role, Change: roleCreated}, nil
}

// planRevival makes the role of the configuration with this name that was deleted last
// active as it was. It returns nil if there is no such role, or if revive is false.
func (o *Org) planRevival(name string, revive bool) *RoleEdit {
	last := o.lastDeleted(name)
	if last == nil || !revive {
		return nil
	}
	next := *last
	next.Status, next.Revision = Active, last.Revision+1
	o.addRole(&next)
	return &RoleEdit{Role: next, Change: roleRevived}
}

// lastDeleted returns the last deleted role of the configuration with this name. It returns nil if
// there is no such role.
func (o *Org) lastDeleted(name string) (last *Role) {
	for _, r := range o.roles {
		if r.Name == name && r.CreatedBy == CreatorConfig && r.Status == Deleted && r.youngerThan(last) {
			last = r
		}
	}
	return last
}

// youngerThan reports whether r was created after other. A nil other is the oldest.
func (r *Role) youngerThan(other *Role) bool {
	return other == nil || cmp.Or(r.CreatedAt.Compare(other.CreatedAt), cmp.Compare(r.ID, other.ID)) > 0
}

// withDefaults fills in Use and Grant, so that a specification can be compared with a
// role.
func (s RoleSpec) withDefaults(use toolgroups.GroupSet) RoleSpec {
	if s.Use == nil {
		s.Use = &use
	}
	if s.Grant == nil {
		s.Grant = &toolgroups.GroupSet{}
		if s.Use.Has(toolgroups.OrgManagement) {
			s.Grant = s.Use
		}
	}
	return s
}
