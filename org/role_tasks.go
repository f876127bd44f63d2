package org

import (
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// RoleTasks says what bounds the tasks that callers in a role start.
type RoleTasks struct {
	// As is the role whose use, within what its creators may grant, bounds the tasks in
	// place of the use of their caller's role. The As of that role does not count. "" is
	// the caller's role itself. The tasks of a role that was deleted may use nothing.
	As identity.RoleID `json:"as,omitempty"`
}

// TasksDiff is the effect of a change on the tasks of callers in a role that has tasks.as,
// before or after the change. It says what the agents of these tasks may use at most. The
// agents may use nothing while callers in the role may start no tasks.
type TasksDiff struct {
	ID   identity.RoleID `json:"id"`   // of the callers' role
	Role string          `json:"role"` // its name
	As   string          `json:"as"`   // name of the role in its tasks.as after the change; "" if there is none
	AccessChange
}

// tasksAs returns the role in the tasks.as of r, nil if that role is unknown. It reports
// false if r has none.
func (r *Role) tasksAs(find roleLookup) (*Role, bool) {
	if r.Tasks.As == "" {
		return nil, false
	}
	as, _ := find(r.Tasks.As)
	return as, true
}

// callerTaskLimits returns the constraints that bound the tasks of callers in a role now. The tasks
// may use what the role in tasks.as may use. Without tasks.as they may use what the role itself may
// use.
func callerTaskLimits(find roleLookup, id identity.RoleID) []constraint {
	caller, ok := find(id)
	if !ok {
		return []constraint{denyAll("the role of the task's caller does not exist")}
	}
	as, given := caller.tasksAs(find)
	switch {
	case !given || !caller.isActive():
		return append(ceiling(find, caller), caller.useLimit("what the role "+caller.Name+" of the task's caller may use"))
	case as == nil:
		return []constraint{denyAll("the role that bounds the tasks of role " + caller.Name + " does not exist")}
	}
	return append(ceiling(find, as), as.useLimit("what role "+as.Name+" may use, which bounds the tasks of role "+caller.Name))
}

// taskGrantor returns the grantor of a task that by starts. A task of a caller may get what
// the tasks of its role may use. The error has the code InsufficientPermissions if the role
// in its tasks.as is not active.
func (o *Org) taskGrantor(by identity.Principal) (grantor, error) {
	if by.Kind != identity.Operator && by.Kind != identity.Caller { // what another principal loses would not bound its tasks
		return grantor{}, errcode.New(errcode.Unauthenticated, "start a task: only the operator and callers in a role start tasks")
	}
	g, err := o.grantor(by)
	if err != nil || by.Kind != identity.Caller {
		return g, err
	}
	if err := checkNetworkGroups(by); err != nil {
		return g, err
	}
	caller := o.roles[by.Role]
	if as, given := caller.tasksAs(o.lookupRole); given && !as.isActive() {
		return g, errcode.New(errcode.InsufficientPermissions, "start a task: the caller's role may start none, because what bounds its tasks was deleted or paused")
	}
	g.limits = append(callerTaskLimits(o.lookupRole, by.Role), networkLimits(by)...)
	return g, nil
}

// isActive reports whether r is not nil, active and not suspended.
func (r *Role) isActive() bool { return r != nil && r.Status == Active && !r.Suspended() }

// MayStartTasks reports whether callers in a role may start tasks. The role in its tasks.as must be
// active. A role without tasks.as must have a tool of the group org_management.
func (o *Org) MayStartTasks(id identity.RoleID) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.mayStartTasks(o.config.Groups.CurrentSnapshot(), o.lookupRole, id)
}

// TaskRole returns the role in the tasks.as of a role, with a zero Role if that is unknown.
// It reports false if the role has none.
func (o *Org) TaskRole(id identity.RoleID) (as Role, given bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	role, ok := o.roles[id]
	if !ok {
		return Role{}, false
	}
	r, given := role.tasksAs(o.lookupRole)
	return deref(r), given
}

// mayStartTasks is MayStartTasks with a snapshot and the roles that find returns.
func (o *Org) mayStartTasks(snapshot *toolgroups.Snapshot, find roleLookup, id identity.RoleID) bool {
	return o.mayStartTasksAs(snapshot, find, identity.ByCaller("", id))
}

// mayStartTasksAs is mayStartTasks for a caller, within its limit.
func (o *Org) mayStartTasksAs(snapshot *toolgroups.Snapshot, find roleLookup, p identity.Principal) bool {
	role, ok := find(p.Role)
	if !ok || role.Status != Active || p.Role == RootRole {
		return false
	}
	if as, given := role.tasksAs(find); given {
		return as.isActive()
	}
	tools := o.previewScope(p.Role, toolgroups.AllGroups(), networkLimits(p)...).compile(snapshot, find).ToolNames()
	return slices.ContainsFunc(tools, func(name string) bool {
		h, ok := snapshot.LookupTool(name)
		return ok && h.Group == toolgroups.OrgManagement
	})
}

// TaskView returns the View of an agent that may use everything that the tasks of callers
// in a role may use now. It allows nothing if they may start no tasks.
func (o *Org) TaskView(id identity.RoleID) *toolgroups.View {
	o.mu.RLock()
	defer o.mu.RUnlock()
	view := o.taskView(o.config.Groups.CurrentSnapshot(), o.lookupRole, id)
	view.SetEpoch(o.epoch)
	return view
}

// taskView is TaskView with a snapshot and the roles that find returns.
func (o *Org) taskView(snapshot *toolgroups.Snapshot, find roleLookup, id identity.RoleID) *toolgroups.View {
	if !o.mayStartTasks(snapshot, find, id) {
		return snapshot.Compile(toolgroups.PinnedSet{})
	}
	var sets []toolgroups.PinnedSet
	for _, l := range callerTaskLimits(find, id) {
		sets = append(sets, l.PinnedSet)
	}
	return snapshot.Compile(toolgroups.PinnedSet{Set: toolgroups.AllGroups()}, sets...)
}

// bindTasks returns the RoleTasks of a specification, bound to the id of the role that it
// names. Without one it returns kept. Only the operator and the configuration may set it,
// on roles of their own. The roles of a configuration are bound when all are there (planTasks).
func (o *Org) bindTasks(editor grantor, r *Role, spec RoleSpec, kept RoleTasks) (RoleTasks, error) {
	switch {
	case spec.TasksAs == nil || editor.createdBy == CreatorConfig:
		return kept, nil
	case editor.createdBy != CreatorOperator || !r.isDeclared():
		return RoleTasks{}, errcode.New(errcode.InvalidRole, "role %q: tasks.as is only for roles that the operator has created; create one for the callers", r.Name).With("field", "tasks")
	case *spec.TasksAs == "":
		return RoleTasks{}, nil
	}
	as, err := o.findActiveRole(identity.ByOperator(""), *spec.TasksAs)
	if err != nil {
		return RoleTasks{}, errcode.New(errcode.InvalidRole, "role %q: tasks.as: %s", r.Name, errcode.Message(err)).With("field", "tasks")
	}
	return RoleTasks{As: as.ID}, nil
}

// planTasks binds the tasks.as of the roles of a configuration. All these roles must be in the
// current roleIndex, which is the roleIndex of plan. With Keep it binds new roles only.
func (o *Org) planTasks(plan *rolePlan, c RoleConfig) error {
	for _, spec := range c.Roles {
		role := o.roleNamed(operatorOwner(), spec.Name)
		edit := slices.IndexFunc(plan.edits, func(e RoleEdit) bool { return role != nil && e.Role.ID == role.ID })
		if role == nil || role.CreatedBy != CreatorConfig || c.Keep && (edit < 0 || plan.edits[edit].Change != roleCreated) {
			continue
		}
		next := *role
		next.Tasks = RoleTasks{}
		if name := deref(spec.TasksAs); name != "" {
			as := o.roleNamed(operatorOwner(), name)
			if as == nil && c.Keep { // it stays deleted, and bounds by nothing
				as = o.lastDeleted(name)
			}
			if as == nil {
				return errcode.New(errcode.InvalidRole, "configure role %q: tasks.as: there is no role %q", spec.Name, name)
			}
			next.Tasks.As = as.ID
		}
		switch {
		case next.Tasks == role.Tasks:
			continue
		case edit < 0:
			next.Revision++
			plan.edits = append(plan.edits, RoleEdit{Role: next, Change: roleUpdated})
		default:
			plan.edits[edit].Role = next
		}
		o.addRole(&next)
	}
	return nil
}
