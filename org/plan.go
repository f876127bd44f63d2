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
	maker, err := o.maker(by)
	if err != nil {
		return Role{}, err
	}
	role, err := o.newRole(maker, "", spec)
	if err != nil {
		return Role{}, err
	}
	existing, ok := o.named[role.Name]
	switch {
	case !ok:
		return *role, nil
	case existing.same(role):
		return *existing, nil
	}
	return Role{}, errcode.New(errcode.RoleExists, "create role %q: a role of this name exists (id %s); choose another name", role.Name, existing.ID).With("roleId", existing.ID)
}
