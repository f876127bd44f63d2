package gateway

import (
	"net/http"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// roleSpec converts a request for org.
func roleSpec(q wire.RoleRequest) org.RoleSpec {
	return org.RoleSpec{Name: q.Name, Prompt: q.Prompt, Model: q.Model, Use: q.Use, Grant: q.Grant, Limits: q.Limits, AllowUnknown: q.AllowUnknown}
}

// listRoles lists the active roles, sorted by name.
func (a *api) listRoles(r *http.Request) (any, error) {
	byName := func(role org.Role) string { return role.Name }
	return paginate(r, a.org().ListRoles(), byName, a.role)
}

// showRole answers with one active role.
func (a *api) showRole(r *http.Request) (any, error) {
	role, err := a.org().FindRole(r.PathValue("id"))
	return a.role(role), err
}

// createRole creates a role. If an identical role exists, it answers with that.
func (a *api) createRole(r *http.Request) (any, error) {
	q, err := decode[wire.RoleRequest](r)
	if err != nil {
		return nil, err
	}
	dry, err := boolParam(r, "dryRun")
	if err != nil {
		return nil, err
	}
	if dry {
		role, err := a.org().PlanRole(auth.LocalOperator(), roleSpec(q))
		return a.role(role), err
	}
	role, err := a.rt.CreateRole(r.Context(), operatorCall(), roleSpec(q))
	return statusAnswer{http.StatusCreated, a.role(role)}, err
}

// updateRole changes a role.
func (a *api) updateRole(r *http.Request) (any, error) {
	q, err := decode[wire.RoleRequest](r)
	if err != nil {
		return nil, err
	}
	role, dry, err := a.roleToChange(r)
	if err != nil {
		return nil, err
	}
	next, diff, err := a.rt.UpdateRole(auth.LocalOperator(), role.ID, roleSpec(q), dry)
	return wire.RoleChange{Role: a.role(next), Diff: diff}, err
}

// deleteRole deletes a role and answers with its record afterwards.
func (a *api) deleteRole(r *http.Request) (any, error) {
	role, dry, err := a.roleToChange(r)
	if err != nil {
		return nil, err
	}
	diff, err := a.rt.DeleteRole(auth.LocalOperator(), role.ID, dry)
	role.Status, role.Revision = org.Deleted, role.Revision+1
	return wire.RoleChange{Role: a.role(role), Diff: diff}, err
}

// roleToChange reads dryRun and finds the role in the path.
func (a *api) roleToChange(r *http.Request) (role org.Role, dry bool, err error) {
	if dry, err = boolParam(r, "dryRun"); err != nil {
		return role, dry, err
	}
	role, err = a.org().FindRole(r.PathValue("id"))
	return role, dry, err
}

// role converts a role's record for the API.
func (a *api) role(role org.Role) wire.Role {
	out := wire.Role{Role: role}
	snapshot, seen := a.snapshot(), map[toolgroups.GroupID]bool{}
	for _, id := range append(role.Use.GroupIDs(), role.Grant.GroupIDs()...) {
		owner := snapshot.GroupOwner(id)
		if inert := owner == "" || owner != role.GroupOwners[id]; inert && !seen[id] {
			out.Dangling = append(out.Dangling, id)
		}
		seen[id] = true
	}
	return out
}

// roleName returns a role's name, also of deleted roles.
func (a *api) roleName(id identity.RoleID) string {
	if role, ok := a.org().RoleByID(id); ok {
		return role.Name
	}
	return string(id)
}

// roleID returns the id of a role given by id or exact name, including root.
func (a *api) roleID(ref string) (identity.RoleID, error) {
	if ref == org.RootRole {
		return org.RootRole, nil
	}
	role, err := a.org().FindRole(ref)
	return role.ID, err
}

// operatorCall returns a call by the operator with a new id.
func operatorCall() tool.Call {
	return tool.Call{ID: identity.CallID(identity.NewID()), By: auth.LocalOperator()}
}
