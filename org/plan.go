package org

import (
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// PlanRole gives the role that CreateRole would make for by, without an id,
// and makes none. Errors as CreateRole.
func (o *Org) PlanRole(by identity.Principal, spec RoleSpec) (Role, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	role, _, err := o.plan(by, "", spec)
	return role, err
}

// plan gives the role that a specification asks for; there says that it is
// the maker's own already.
func (o *Org) plan(by identity.Principal, id identity.RoleID, spec RoleSpec) (role Role, there bool, err error) {
	maker, err := o.grantor(by)
	if err != nil {
		return Role{}, false, err
	}
	wanted, err := o.newRole(maker, id, spec)
	if err != nil {
		return Role{}, false, err
	}
	existing, ok := o.rolesByName[wanted.Name]
	switch {
	case !ok:
		return *wanted, false, nil
	case existing.same(wanted):
		return *existing, true, nil
	}
	return Role{}, false, errcode.New(errcode.RoleExists, "create role %q: a role of this name exists (id %s); choose another name or spawn that one", wanted.Name, existing.ID).With("roleId", existing.ID)
}
