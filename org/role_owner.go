package org

import (
	"maps"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// roleOwner is the caller whose tasks have a role. The operator's tasks share the roles
// that their agents create. Declared roles count as the operator's, but every task has
// them. The zero roleOwner is of an unknown caller, and has declared roles only.
type roleOwner struct {
	caller string          // identity.Principal.String
	role   identity.RoleID // of an external caller; different callers may have the same String
}

// operatorOwner returns the owner of declared roles and of roles of the operator's tasks.
func operatorOwner() roleOwner { return roleOwner{caller: CreatorOperator} }

// owner returns the caller that started t. It returns the zero roleOwner if t is nil.
func (t *Task) owner() roleOwner {
	if t == nil {
		return roleOwner{}
	}
	return roleOwner{t.Caller, t.CallerRole}
}

// owner returns the caller whose tasks have r.
func (r *Role) owner() roleOwner {
	if r.isDeclared() {
		return operatorOwner()
	}
	return roleOwner{r.Caller, r.CallerRole}
}

// has reports whether r exists for the tasks of w. It is declared, or an agent of a task of the
// same caller created it.
func (w roleOwner) has(r *Role) bool {
	return r.isDeclared() || w != roleOwner{} && r.owner() == w
}

// ownerOf returns the owner of the roles that a principal creates. It must be called with
// mu held.
func (o *Org) ownerOf(by identity.Principal) roleOwner {
	switch by.Kind {
	case identity.Operator, identity.Configuration:
		return operatorOwner()
	case identity.Caller:
		return roleOwner{by.String(), by.Role}
	case identity.Agent:
		if m, ok := o.agents[by.Agent]; ok {
			return o.tasks[m.task].owner()
		}
	}
	return roleOwner{}
}

// mayFind reports whether r exists for a principal. The operator and the configuration
// find all roles. It must be called with mu held.
func (o *Org) mayFind(by identity.Principal, r *Role) bool {
	return by.Kind == identity.Operator || by.Kind == identity.Configuration || o.ownerOf(by).has(r)
}

// roleNamed returns the active role that a name means for the tasks of w. It returns nil if there
// is no such role.
func (x *roleIndex) roleNamed(w roleOwner, name string) *Role {
	for _, r := range x.activeRoles[name] {
		if w.has(r) && !x.isShadowed(r) {
			return r
		}
	}
	return nil
}

// isShadowed reports whether the name of r does not mean r. A task of an external caller
// has r, and a declared role took the name later. The operator keeps the name when the
// declared role is deleted or renamed. Then r is found by its id only.
func (x *roleIndex) isShadowed(r *Role) bool {
	return x.reservedNames[r.Name] && r.owner() != operatorOwner()
}

// maxNamedRoles limits the ids that the error for an ambiguous name lists.
const maxNamedRoles = 20

// findAnyNamed returns the active role that a name means for the operator. It returns nil
// if there is no such role. If tasks of several callers have a role of this name, it
// returns an error with the code Conflict and the detail "roleIds".
func (x *roleIndex) findAnyNamed(name string) (*Role, error) {
	list := slices.DeleteFunc(slices.Clone(x.activeRoles[name]), x.isShadowed)
	switch len(list) {
	case 0:
		return nil, nil
	case 1:
		return list[0], nil
	}
	var ids []string
	for _, r := range list[:min(len(list), maxNamedRoles)] {
		ids = append(ids, string(r.ID))
	}
	slices.Sort(ids)
	return nil, errcode.New(errcode.Conflict, "%d roles have the name %q, because tasks of several callers created them; name one by its id: %s",
		len(list), name, strings.Join(ids, ", ")).With("roleIds", ids)
}

// sortedRoles returns the active roles, sorted by name and id.
func (x *roleIndex) sortedRoles() []*Role {
	var list []*Role
	for _, name := range slices.Sorted(maps.Keys(x.activeRoles)) {
		list = append(list, slices.SortedFunc(slices.Values(x.activeRoles[name]), compareID)...)
	}
	return list
}

// compareID orders roles by id.
func compareID(a, b *Role) int { return strings.Compare(string(a.ID), string(b.ID)) }

// assignOwners sets the owners of the roles of agents after all records are read. The task
// of the agent tells the owner of a role that an older version stored. A role is left
// without an owner if that task is gone, or if the record contradicts the task. Then only
// the operator finds it.
func (o *Org) assignOwners() {
	for _, r := range o.roles {
		task, known := o.tasks[r.Task]
		switch recorded := (roleOwner{r.Caller, r.CallerRole}); {
		case r.isDeclared() || !known || recorded == task.owner():
		case recorded == roleOwner{}:
			r.setOwner(task.owner())
		default:
			o.config.Log.Error("role has no owner: its record contradicts its task", "role", r.ID, "task", r.Task)
			r.setOwner(roleOwner{})
		}
	}
}

func (r *Role) setOwner(w roleOwner) { r.Caller, r.CallerRole = w.caller, w.role }
