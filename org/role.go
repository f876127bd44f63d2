package org

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// LifecycleStatus is the life-cycle state of a role or an agent.
type LifecycleStatus string

// The states of roles and agents. The zero Status is not active.
const (
	Active     LifecycleStatus = "active"
	Deleted    LifecycleStatus = "deleted"    // of roles
	Terminated LifecycleStatus = "terminated" // of agents
)

// The creators of roles that are not agents, as values of createdBy and createdByRole.
const (
	CreatorRoot     = "root"
	CreatorOperator = "operator"
	CreatorConfig   = "config"
)

// RootRole is the role id and the role name of the root agents of tasks. There is no record of this
// role. A root agent is recognized by a flag, never by its name or id.
const RootRole = "root"

// Role defines the prompt, the model and the permissions of the agents that have it.
type Role struct {
	ID            identity.RoleID                              `json:"id"`
	Name          string                                       `json:"name"`
	Description   string                                       `json:"description,omitempty"` // what its agents are for, in one line: for agents that choose a role
	Prompt        string                                       `json:"rolePrompt"`
	CreatedBy     string                                       `json:"createdBy"`     // CreatorRoot, CreatorOperator, CreatorConfig or the id of an agent
	CreatedByRole string                                       `json:"createdByRole"` // CreatorRoot, CreatorOperator, CreatorConfig or the id of the creating agent's role
	CreatedAt     time.Time                                    `json:"createdAt"`
	Status        LifecycleStatus                              `json:"status"`
	Model         ServiceID                                    `json:"llmServiceId"`
	Use           toolgroups.GroupSet                          `json:"toolGroups"`  // what its agents may call
	Grant         toolgroups.GroupSet                          `json:"grant"`       // what its agents may put into roles they create
	GroupOwners   map[toolgroups.GroupID]toolgroups.GroupOwner `json:"groupOwners"` // owners of the groups in Use and Grant when they were written
	Revision      uint64                                       `json:"revision"`    // 1, incremented by every change
	FormerNames   []string                                     `json:"formerNames,omitempty"`
	Limits        AgentLimits                                  `json:"limits,omitzero"`
	Hosts         *hosts.HostRule                              `json:"hosts,omitempty"` // hosts that requests of its agents may reach; nil adds no limit to those of its creators
	Pattern       CollaborationPattern                         `json:"pattern,omitempty"`
	ToolGated     toolgroups.Gating                            `json:"toolGated,omitempty"` // its agents must answer from tools alone
	Task          identity.TaskID                              `json:"task,omitempty"`      // of the agent that created it
	Caller        string                                       `json:"caller,omitempty"`    // who started that task, as in Task; only tasks of the same caller have the role
	CallerRole    identity.RoleID                              `json:"callerRole,omitempty"`
	Suspension                                                 // that the operator has set
	Server        string                                       `json:"server,omitempty"`   // restricts its agents, and the agents they create, to the tools of this server
	Tasks         RoleTasks                                    `json:"tasks,omitzero"`     // only of declared roles
	Result        *ResultSpec                                  `json:"result,omitempty"`   // what its agents' results must be; nil for any result
	Agent         *AskSettings                                 `json:"agent,omitempty"`    // lets its callers ask its agents; only of declared roles
	States        []string                                     `json:"states,omitempty"`   // workflow states in which its callers may begin; only of declared roles
	Approval      []approval.Rule                              `json:"approval,omitempty"` // which calls of its agents and callers, and of those below, wait for people; only of declared roles
	Bind          bounds.Bind                                  `json:"bind,omitempty"`     // bounds the arguments of tools wherever it uses or grants them
}

// AgentLimits are limits on the resources of an agent. Zero selects the default.
type AgentLimits struct {
	Rounds int            `json:"rounds,omitempty"` // model answers with tool calls in one turn
	Budget ModelAllowance `json:"budget,omitzero"`  // what it and those below it may use at most; a zero field is no limit
	LineLimits
}

// or returns l. Fields that l does not set come from other.
func (l AgentLimits) or(other AgentLimits) AgentLimits {
	return AgentLimits{
		Rounds: cmp.Or(l.Rounds, other.Rounds), Budget: cmp.Or(l.Budget, other.Budget),
		LineLimits: LineLimits{
			Depth: cmp.Or(l.Depth, other.Depth), Hires: cmp.Or(l.Hires, other.Hires), Seconds: cmp.Or(l.Seconds, other.Seconds),
		},
	}
}

// CollaborationPattern is the way in which an agent works. The zero Pattern is React.
type CollaborationPattern string

// The patterns.
const (
	React CollaborationPattern = "react" // call tools as needed
	Plan  CollaborationPattern = "plan"  // first plan the calls, then make them in order
)

// ServiceID identifies a model. "" is the default model of the organization; it is null
// in JSON.
type ServiceID string

// MarshalJSON implements json.Marshaler.
func (s ServiceID) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(s))
}

// RoleSpec specifies a role to create, or the fields of a role to change. CreateRole and
// UpdateRole say what zero values mean. Nil Hosts, ToolGated and Server add no limit; in
// an update they keep their value, and hosts.AnyHost, false and "" remove the limit.
type RoleSpec struct {
	Name        string
	Description string // see CheckDescription
	Prompt      string
	Model       string
	Use         *toolgroups.GroupSet
	Grant       *toolgroups.GroupSet
	Limits      AgentLimits
	Hosts       *hosts.HostRule

	Pattern   CollaborationPattern // "" is React; in an update it keeps its value
	ToolGated *toolgroups.Gating
	Server    *string
	TasksAs   *string         // id or exact name of the role that bounds the tasks of its callers (RoleTasks); "" for none. An update without it keeps its value
	Result    *ResultSpec     // nil is any result; in an update it keeps its value
	Agent     *AskSettings    // nil lets its callers ask no agents; in an update it keeps its value
	States    []string        // in an update nil keeps its value
	Approval  []approval.Rule // in an update nil keeps its value
	Bind      bounds.Bind     // nil adds no bound; in an update it keeps its value, and an empty one removes all bounds

	// AllowUnknown lets the operator name groups that do not exist. They have no effect,
	// also if such a group is registered later, until the role is written again.
	AllowUnknown bool

	// Of an update only.
	Defaults []RoleField // fields that get the value of a role that is created without them; they are not set otherwise
	Revision uint64      // the role is changed only if it has this revision; 0 is any

	Auth string // how the operator who asks was authenticated, for the record of a change that waits for approval
}

// RoleByID returns the role with the given id, active or deleted.
func (o *Org) RoleByID(id identity.RoleID) (Role, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	r, ok := o.roles[id]
	if !ok {
		return Role{}, false
	}
	return *r, true
}

// RoleByName returns the active role that exactly this name means for the operator. It reports
// false if there is no such role, or if the name is ambiguous (see FindRole).
func (o *Org) RoleByName(name string) (Role, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	r, err := o.findAnyNamed(name)
	if r == nil || err != nil {
		return Role{}, false
	}
	return *r, true
}

// RoleForAgent returns the active role that exactly this name means for an agent. It is a declared
// role, or a role that an agent created in a task of the same caller.
func (o *Org) RoleForAgent(id identity.AgentID, name string) (Role, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	r := o.roleNamed(o.ownerOf(identity.ByAgent(id)), name)
	if r == nil {
		return Role{}, false
	}
	return *r, true
}

// ConfiguredRole returns the active role of the configuration with exactly this name. It
// never returns a role that an agent or the operator created.
func (o *Org) ConfiguredRole(name string) (Role, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	r := o.roleNamed(operatorOwner(), name)
	if r == nil || r.CreatedBy != CreatorConfig {
		return Role{}, false
	}
	return *r, true
}

// FindRole returns the active role that this id or exactly this name means for the
// operator. A declared role has its name alone, whatever roles of this name the tasks of
// external callers have. The id of a deleted role is never taken for a name.
//
// The error has the code RoleNotFound, or Conflict if tasks of several callers have a role
// of this name (with the detail "roleIds").
func (o *Org) FindRole(idOrName string) (Role, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	r, err := o.findActiveRole(identity.ByOperator(""), idOrName)
	if err != nil {
		return Role{}, err
	}
	return *r, nil
}

// SuggestRole returns a hint to the active role whose name is most similar to an unknown name. It
// returns "" if no name is similar. It is for the operator, who may know every role.
func (o *Org) SuggestRole(name string) string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	var known []string
	for _, r := range o.sortedRoles() {
		known = append(known, r.Name)
	}
	return textutil.SuggestName(name, known)
}

// findActiveRole returns the active role that an id or exactly a name means for by. It returns the
// errors of FindRole. It must be called with mu held.
func (o *Org) findActiveRole(by identity.Principal, idOrName string) (r *Role, err error) {
	switch found, known := o.roles[identity.RoleID(idOrName)]; {
	case known && o.mayFind(by, found):
		r = found
	case by.Kind == identity.Operator:
		r, err = o.findAnyNamed(idOrName)
	default:
		r = o.roleNamed(o.ownerOf(by), idOrName)
	}
	if err == nil && (r == nil || r.Status != Active) {
		err = notFound(errcode.RoleNotFound, "role", idOrName)
	}
	return r, err
}

// ListRoles returns the active roles, sorted by name and id.
func (o *Org) ListRoles() []Role {
	o.mu.RLock()
	defer o.mu.RUnlock()
	list := []Role{}
	for _, r := range o.sortedRoles() {
		list = append(list, *r)
	}
	return list
}

// CreateRole creates a role with the given id on behalf of by.
//
// A nil Use is the default of the organization (RoleConfig.Default), within what by may grant. A
// nil Grant is Use if Use contains org_management, else empty. Use and Grant must be
// within what by may grant. The groups are pinned to their current owners.
//
// CreateRole is idempotent. It may find a role with this id, active or deleted, or a role
// of by with the same name and content. Then it returns that role and no Changes.
//
// Errors have the codes InvalidRole, InsufficientPermissions (with the detail "missing"),
// GroupNotFound (with the detail "groups"), LimitExceeded and RoleExists (with the detail
// "roleId"). For an unknown principal, it returns another error.
//
// Agents may not use a name that a role of the operator or of the configuration has or once had.
// Names are unique among the declared roles and the roles of tasks of the same caller. A new
// declared role may have the name of a role of an external caller's tasks. The role of the tasks
// is then found by its id only.
func (o *Org) CreateRole(by identity.Principal, id identity.RoleID, spec RoleSpec) (Role, []RecordChange, error) {
	if err := spec.checkNamedGroups(); err != nil {
		return Role{}, nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if r, ok := o.roles[id]; ok {
		return *r, nil, nil
	}
	role, exists, err := o.planCreation(by, id, spec)
	if err != nil || exists {
		return role, nil, err
	}
	if m, ok := o.agents[by.Agent]; ok && by.Kind == identity.Agent {
		if err := o.checkRoleLimits(m); err != nil {
			return Role{}, nil, err
		}
		role.Task = m.task
	}
	if !role.isDeclared() {
		role.setOwner(o.ownerOf(by))
	}
	o.addRole(&role)
	changes := o.advance(id)
	o.recompile(o.scopes.byRoleID(id))
	o.notifyChanged()
	return role, append([]RecordChange{newRecord(KindRole, string(id), role)}, changes...), nil
}

// Values of dryRun.
const (
	Apply  = false
	DryRun = true // change nothing, and tell the effect
)

// UpdateRole changes the fields of a role that are set in spec, and returns who gains or
// loses tools. With dryRun it changes nothing and returns no Changes.
//
// Only the operator and the configuration may change roles. A zero field of spec keeps its value. A
// file specifies a role completely. So if by is the configuration, a zero value clears a field.
// This holds for Description, Prompt, Model, Limits, Hosts, Pattern, ToolGated, Server, TasksAs,
// Result, Agent, States, Approval and Bind.
//
// Errors have the codes RoleNotFound, InvalidRole, InsufficientPermissions, GroupNotFound,
// RoleExists and Conflict. Conflict means that the operator changes a role of the configuration, or
// the reverse. It also means that the role has another revision than spec.Revision (with the detail
// "revision"). Concurrent updates take effect one after another.
func (o *Org) UpdateRole(by identity.Principal, id identity.RoleID, spec RoleSpec, dryRun bool) (Role, PermissionDiff, []RecordChange, error) {
	if err := spec.checkNamedGroups(); err != nil {
		return Role{}, PermissionDiff{}, nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	old, editor, err := o.mutableRole("change", by, id)
	if err != nil {
		return Role{}, PermissionDiff{}, nil, err
	}
	if err := checkRevision(old, spec); err != nil {
		return Role{}, PermissionDiff{}, nil, err
	}
	next, err := o.revise(editor, old, spec)
	if err != nil {
		return Role{}, PermissionDiff{}, nil, err
	}
	diff, changes := o.replaceRole(old, next, dryRun)
	return *next, diff, changes, nil
}

// DeleteRole deletes a role. Its agents, and the agents of all roles that they created,
// lose all permissions. The record is kept with the status Deleted. It returns the
// errors of UpdateRole.
func (o *Org) DeleteRole(by identity.Principal, id identity.RoleID, dryRun bool) (PermissionDiff, []RecordChange, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	old, _, err := o.mutableRole("delete", by, id)
	if err != nil {
		return PermissionDiff{}, nil, err
	}
	next := *old
	next.Status, next.Revision = Deleted, old.Revision+1
	diff, changes := o.replaceRole(old, &next, dryRun)
	return diff, changes, nil
}

// PreviewUpdate returns a role of the configuration as the operator's spec would change it. It
// also returns who would gain or lose tools. It changes nothing, and UpdateRole rejects the
// change: refusal says so. It returns the errors of UpdateRole.
func (o *Org) PreviewUpdate(by identity.Principal, id identity.RoleID, spec RoleSpec) (next Role, diff PermissionDiff, refusal, err error) {
	if err := spec.checkNamedGroups(); err != nil {
		return Role{}, PermissionDiff{}, nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	old, editor, err := o.activeRole("change", by, id)
	if err != nil {
		return Role{}, PermissionDiff{}, nil, err
	}
	if err := checkRevision(old, spec); err != nil {
		return Role{}, PermissionDiff{}, nil, err
	}
	revised, err := o.revise(editor, old, spec)
	if err != nil {
		return Role{}, PermissionDiff{}, nil, err
	}
	diff, _ = o.replaceRole(old, revised, DryRun)
	return *revised, diff, checkOrigin("change", old, editor), nil
}

// mutableRole returns an active role that by may change, and the grantor for by. Errors name
// the change with verb.
func (o *Org) mutableRole(verb string, by identity.Principal, id identity.RoleID) (*Role, grantor, error) {
	old, m, err := o.activeRole(verb, by, id)
	if err == nil {
		err = checkOrigin(verb, old, m)
	}
	if err != nil {
		return nil, m, err
	}
	return old, m, nil
}

// checkRevision rejects a change that is for another revision of a role.
func checkRevision(old *Role, spec RoleSpec) error {
	if spec.Revision != 0 && spec.Revision != old.Revision {
		return errcode.New(errcode.Conflict, "change role %q: it has revision %d now; look at it again and repeat the change", old.Name, old.Revision).With("revision", old.Revision)
	}
	return nil
}

// checkOrigin rejects a change of a role by a grantor that does not define it. The operator changes
// the roles of agents and of the operator. The configuration changes its own roles.
func checkOrigin(verb string, old *Role, m grantor) error {
	if (old.CreatedBy == CreatorConfig) != (m.createdBy == CreatorConfig) {
		return errcode.New(errcode.Conflict, "%s role %q: it is defined by the configuration; %s it in the file", verb, old.Name, verb)
	}
	return nil
}

// activeRole returns an active role that by may look at and change if the role is its own, and the
// grantor for by.
func (o *Org) activeRole(verb string, by identity.Principal, id identity.RoleID) (*Role, grantor, error) {
	m, err := o.grantor(by)
	if err != nil {
		return nil, m, err
	}
	old, ok := o.roles[id]
	switch {
	case !ok || old.Status != Active || !o.mayFind(by, old):
		return nil, m, notFound(errcode.RoleNotFound, "role", string(id))
	case by.Kind != identity.Operator && by.Kind != identity.Configuration:
		return nil, m, errcode.New(errcode.InsufficientPermissions, "%s role %q: only the operator may %s roles", verb, old.Name, verb)
	}
	return old, m, nil
}

// mergedWith returns s with the values of old in place of zero values.
func (s RoleSpec) mergedWith(old *Role) RoleSpec {
	return RoleSpec{
		Name: cmp.Or(s.Name, old.Name), Description: cmp.Or(s.Description, old.Description), Prompt: cmp.Or(s.Prompt, old.Prompt), Model: cmp.Or(s.Model, string(old.Model)),
		Use: cmp.Or(s.Use, &old.Use), Grant: cmp.Or(s.Grant, &old.Grant), Limits: s.Limits.or(old.Limits), Hosts: cmp.Or(s.Hosts, old.Hosts),
		Pattern: cmp.Or(s.Pattern, old.Pattern), ToolGated: cmp.Or(s.ToolGated, &old.ToolGated), Server: cmp.Or(s.Server, &old.Server),
		Result: cmp.Or(s.Result, old.Result), Agent: cmp.Or(s.Agent, old.Agent), States: s.statesOr(old.States), Approval: s.approvalOr(old.Approval), Bind: s.bindOr(old.Bind),
	}
}

// revise returns a copy of old with the changes of spec.
func (o *Org) revise(editor grantor, old *Role, spec RoleSpec) (*Role, error) {
	merged := spec.mergedWith(old)
	if editor.createdBy == CreatorConfig { // the file is complete: zero values are meant
		merged.Description, merged.Prompt, merged.Model, merged.Limits, merged.Hosts = spec.Description, spec.Prompt, spec.Model, spec.Limits, spec.Hosts
		merged.Pattern, merged.ToolGated, merged.Server, merged.Result = spec.Pattern, spec.ToolGated, spec.Server, spec.Result
		merged.Agent, merged.States, merged.Approval, merged.Bind = spec.Agent, spec.States, spec.Approval, spec.Bind
	}
	if merged.Name != old.Name { // a stored role keeps its name
		if err := CheckRoleName(merged.Name); err != nil {
			return nil, err
		}
	}
	for _, field := range spec.Defaults {
		if err := o.setDefault(&merged, field, old); err != nil {
			return nil, err
		}
	}
	next, err := o.newRole(editor, old.ID, merged)
	if err != nil {
		return nil, err
	}
	spec.Name = merged.Name
	if err := errors.Join(o.checkKnown(editor, spec, old), o.checkBind(editor, spec)); err != nil {
		return nil, err
	}
	if slices.Contains(spec.Defaults, UseField) { // bind it, as a set that spec names
		spec.Use = merged.Use
	}
	if err := o.checkRename(old, next.Name); err != nil {
		return nil, err
	}
	next.GroupOwners = rebindOwners(old, next, spec)
	next.CreatedBy, next.CreatedByRole, next.CreatedAt, next.Task = old.CreatedBy, old.CreatedByRole, old.CreatedAt, old.Task
	next.Caller, next.CallerRole, next.Suspension = old.Caller, old.CallerRole, old.Suspension
	kept := old.Tasks
	if slices.Contains(spec.Defaults, TasksField) {
		kept = RoleTasks{}
	}
	if next.Tasks, err = o.bindTasks(editor, next, spec, kept); err != nil {
		return nil, err
	}
	next.Revision, next.FormerNames = old.Revision+1, old.formerNames(next.Name)
	return next, nil
}

// checkRename returns an error if a role may not have another name. Another role that
// the same tasks have may have that name already. Or the name is one of the operator
// that would not mean the role.
func (o *Org) checkRename(r *Role, name string) error {
	other := o.roleNamed(r.owner(), name)
	switch {
	case name == r.Name:
		return nil
	case other != nil:
		return errcode.New(errcode.RoleExists, "rename role %q to %q: a role of this name exists", r.Name, name)
	case o.reservedNames[name] && r.owner() != operatorOwner():
		return errcode.New(errcode.InvalidRole, "rename role %q to %q: a role of the operator had this name, so it cannot mean the role of a caller; choose another name", r.Name, name)
	}
	return nil
}

// formerNames returns the former names of r after it is renamed.
func (r *Role) formerNames(name string) []string {
	if name == r.Name || slices.Contains(r.FormerNames, r.Name) {
		return r.FormerNames
	}
	return append(slices.Clone(r.FormerNames), r.Name)
}

// rebindOwners returns the group owners of a changed role. Groups of the Sets in spec
// are pinned to their current owners; groups that are away and all other groups keep theirs.
func rebindOwners(old, next *Role, spec RoleSpec) map[toolgroups.GroupID]toolgroups.GroupOwner {
	owners := maps.Clone(old.GroupOwners)
	if owners == nil {
		owners = map[toolgroups.GroupID]toolgroups.GroupOwner{}
	}
	for _, named := range []*toolgroups.GroupSet{spec.Use, spec.Grant} {
		if named == nil {
			continue
		}
		for _, id := range named.GroupIDs() {
			if owner, ok := next.GroupOwners[id]; ok {
				owners[id] = owner
			}
		}
	}
	maps.DeleteFunc(owners, func(id toolgroups.GroupID, _ toolgroups.GroupOwner) bool {
		return !slices.Contains(next.Use.GroupIDs(), id) && !slices.Contains(next.Grant.GroupIDs(), id)
	})
	return owners
}

// replaceRole replaces old by next, unless dryRun is set, and returns the effect. It must
// be called with mu held.
func (o *Org) replaceRole(old, next *Role, dryRun bool) (PermissionDiff, []RecordChange) {
	diff := o.diff(next)
	if dryRun {
		return diff, nil
	}
	affected := o.scopes.byRoleID(old.ID)
	o.addRole(next)
	changes := o.advance(old.ID)
	o.recompile(affected)
	o.notifyChanged()
	return diff, append([]RecordChange{newRecord(KindRole, string(next.ID), next)}, changes...)
}

// addRole adds r to the maps, in place of the role with the same id. It must be called
// with mu held.
func (o *Org) addRole(r *Role) {
	if old, ok := o.roles[r.ID]; ok {
		o.removeName(old)
	}
	o.roles[r.ID] = r
	if r.Status == Active {
		o.activeRoles[r.Name] = append(slices.Clip(o.activeRoles[r.Name]), r)
	}
	if r.isDeclared() {
		o.reserveNames(r)
	}
}

// newRole returns the role for a complete specification, whose name its caller has checked.
// It returns an error if the specification is invalid or exceeds what creator may grant.
func (o *Org) newRole(creator grantor, id identity.RoleID, spec RoleSpec) (*Role, error) {
	if spec.Pattern != "" && spec.Pattern != React && spec.Pattern != Plan {
		return nil, errcode.New(errcode.InvalidRole, "role %q: unknown pattern %q; use react or plan", spec.Name, spec.Pattern)
	}
	if spec.Limits.Rounds < 0 || spec.Limits.Rounds > math.MaxInt32 {
		return nil, errcode.New(errcode.InvalidRole, "role %q: limits.rounds is %d; use a number from 1 to %d, or 0 for the default", spec.Name, spec.Limits.Rounds, math.MaxInt32)
	}
	if !spec.Limits.LineLimits.isValid() {
		return nil, errcode.New(errcode.InvalidRole, "role %q: limits.depth, limits.hires or limits.seconds is out of range; use numbers from 1 to %d, or 0 for no limit", spec.Name, math.MaxInt32).With("field", "limits")
	}
	if !spec.Limits.Budget.IsValid() {
		return nil, errcode.New(errcode.InvalidRole, "role %q: limits.budget is out of range; tokens, requests, calls and cost are not negative and at most %d", spec.Name, int64(MaxAllowance)).With("field", "limits")
	}
	if err := CheckDescription(spec.Description); err != nil {
		return nil, rephrase(err, "role %q: %s", spec.Name, errcode.Message(err))
	}
	if err := checkServer(spec); err != nil {
		return nil, err
	}
	if err := checkResult(spec); err != nil {
		return nil, err
	}
	if err := checkRequestFields(creator, spec); err != nil {
		return nil, err
	}
	if err := checkApproval(creator, spec); err != nil {
		return nil, err
	}
	use, grant := o.resolveGrants(creator, spec)
	for _, id := range append(use.GroupIDs(), grant.GroupIDs()...) {
		if err := toolgroups.CheckListedID(id); err != nil {
			return nil, errcode.New(errcode.InvalidRole, "role %q: %s", spec.Name, errcode.Message(err))
		}
	}
	if err := o.checkGrant(creator, spec.Name, use, grant); err != nil {
		return nil, err
	}
	owners := map[toolgroups.GroupID]toolgroups.GroupOwner{}
	maps.Copy(owners, o.pinOwners(use).Owners)
	maps.Copy(owners, o.pinOwners(grant).Owners)
	made := &Role{
		ID: id, Name: spec.Name, Description: spec.Description, Prompt: spec.Prompt, Model: ServiceID(spec.Model), Limits: spec.Limits, Hosts: storedRule(spec.Hosts), Pattern: spec.Pattern, ToolGated: deref(spec.ToolGated), Server: deref(spec.Server), Result: spec.Result.normalized(),
		Agent: spec.Agent, States: slices.Clone(spec.States), Approval: slices.Clone(spec.Approval), Bind: storedBind(spec.Bind),
		CreatedBy: creator.createdBy, CreatedByRole: creator.role, CreatedAt: o.config.Now().UTC(),
		Status: Active, Use: use, Grant: grant, GroupOwners: owners, Revision: 1,
	}
	made.Suspension = o.suspensionOf(made)
	return made, nil
}

// resolveGrants returns the Use and Grant of a specification, with defaults for nil.
func (o *Org) resolveGrants(creator grantor, spec RoleSpec) (use, grant toolgroups.GroupSet) {
	if spec.Use != nil {
		use = *spec.Use
	} else {
		use = o.defaultUse(creator.limits)
	}
	switch {
	case spec.Grant != nil:
		grant = *spec.Grant
	case use.Has(toolgroups.OrgManagement):
		grant = use
	}
	return use, grant
}

// sameAs reports whether r and other have the same creator and the same content.
func (r *Role) sameAs(other *Role) bool {
	return r.CreatedBy == other.CreatedBy && r.CreatedByRole == other.CreatedByRole &&
		r.Description == other.Description && r.Prompt == other.Prompt && r.Model == other.Model && r.Limits == other.Limits && r.hosts().Equal(other.hosts()) &&
		r.Pattern == other.Pattern && r.ToolGated == other.ToolGated && r.Server == other.Server && r.Result.equal(other.Result) &&
		r.Use.Equal(other.Use) && r.Grant.Equal(other.Grant) && r.Tasks == other.Tasks && r.Agent.equal(other.Agent) && slices.Equal(r.States, other.States) &&
		equalApproval(r.Approval, other.Approval) && r.Bind.Equal(other.Bind)
}

// MatchesSpec reports whether r has the content of s, a complete specification: its Use and
// Grant must not be nil.
func (r *Role) MatchesSpec(s RoleSpec) bool {
	return r.Name == s.Name && r.Description == s.Description && r.Prompt == s.Prompt && string(r.Model) == s.Model && r.Limits == s.Limits && r.hosts().Equal(ruleOrAny(s.Hosts)) &&
		r.Pattern == s.Pattern && r.ToolGated == deref(s.ToolGated) && r.Server == deref(s.Server) && r.Result.equal(s.Result.normalized()) &&
		r.Use.Equal(*s.Use) && r.Grant.Equal(*s.Grant) && equalApproval(r.Approval, s.Approval) && r.Bind.Equal(s.Bind)
}

// useLimit returns what the agents of r may use, as a constraint with the given reason.
func (r *Role) useLimit(reason string) constraint { return r.limit(r.Use, reason) }

// grantLimit returns what the agents of r may grant, as a constraint with the given reason.
// The constraint also passes on the hosts, the server, the bounds and the tool gate of r.
// They hold for every role that the agents create.
func (r *Role) grantLimit(reason string) constraint { return r.limit(r.Grant, reason) }

// Bound returns a set of r, which is its Use or its Grant. The result has the owners and the server
// that restrict r, and the bounds on arguments.
func (r *Role) Bound(set toolgroups.GroupSet) toolgroups.PinnedSet {
	b := toolgroups.PinnedSet{Set: set, Owners: r.GroupOwners, Bind: r.Bind}
	if r.Server != "" {
		b.Only = toolgroups.ServerOwner(r.Server)
	}
	return b
}

// limit returns the constraint of a set of r. A deleted or suspended role allows nothing. It
// stays tool-gated if it was, so that this does not free the agents that it limits.
func (r *Role) limit(set toolgroups.GroupSet, reason string) constraint {
	if r.Status != Active {
		return constraint{gating: r.ToolGated, reason: "role " + r.Name + " was deleted", role: r, approval: r.Approval}
	}
	if r.Suspended() {
		return constraint{gating: r.ToolGated, reason: "role " + r.Name + " is paused", role: r, suspended: true, approval: r.Approval}
	}
	c := constraint{PinnedSet: r.Bound(set), Hosts: r.hosts(), gating: r.ToolGated, reason: reason, role: r, approval: r.Approval}
	if c.Only != "" {
		c.serverReason = "the server " + r.Server + " of role " + r.Name
	}
	return c
}

// checkServer returns an error if the server of spec is not a valid module name.
func checkServer(spec RoleSpec) error {
	if spec.Server == nil || *spec.Server == "" {
		return nil
	}
	if err := tool.CheckName(*spec.Server); err != nil {
		return errcode.New(errcode.InvalidRole, "role %q: server: %s", spec.Name, strings.TrimPrefix(err.Error(), "tool "))
	}
	return nil
}

// deref returns *v, or the zero value if v is nil.
func deref[T any](v *T) (value T) {
	if v != nil {
		value = *v
	}
	return value
}
