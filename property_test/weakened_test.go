package property_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// ruleSet is a set of rules that a weakenedOrg can disable.
type ruleSet uint32

const (
	ruleUse         ruleSet = 1 << iota // use ⊆ the creator's grant
	ruleGrant                           // grant ⊆ the creator's grant
	ruleSpawn                           // the spawner's grant covers use and grant of the role
	ruleParent                          // the grants of ancestors limit an agent
	ruleCreator                         // the grants of a role's creators limit its agents
	ruleTask                            // the caller's permissions and the narrowing limit a task
	ruleTermination                     // an agent terminates only its descendants
	ruleMessage                         // an agent writes only to permitted recipients
	ruleOwner                           // a group id is pinned to its owner when it was written
	ruleServer                          // a role's server restricts it and everything it limits
	ruleToolGated                       // a tool-gated role gates everything it limits
	ruleRoot                            // what root may grant limits the roles that it has created
	ruleName                            // names that roles of the operator have or had are kept for the operator
	ruleState                           // the agents of a task are in the workflow state of its caller
	ruleTasksAs                         // what the role in tasks.as may use limits a task now, not only at its start
	ruleRetry                           // the operator alone retries a task that was cancelled
	ruleSuspension                      // a suspended role allows nothing
	ruleRead                            // a read part has the ReadOnly tools of its group alone
	ruleCaller                          // a role that an agent has created exists for tasks of the same caller only
)

// weakenedOrg is an organization with rules disabled, used with the real gate
// and the real built-in tools. It stands for a fault in package org. It writes
// the same records as org and does nothing else.
type weakenedOrg struct {
	builtin.Deps // nil: methods that are missing here panic
	off          ruleSet
	gate         *gate.Gate
	groups       *toolgroups.Manager
	log          *commitLog
	roles        map[identity.RoleID]*org.Role
	kept         map[string]bool // names that roles of the operator have or had
	agents       map[identity.AgentID]*org.Agent
	tasks        map[identity.TaskID]*org.Task
	rootGrant    toolgroups.PinnedSet          // what root may grant
	callers      map[identity.Principal]string // workflow states
}

// newWeakenedEnv returns an attackEnv on an organization with rules disabled.
func newWeakenedEnv(off ruleSet) (*attackEnv, error) {
	s := emptyAttackEnv()
	x := &weakenedOrg{
		off: off, groups: s.groups.Manager, log: &s.log,
		roles: map[identity.RoleID]*org.Role{}, kept: map[string]bool{}, agents: map[identity.AgentID]*org.Agent{}, tasks: map[identity.TaskID]*org.Task{},
		rootGrant: toolgroups.PinnedSet{Set: toolgroups.AllGroups()}, callers: map[identity.Principal]string{},
	}
	var err error
	x.gate, err = gate.New(gate.Config{Groups: x.groups, Directory: x, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	s.system = x
	groups, err := builtin.NewGroups(x, builtin.Options{})
	return s, errors.Join(err, s.registerGroups(groups), s.createUnlimitedRole())
}

// Gate implements system.
func (o *weakenedOrg) Gate() *gate.Gate { return o.gate }

// Close implements system.
func (o *weakenedOrg) Close() error { return nil }

// disabled reports whether a rule is disabled.
func (o *weakenedOrg) disabled(r ruleSet) bool { return o.off&r != 0 }

// wholeGroups returns a set with whole groups in the place of read parts.
func wholeGroups(s toolgroups.GroupSet, owners map[toolgroups.GroupID]toolgroups.GroupOwner) (toolgroups.GroupSet, map[toolgroups.GroupID]toolgroups.GroupOwner) {
	list, of := ids{}, map[toolgroups.GroupID]toolgroups.GroupOwner{}
	for _, id := range idsOf(s) {
		whole, _ := grouptest.Whole(id)
		list, of[whole] = append(list, whole), owners[id]
	}
	return toolgroups.SetOf(list...), of
}

// intersect returns the groups of a set that a limit covers.
func (o *weakenedOrg) intersect(s toolgroups.GroupSet, limit toolgroups.PinnedSet) toolgroups.GroupSet {
	snapshot := o.groups.CurrentSnapshot()
	return snapshot.IntersectSets(snapshot.PinOwners(s), limit)
}

// pinned returns a set as it was written or, without ruleOwner, with the current
// owners.
func (o *weakenedOrg) pinned(s toolgroups.GroupSet, owners map[toolgroups.GroupID]toolgroups.GroupOwner) toolgroups.PinnedSet {
	if o.disabled(ruleRead) {
		s, owners = wholeGroups(s, owners)
	}
	if o.disabled(ruleOwner) {
		return o.groups.CurrentSnapshot().PinOwners(s)
	}
	return toolgroups.PinnedSet{Set: s, Owners: owners}
}

func (o *weakenedOrg) grant(r *org.Role) toolgroups.PinnedSet {
	return o.pinned(r.Grant, r.GroupOwners)
}

// role finds an active role.
func (o *weakenedOrg) role(id identity.RoleID) (*org.Role, bool) {
	r, ok := o.roles[id]
	return r, ok && r.Status == org.Active
}

// usableRole finds an active role that is not suspended.
func (o *weakenedOrg) usableRole(id identity.RoleID) (*org.Role, bool) {
	r, ok := o.role(id)
	return r, ok && (!r.Suspended() || o.disabled(ruleSuspension))
}

// denyAll is a limit that allows nothing.
var denyAll = []toolgroups.PinnedSet{{}}

// creatorGrants lists the grants of the creators of a role.
func (o *weakenedOrg) creatorGrants(r *org.Role) []toolgroups.PinnedSet {
	switch {
	case r.CreatedByRole == org.CreatorOperator || o.disabled(ruleCreator):
		return nil
	case r.CreatedByRole == org.CreatorRoot:
		return o.rootLimits()
	}
	creator, ok := o.usableRole(identity.RoleID(r.CreatedByRole))
	if !ok {
		return denyAll
	}
	return append(o.creatorGrants(creator), o.grant(creator))
}

// rootLimits lists the limit of what root may grant.
func (o *weakenedOrg) rootLimits() []toolgroups.PinnedSet {
	if o.disabled(ruleRoot) {
		return nil
	}
	return []toolgroups.PinnedSet{o.pinned(o.rootGrant.Set, o.rootGrant.Owners)}
}

// ApplyConfig implements system. It sets what root may grant and nothing else.
func (o *weakenedOrg) ApplyConfig(c runtime.OrgConfig) error {
	if !c.Grant.Equal(o.rootGrant.Set) {
		o.rootGrant = o.groups.CurrentSnapshot().PinOwners(*c.Grant)
	}
	return nil
}

// taskBounds lists the limits of a task.
func (o *weakenedOrg) taskBounds(id identity.TaskID) []toolgroups.PinnedSet {
	t := o.tasks[id]
	if o.disabled(ruleTask) {
		return nil
	}
	list := []toolgroups.PinnedSet{o.pinned(t.Ceiling.Set, t.Ceiling.Owners), o.pinned(t.Groups.Set, t.Groups.Owners)}
	if t.CallerRole == "" {
		return list
	}
	bound, ok := o.usableRole(o.boundingRole(t.CallerRole))
	if !ok {
		return denyAll
	}
	if bound.ID != t.CallerRole && o.disabled(ruleTasksAs) {
		return list
	}
	return append(append(list, o.creatorGrants(bound)...), o.pinned(bound.Use, bound.GroupOwners))
}

// boundingRole returns the role that limits the tasks of callers in a role.
func (o *weakenedOrg) boundingRole(id identity.RoleID) identity.RoleID {
	if caller, ok := o.usableRole(id); ok && caller.Tasks.As != "" {
		return caller.Tasks.As
	}
	return id
}

// parentGrants lists the limits of what the ancestors of an agent may grant.
func (o *weakenedOrg) parentGrants(a *org.Agent) []toolgroups.PinnedSet {
	if a.Parent == "" || o.disabled(ruleParent) {
		return o.taskBounds(a.Task)
	}
	r, _ := o.role(a.Role)
	return o.spawnLimits(o.agents[a.Parent], r)
}

// spawnLimits lists the sets that limit the agents of a role that an agent spawns. r may
// be nil.
func (o *weakenedOrg) spawnLimits(parent *org.Agent, r *org.Role) []toolgroups.PinnedSet {
	if parent.Root && r != nil && r.CreatedBy == org.CreatorOperator {
		return o.taskBounds(parent.Task)
	}
	return o.grantLimits(parent)
}

// grantLimits lists the sets that must cover everything an agent grants.
func (o *weakenedOrg) grantLimits(a *org.Agent) []toolgroups.PinnedSet {
	if a.Root {
		return append(o.taskBounds(a.Task), o.rootLimits()...)
	}
	r, ok := o.usableRole(a.Role)
	if !ok {
		return denyAll
	}
	return append(append(o.parentGrants(a), o.creatorGrants(r)...), o.grant(r))
}

// ResolveView implements gate.ViewResolver.
func (o *weakenedOrg) ResolveView(p identity.Principal) (*toolgroups.ViewRef, string) {
	ref := new(toolgroups.ViewRef)
	a, ok := o.activeAgent(p.Agent)
	if !ok {
		return ref, ""
	}
	if a.Root {
		ref.PublishView(o.compile(toolgroups.PinnedSet{
			Set:    toolgroups.SetOf(toolgroups.OrgManagement),
			Owners: map[toolgroups.GroupID]toolgroups.GroupOwner{toolgroups.OrgManagement: toolgroups.Builtin},
		}, nil))
		return ref, ""
	}
	view := o.compile(o.usedGroups(a))
	view.SetGating(o.gatingOf(a))
	if why := o.suspension(a); why != "" && !o.disabled(ruleSuspension) {
		view.SetSuspended(why)
	}
	ref.PublishView(view)
	return ref, o.state(a)
}

// suspension returns why an agent is denied everything, "" if no bounding role is suspended.
func (o *weakenedOrg) suspension(a *org.Agent) string {
	isSuspended := func(r *org.Role) bool { return r.Suspended() && r.Status == org.Active }
	switch r, ok := o.role(a.Role); {
	case ok && isSuspended(r):
		return "role " + r.Name + " is paused"
	case slices.ContainsFunc(o.boundingRoles(a), isSuspended):
		return "a role that bounds this one is paused"
	}
	return ""
}

// PauseRole implements system.
func (o *weakenedOrg) PauseRole(_ identity.Principal, id identity.RoleID, _ string) (org.Role, org.PermissionDiff, error) {
	return o.setSuspension(id, time.Now())
}

// ResumeRole implements system.
func (o *weakenedOrg) ResumeRole(_ identity.Principal, id identity.RoleID, _ string) (org.Role, org.PermissionDiff, error) {
	return o.setSuspension(id, time.Time{})
}

func (o *weakenedOrg) setSuspension(id identity.RoleID, at time.Time) (org.Role, org.PermissionDiff, error) {
	next := *o.roles[id]
	next.SuspendedAt = at
	o.roles[id] = &next
	o.logRecord(org.KindRole, string(id), next)
	return next, org.PermissionDiff{}, nil
}

// state returns the workflow state of an agent.
func (o *weakenedOrg) state(a *org.Agent) string {
	caller, ok := o.tasks[a.Task].ExternalCaller()
	if !ok || o.disabled(ruleState) {
		return ""
	}
	return o.callers[caller]
}

// InvokeTool implements system. It only moves the workflow state of the caller, if its role
// may use the tool.
func (o *weakenedOrg) InvokeTool(_ context.Context, by identity.Principal, name string, _ json.RawMessage) (*gate.Admission, error) {
	snapshot := o.groups.CurrentSnapshot()
	handle, ok := snapshot.LookupTool(name)
	role, active := o.usableRole(by.Role)
	if !ok || !active || !snapshot.ReachesTool(o.pinned(role.Use, role.GroupOwners), handle) || handle.Definition.State == "" {
		return &gate.Admission{Err: errcode.New(errcode.ToolNotAvailable, "%s", name)}, nil
	}
	o.callers[by] = handle.Definition.State
	o.logRecord(org.KindCaller, by.Key(), org.Caller{User: by.User, Role: by.Role, State: handle.Definition.State})
	return &gate.Admission{}, nil
}

// usedGroups returns the groups that an agent uses and their limits; none if
// its role is deleted.
func (o *weakenedOrg) usedGroups(a *org.Agent) (toolgroups.PinnedSet, []toolgroups.PinnedSet) {
	r, ok := o.usableRole(a.Role)
	if !ok {
		return toolgroups.PinnedSet{}, nil
	}
	return o.pinned(r.Use, r.GroupOwners), slices.Concat(o.parentGrants(a), o.creatorGrants(r), o.serverLimits(a))
}

// boundingRoles lists every role that limits an agent, with their creators.
func (o *weakenedOrg) boundingRoles(a *org.Agent) []*org.Role {
	roles := o.creatorChain(o.boundingRole(o.tasks[a.Task].CallerRole))
	for ; a != nil; a = o.agents[a.Parent] {
		roles = append(roles, o.creatorChain(a.Role)...)
	}
	return roles
}

// creatorChain lists a role and its creators.
func (o *weakenedOrg) creatorChain(id identity.RoleID) []*org.Role {
	var list []*org.Role
	for r := o.roles[id]; r != nil; r = o.roles[identity.RoleID(r.CreatedByRole)] {
		list = append(list, r)
	}
	return list
}

// serverLimits lists the servers that an agent is restricted to.
func (o *weakenedOrg) serverLimits(a *org.Agent) []toolgroups.PinnedSet {
	var list []toolgroups.PinnedSet
	for _, r := range o.boundingRoles(a) {
		if r.Server != "" && !o.disabled(ruleServer) {
			list = append(list, toolgroups.PinnedSet{Set: toolgroups.AllGroups(), Only: toolgroups.ServerOwner(r.Server)})
		}
	}
	return list
}

// gatingOf returns the strictest level of the bounding roles.
func (o *weakenedOrg) gatingOf(a *org.Agent) (strictest toolgroups.Gating) {
	if o.disabled(ruleToolGated) {
		return toolgroups.NotGated
	}
	for _, r := range o.boundingRoles(a) {
		strictest = max(strictest, r.ToolGated)
	}
	return strictest
}

func (o *weakenedOrg) compile(use toolgroups.PinnedSet, limits []toolgroups.PinnedSet) *toolgroups.View {
	return o.groups.CurrentSnapshot().Compile(use, limits...)
}

func (o *weakenedOrg) activeAgent(id identity.AgentID) (*org.Agent, bool) {
	a, ok := o.agents[id]
	return a, ok && a.Status == org.Active
}

var errRejected = errcode.New(errcode.InsufficientPermissions, "rejected")

// covered reports whether all limits cover a set.
func (o *weakenedOrg) covered(limits []toolgroups.PinnedSet, set toolgroups.GroupSet) bool {
	return !slices.ContainsFunc(limits, func(b toolgroups.PinnedSet) bool { return len(o.groups.CurrentSnapshot().MissingFrom(b, set)) > 0 })
}

// logRecord adds a record to the commit log.
func (o *weakenedOrg) logRecord(kind org.RecordKind, key string, v any) {
	o.log.add([]journal.Record{{Kind: string(kind), Key: key, Value: mustJSON(v)}}, nil)
}

// exists reports whether a role exists for a principal.
func (o *weakenedOrg) exists(by identity.Principal, r *org.Role) bool {
	caller, role := o.callerOf(by)
	return o.disabled(ruleCaller) || r.CreatedBy == org.CreatorOperator || r.Caller == caller && r.CallerRole == role
}

// callerOf returns the caller of the task of an agent, or the operator.
func (o *weakenedOrg) callerOf(by identity.Principal) (string, identity.RoleID) {
	if by.Kind != identity.Agent {
		return by.String(), ""
	}
	t := o.tasks[o.agents[by.Agent].Task]
	return t.Caller, t.CallerRole
}

// FindRole implements builtin.RoleManager.
func (o *weakenedOrg) FindRole(_ context.Context, c tool.Call, name string) (*org.Role, error) {
	for _, r := range o.roles {
		if r.Name == name && r.Status == org.Active && o.exists(c.By, r) {
			return r, nil
		}
	}
	return nil, nil
}

// CreateRole implements builtin.RoleManager and system.
func (o *weakenedOrg) CreateRole(ctx context.Context, c tool.Call, spec org.RoleSpec) (org.Role, error) {
	id := identity.RoleID(identity.DeriveID(string(c.ID), "role"))
	if old, ok := o.roles[id]; ok {
		return *old, nil
	}
	r := &org.Role{ID: id, Name: spec.Name, CreatedBy: org.CreatorOperator, CreatedByRole: org.CreatorOperator, Status: org.Active}
	var limits []toolgroups.PinnedSet
	if c.By.Kind == identity.Agent {
		a := o.agents[c.By.Agent]
		limits, r.CreatedBy, r.CreatedByRole = o.grantLimits(a), string(a.ID), string(a.Role)
		if a.Root {
			r.CreatedBy, r.CreatedByRole = org.CreatorRoot, org.CreatorRoot
		}
		r.Caller, r.CallerRole = o.callerOf(c.By)
	}
	o.setGroups(r, spec, limits)
	o.setLimits(r, spec)
	if spec.TasksAs != nil {
		r.Tasks.As = identity.RoleID(*spec.TasksAs)
	}
	same, _ := o.FindRole(ctx, c, spec.Name)
	if err := org.CheckRoleName(spec.Name); err != nil || same != nil {
		return org.Role{}, errors.Join(err, errRejected)
	}
	if r.CreatedBy == org.CreatorRoot && o.rootGrantsNothing() {
		return org.Role{}, errRejected
	}
	if !o.disabled(ruleName) && o.kept[r.Name] && r.CreatedBy != org.CreatorOperator {
		return org.Role{}, errRejected
	}
	if !o.disabled(ruleUse) && !o.covered(limits, r.Use) || !o.disabled(ruleGrant) && !o.covered(limits, r.Grant) {
		return org.Role{}, errRejected
	}
	return o.storeRole(r), nil
}

// setGroups sets the groups of a role, with defaults for those left out.
func (o *weakenedOrg) setGroups(r *org.Role, spec org.RoleSpec, limits []toolgroups.PinnedSet) {
	if spec.Use == nil {
		all := toolgroups.AllGroups()
		for _, b := range limits {
			all = o.intersect(all, b)
		}
		spec.Use = &all
	}
	if r.Use = *spec.Use; spec.Grant != nil {
		r.Grant = *spec.Grant
	} else if r.Use.Has(toolgroups.OrgManagement) {
		r.Grant = r.Use
	}
}

// setLimits sets server and toolGated of a role.
func (o *weakenedOrg) setLimits(r *org.Role, spec org.RoleSpec) {
	if spec.Server != nil {
		r.Server = *spec.Server
	}
	if spec.ToolGated != nil {
		r.ToolGated = *spec.ToolGated
	}
}

// storeRole stores a role with the current owners of its groups.
func (o *weakenedOrg) storeRole(r *org.Role) org.Role {
	r.GroupOwners = o.groups.CurrentSnapshot().PinOwners(toolgroups.SetOf(append(r.Use.GroupIDs(), r.Grant.GroupIDs()...)...)).Owners
	o.roles[r.ID] = r
	if r.CreatedBy == org.CreatorOperator {
		o.kept[r.Name] = true
	}
	o.logRecord(org.KindRole, string(r.ID), r)
	return *r
}

// UpdateRole implements system.
func (o *weakenedOrg) UpdateRole(_ identity.Principal, id identity.RoleID, spec org.RoleSpec, _ bool) (org.Role, org.PermissionDiff, error) {
	old, ok := o.role(id)
	if !ok {
		return org.Role{}, org.PermissionDiff{}, errRejected
	}
	next := *old
	next.Name = cmp.Or(spec.Name, old.Name)
	if spec.Use != nil {
		next.Use = *spec.Use
	}
	if spec.Grant != nil {
		next.Grant = *spec.Grant
	}
	o.setLimits(&next, spec)
	if as := spec.TasksAs; as != nil {
		if _, ok := o.role(identity.RoleID(*as)); *as != "" && (!ok || next.CreatedBy != org.CreatorOperator) {
			return org.Role{}, org.PermissionDiff{}, errRejected
		}
		next.Tasks.As = identity.RoleID(*as)
	}
	return o.storeRole(&next), org.PermissionDiff{}, nil
}

// DeleteRole implements system.
func (o *weakenedOrg) DeleteRole(_ identity.Principal, id identity.RoleID, _ bool) (org.PermissionDiff, error) {
	old, ok := o.role(id)
	if !ok {
		return org.PermissionDiff{}, errRejected
	}
	next := *old
	next.Status = org.Deleted
	o.storeRole(&next)
	return org.PermissionDiff{}, nil
}

// StartTask implements system.
func (o *weakenedOrg) StartTask(_ context.Context, spec org.TaskSpec) (identity.TaskID, error) {
	id := identity.TaskID(identity.NewID())
	all := toolgroups.PinnedSet{Set: toolgroups.AllGroups()}
	t := &org.Task{ID: id, Caller: spec.Caller.String(), Top: identity.AgentID(identity.NewID()), CallerRole: spec.Caller.Role, Ceiling: all, Groups: all, Status: org.Running}
	if spec.Groups != nil {
		t.Groups = o.groups.CurrentSnapshot().PinOwners(*spec.Groups)
	}
	if spec.Caller.Kind == identity.Caller {
		bound, ok := o.usableRole(o.boundingRole(spec.Caller.Role))
		if !ok {
			return "", errRejected
		}
		limits := append(o.creatorGrants(bound), toolgroups.PinnedSet{Set: bound.Use})
		if spec.Groups != nil && !o.covered(limits, *spec.Groups) {
			return "", errRejected
		}
		t.Ceiling.Owners = bound.GroupOwners
		for _, limit := range limits {
			t.Ceiling.Set = o.intersect(t.Ceiling.Set, limit)
		}
	}
	o.tasks[id] = t
	o.logRecord(org.KindTask, string(id), t)
	o.addAgent(&org.Agent{ID: t.Top, Role: org.RootRole, Task: id, Root: true, Status: org.Active})
	return id, nil
}

// CancelTask implements system.
func (o *weakenedOrg) CancelTask(_ context.Context, id identity.TaskID, _ string) error {
	return o.setStatus(id, org.Cancelled)
}

// RetryTask implements system.
func (o *weakenedOrg) RetryTask(_ context.Context, id identity.TaskID, by identity.Principal, _ org.ModelAllowance) error {
	if by.Kind != identity.Operator && !o.disabled(ruleRetry) {
		return errRejected
	}
	return o.setStatus(id, org.Running)
}

// setStatus sets the status of a task.
func (o *weakenedOrg) setStatus(id identity.TaskID, status org.TaskStatus) error {
	o.tasks[id].Status = status
	o.logRecord(org.KindTask, string(id), o.tasks[id])
	return nil
}

// WaitTask implements system.
func (o *weakenedOrg) WaitTask(_ context.Context, id identity.TaskID) (org.Task, error) {
	return *o.tasks[id], nil
}

func (o *weakenedOrg) addAgent(a *org.Agent) {
	o.agents[a.ID] = a
	o.logRecord(org.KindAgent, string(a.ID), a)
}

// SpawnAgent implements builtin.AgentManager.
func (o *weakenedOrg) SpawnAgent(_ context.Context, c tool.Call, s org.SpawnSpec, first json.RawMessage) (org.SpawnResult, error) {
	id := identity.AgentID(identity.DeriveID(string(c.ID), "agent"))
	out := org.SpawnResult{ID: id, Role: s.Role}
	if o.agents[id] != nil {
		return out, nil
	}
	parent := o.agents[c.By.Agent]
	if err := o.checkSpawn(parent, s); err != nil {
		return org.SpawnResult{}, err
	}
	o.addAgent(&org.Agent{ID: id, Role: s.Role, Parent: parent.ID, Task: parent.Task, Brief: s.Brief, Status: org.Active})
	if first != nil {
		o.logMessage(parent, id)
	}
	return out, nil
}

// checkSpawn returns an error if an agent may not spawn another.
func (o *weakenedOrg) checkSpawn(parent *org.Agent, s org.SpawnSpec) error {
	r, ok := o.usableRole(s.Role)
	if !ok || s.Brief.Check() != nil || !o.exists(identity.ByAgent(parent.ID), r) {
		return errRejected
	}
	if limits := o.spawnLimits(parent, r); !o.disabled(ruleSpawn) && !(o.covered(limits, r.Use) && o.covered(limits, r.Grant)) {
		return errRejected
	}
	if parent.Root && r.CreatedBy != org.CreatorOperator && o.rootGrantsNothing() {
		return errRejected
	}
	for _, c := range s.Brief.Collaborators {
		if to := c.Agent; to != parent.ID && to != org.RootRole && to != "user" && !o.mayWrite(parent, to) {
			return errRejected
		}
	}
	return nil
}

// rootGrantsNothing reports whether root may grant nothing, and so creates no roles.
func (o *weakenedOrg) rootGrantsNothing() bool {
	set := o.rootGrant.Set
	return !o.disabled(ruleRoot) && !set.IsAll() && len(set.GroupIDs()) == 0
}

// isBelow reports whether an agent is a descendant of another.
func (o *weakenedOrg) isBelow(a *org.Agent, id identity.AgentID) bool {
	for a.Parent != "" {
		if a.Parent == id {
			return true
		}
		a = o.agents[a.Parent]
	}
	return false
}

// TerminateAgent implements builtin.AgentManager and system.
func (o *weakenedOrg) TerminateAgent(_ context.Context, c tool.Call, target identity.AgentID, _ string) error {
	a, ok := o.activeAgent(target)
	if !ok || a.Root || c.By.Kind == identity.Agent && !o.disabled(ruleTermination) && !o.isBelow(a, c.By.Agent) {
		return errRejected
	}
	for _, b := range o.agents {
		if b.Status == org.Active && (b == a || o.isBelow(b, target)) {
			b.Status = org.Terminated
			o.logRecord(org.KindAgent, string(b.ID), b)
		}
	}
	return nil
}

// AgentBelow implements builtin.AgentManager. The agents here have no names.
func (o *weakenedOrg) AgentBelow(_ context.Context, _ tool.Call, name identity.AgentID) (identity.AgentID, error) {
	return name, nil
}

func (o *weakenedOrg) mayWrite(from *org.Agent, to identity.AgentID) bool {
	a, ok := o.activeAgent(to)
	if !ok || a.Task != from.Task {
		return false
	}
	named := slices.ContainsFunc(from.Brief.Collaborators, func(c org.Collaborator) bool { return c.Agent == to })
	return o.disabled(ruleMessage) || to == from.Parent || o.tasks[a.Task].Top == to || o.isBelow(a, from.ID) || named
}

// logMessage adds a message to the commit log.
func (o *weakenedOrg) logMessage(from *org.Agent, to identity.AgentID) {
	m := journal.Message{}
	m.From, m.To, m.Task = string(from.ID), string(to), from.Task
	o.log.add(nil, []journal.Message{m})
}

// SendAll implements builtin.MessageSender.
func (o *weakenedOrg) SendAll(_ context.Context, c tool.Call, to []string, _ json.RawMessage, _ time.Duration) ([]org.SendResult, error) {
	from := o.agents[c.By.Agent]
	for i, name := range to {
		if name == org.RootRole {
			to[i] = string(o.tasks[from.Task].Top)
		}
		if name != "user" && !o.mayWrite(from, identity.AgentID(to[i])) {
			return nil, errRejected
		}
	}
	for _, name := range to {
		if name != "user" {
			o.logMessage(from, identity.AgentID(name))
		}
	}
	return make([]org.SendResult, len(to)), nil
}

// A weakenedOrg with all rules has no violation, so what
// TestClosure_FindsEachDisabledRule finds is caused by the disabled rule.
func TestWeakenedOrg_AllRulesHasNoViolation(t *testing.T) {
	short.SkipSequential(t)
	for _, obedient := range []bool{false, true} {
		kind, text := search(t, 0, "", obedient, short.Count(4, 20))
		if kind != "" {
			t.Errorf("obedient root %v: %s", obedient, text)
		}
	}
}

// With a rule disabled the attacks find a violation of the expected kind. Some
// rules are backed by others and have no effect alone: then the grant itself is
// found, and the effect of a tool once the other rules are disabled too.
func TestClosure_FindsEachDisabledRule(t *testing.T) {
	short.SkipSequential(t)
	tests := []struct {
		name     string
		off      ruleSet
		kind     string
		obedient bool
	}{
		{"use beyond the creator's grant", ruleUse, violationGrant, false},
		{"grant beyond the creator's grant", ruleGrant, violationGrant, false},
		{"spawn beyond the spawner's grant", ruleSpawn, violationGrant, false},
		{"child keeps what its parent lost", ruleParent, violationEffect, false},
		{"role keeps what its creator lost", ruleCreator, violationEffect, false},
		{"task grants beyond its limits", ruleTask, violationGrant, false},
		{"task exceeds its narrowing", ruleTask, violationEffect, false},
		{"task exceeds its caller", ruleTask, violationEffect, true},
		{"effect of use beyond the creator's grant", ruleUse | ruleSpawn | ruleCreator | ruleParent, violationEffect, false},
		{"effect of grant beyond the creator's grant", ruleGrant | ruleCreator | ruleParent, violationEffect, false},
		{"effect of spawn beyond the spawner's grant", ruleSpawn | ruleParent, violationEffect, false},
		{"suspended role keeps its tools", ruleSuspension, violationEffect, false},
		{"agent is spawned with a suspended role", ruleSuspension, violationGrant, false},
		{"task keeps what its suspended caller had", ruleSuspension, violationEffect, true},
		{"termination of a non-descendant", ruleTermination, violationTermination, false},
		{"message to a forbidden recipient", ruleMessage, violationMessage, false},
		{"grant inherited by another owner", ruleOwner, violationEffect, false},
		{"role uses a tool of another server", ruleServer, violationEffect, false},
		{"task uses a tool of another server than its caller", ruleServer, violationEffect, true},
		{"root grants beyond what the operator lets it grant", ruleRoot, violationGrant, true},
		{"role keeps what root may not grant any more", ruleRoot, violationEffect, false},
		{"agent takes a name of the operator", ruleName, violationName, false},
		{"task does what its caller may not do in its state", ruleState, violationEffect, true},
		{"task keeps what the role in tasks.as lost", ruleTasksAs, violationEffect, true},
		{"another retries a cancelled task", ruleRetry, violationRecord, true},
		{"agent spawns one of another caller's role", ruleCaller, violationIsolation, true},
		{"read part has every tool of its group", ruleRead, violationEffect, false},
		{"tool-gated agent learns which tools exist", ruleToolGated, violationDisclosure, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if kind, text := search(t, tt.off, tt.kind, tt.obedient, 400); kind != tt.kind {
				t.Errorf("found %q (%s), want %q", kind, text, tt.kind)
			}
		})
	}
}

// search runs attacks on a weakened organization until a violation is found, in
// at most envs environments, and returns it. If only is set, other kinds are
// ignored.
func search(t *testing.T, off ruleSet, only string, obedient bool, envs int) (kind, text string) {
	t.Helper()
	seed := flags.Seed()
	for n := range envs {
		s, err := newWeakenedEnv(off)
		if err != nil {
			t.Fatal(err)
		}
		s.wantKind, s.obedientRoot = only, obedient
		tape := randomChoices(seed, n, attacksPerEnv*callsPerAttack*10)
		if err := s.runAttacks(&tape); err != nil {
			if b, ok := errors.AsType[*violation](err); ok {
				t.Logf("after %d attacks, seed %d: %s", n*attacksPerEnv+s.outcomes["attacks"]+1, seed, textutil.OneLine(b.Error(), 300))
				return b.kind, fmt.Sprint(err)
			}
			t.Fatalf("seed %d, environment %d: %v", seed, n, err)
		}
	}
	return "", fmt.Sprintf("nothing in %d attacks, seed %d", envs*attacksPerEnv, seed)
}
