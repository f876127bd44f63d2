package org

import (
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// PlanRole returns the role that CreateRole would create for by, without an id. It
// changes nothing. Its errors are those of CreateRole.
func (o *Org) PlanRole(by identity.Principal, spec RoleSpec) (Role, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	role, _, err := o.plan(by, "", spec)
	return role, err
}

// plan returns the role that a specification asks for. It reports exists if by has
// created the same role already. It must be called with mu held.
func (o *Org) plan(by identity.Principal, id identity.RoleID, spec RoleSpec) (role Role, exists bool, err error) {
	creator, err := o.grantor(by)
	if err != nil {
		return Role{}, false, err
	}
	wanted, err := o.newRole(creator, id, spec)
	if err != nil {
		return Role{}, false, err
	}
	existing, ok := o.rolesByName[wanted.Name]
	switch {
	case !ok:
		return *wanted, false, nil
	case existing.sameAs(wanted):
		return *existing, true, nil
	}
	return Role{}, false, errcode.New(errcode.RoleExists, "create role %q: a role of this name exists (id %s); choose another name or spawn that one", wanted.Name, existing.ID).With("roleId", existing.ID)
}
