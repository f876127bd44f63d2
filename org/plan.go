package org

import (
	"errors"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// PlanRole returns the role that CreateRole would create for by, without an id. It
// changes nothing. It returns the errors of CreateRole.
func (o *Org) PlanRole(by identity.Principal, spec RoleSpec) (Role, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	role, _, err := o.planCreation(by, "", spec)
	return role, err
}

// plannedRole is the id of a role that PlanRole has returned. No role has it.
const plannedRole identity.RoleID = "planned"

// PlannedTools returns the names of the tools that an agent in a new role could call now, in at least
// one workflow state, sorted. next is a role of PlanRole without an id.
func (o *Org) PlannedTools(next *Role) []string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	planned := *next
	planned.ID = plannedRole
	view := o.previewScope(plannedRole, toolgroups.AllGroups()).compile(o.config.Groups.CurrentSnapshot(), func(id identity.RoleID) (*Role, bool) {
		if id == plannedRole {
			return &planned, true
		}
		return o.lookupRole(id)
	})
	tools := append([]string{}, view.ToolNames()...)
	slices.Sort(tools)
	return tools
}

// planCreation returns the role that CreateRole would create with an id. exists reports whether by has
// created the same role already, which planCreation then returns. It must be called with mu held.
func (o *Org) planCreation(by identity.Principal, id identity.RoleID, spec RoleSpec) (role Role, exists bool, err error) {
	creator, err := o.grantor(by)
	if err != nil {
		return Role{}, false, err
	}
	if err := o.checkCreates(creator, "create", spec.Name); err != nil {
		return Role{}, false, err
	}
	existing := o.roleNamed(o.ownerOf(by), spec.Name)
	if existing == nil { // a stored role may have a name that an earlier version accepted
		if err := CheckRoleName(spec.Name); err != nil {
			return Role{}, false, err
		}
	}
	wanted, err := o.newRole(creator, id, spec)
	if err != nil {
		return Role{}, false, err
	}
	if err := errors.Join(o.checkKnown(creator, spec, existing), o.checkBind(creator, spec)); err != nil {
		return Role{}, false, err
	}
	if wanted.Tasks, err = o.bindTasks(creator, wanted, spec, RoleTasks{}); err != nil {
		return Role{}, false, err
	}
	switch {
	case existing == nil && o.reservedNames[wanted.Name] && !wanted.isDeclared():
		return Role{}, false, errcode.New(errcode.InvalidRole, "create role %q: the operator keeps this name; choose another name", wanted.Name)
	case existing == nil:
		return *wanted, false, nil
	case existing.sameAs(wanted):
		return *existing, true, nil
	}
	return Role{}, false, nameTaken(wanted, existing)
}

// nameTaken returns the error for a role whose name an active role has.
func nameTaken(wanted, existing *Role) error {
	remedy := "choose another name or spawn that one"
	if wanted.isDeclared() {
		remedy = "choose another name, or delete or rename that one; " + existing.CreatedBy + " created it"
	}
	return errcode.New(errcode.RoleExists, "create role %q: a role of this name exists (id %s); %s", wanted.Name, existing.ID, remedy).With("roleId", existing.ID)
}
