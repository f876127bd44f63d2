package org

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// AskSettings lets callers in a role ask the role's agents (TaskSpec.Ask).
type AskSettings struct {
	// DefaultGroups narrows a request that names no groups. Nil stands for the group named
	// default, which has the declared tools that name no group.
	DefaultGroups *toolgroups.GroupSet `json:"defaultGroups,omitempty"`
}

// Limits of the states that a role lists.
const (
	maxRoleStates = 100
	maxStateName  = tool.MaxName // bytes
)

// groupsOrDefault returns the default groups of requests.
func (a *AskSettings) groupsOrDefault() toolgroups.GroupSet {
	if a == nil || a.DefaultGroups == nil {
		return toolgroups.SetOf(toolgroups.DefaultGroup)
	}
	return *a.DefaultGroups
}

// statesOr returns the states of a specification, or the states of the role that it changes.
func (s RoleSpec) statesOr(old []string) []string {
	if s.States == nil {
		return old
	}
	return s.States
}

// equal reports whether a and other are the same settings. Nil and {} differ.
func (a *AskSettings) equal(other *AskSettings) bool {
	if a == nil || other == nil {
		return a == other
	}
	return (a.DefaultGroups == nil) == (other.DefaultGroups == nil) && a.groupsOrDefault().Equal(other.groupsOrDefault())
}

// checkRequestFields checks the fields agent and states of a role.
func checkRequestFields(creator grantor, spec RoleSpec) error {
	declares := creator.createdBy == CreatorOperator || creator.createdBy == CreatorConfig
	switch {
	case spec.Agent != nil && !declares:
		return errcode.New(errcode.InvalidRole, "role %q: only roles of the operator have the field agent", spec.Name).With("field", "agent")
	case len(spec.States) > 0 && !declares:
		return errcode.New(errcode.InvalidRole, "role %q: only roles of the operator have states", spec.Name).With("field", "states")
	case len(spec.States) > maxRoleStates:
		return errcode.New(errcode.InvalidRole, "role %q: it has %d states; at most %d are allowed", spec.Name, len(spec.States), maxRoleStates).With("field", "states")
	}
	for _, state := range spec.States {
		if problem := StateProblem(state); problem != "" {
			return errcode.New(errcode.InvalidRole, "role %q: state %.200q %s", spec.Name, state, problem).With("field", "states")
		}
	}
	if spec.Agent == nil {
		return nil
	}
	for _, id := range spec.Agent.groupsOrDefault().GroupIDs() {
		if err := toolgroups.CheckListedID(id); err != nil {
			return errcode.New(errcode.InvalidRole, "role %q: agent.defaultGroups: %s", spec.Name, errcode.Message(err)).With("field", "agent")
		}
	}
	return nil
}

// StateProblem returns why a text cannot be a workflow state of a request, "" if it can.
func StateProblem(state string) string {
	switch {
	case state == "" || len(state) > maxStateName:
		return "must have 1 to 128 bytes"
	case state == "*":
		return "stands for every state; name one"
	case !utf8.ValidString(state) || strings.ContainsFunc(state, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "must be UTF-8 without control characters"
	}
	return ""
}

// checkMayAsk returns an error if a request to an agent is not allowed. A trigger may ask agents
// of its role. It must be called with mu held.
func (o *Org) checkMayAsk(s TaskSpec) error {
	if s.Trigger != nil || o.mayAskOthers(s.Caller) { // the document of the trigger allows it; see checkTrigger
		return nil
	}
	return o.checkMayAskOwn(s)
}

// mayAskOthers reports whether a sender may ask agents of other roles than its own: the operator
// may, and so may a caller that may start tasks. It computes the tools of the caller. It must be
// called with mu held.
func (o *Org) mayAskOthers(p identity.Principal) bool {
	return p.Kind != identity.Caller || o.mayStartTasksAs(o.config.Groups.CurrentSnapshot(), o.lookupRole, p)
}

// checkMayAskOwn is checkMayAsk for a caller that may not ask agents of other roles. It may ask
// agents of its own role if the role has the field agent. It must be called with mu held.
func (o *Org) checkMayAskOwn(s TaskSpec) error {
	own := o.roles[s.Caller.Role]
	switch {
	case own == nil || own.Agent == nil:
		return errcode.New(errcode.InsufficientPermissions, "ask an agent: the caller's role has no field agent, and may start no tasks")
	case s.Role != own.Name && s.Role != string(own.ID): // it does not exist for the caller
		return notFound(errcode.RoleNotFound, "role", s.Role)
	}
	return nil
}

// defaultAskGroups is for a request that names no groups. It returns the default groups of the
// asked role, without those that the sender may not use or does not know. A group that the default
// has only through a group with hours is left out. The task would keep the group when the hours
// end.
func (o *Org) defaultAskGroups(m grantor, ceiling toolgroups.GroupSet, s TaskSpec) (toolgroups.GroupSet, error) {
	role, err := o.findActiveRole(s.Caller, s.Role)
	if err != nil {
		return toolgroups.GroupSet{}, err
	}
	byDefault := o.pinOwners(role.Agent.groupsOrDefault())
	set := o.registry().IntersectSets(byDefault, o.pinOwners(ceiling))
	if set.IsAll() {
		return set, nil
	}
	unknown := o.unknownTo(m, set)
	return withoutGroups(set, func(id toolgroups.GroupID) bool {
		return slices.Contains(unknown, id) || !o.registry().CoversAlways(byDefault, id)
	}), nil
}

// DefaultGroups returns the groups of a request that names none. They are the default
// groups of the role that it asks, or all groups if it asks no agent. They are not limited
// to what the sender may use. It returns nil if the request names groups. It also returns nil
// if the role is another than the sender's own and the sender may not ask it.
func (o *Org) DefaultGroups(s TaskSpec) *toolgroups.GroupSet {
	groups := toolgroups.AllGroups()
	switch {
	case s.Groups != nil:
		return nil
	case !s.Ask:
		return &groups
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	role, err := o.findActiveRole(s.Caller, s.Role)
	if err != nil || role.ID != s.Caller.Role && !o.mayAskOther(s, role) {
		return nil
	}
	groups = role.Agent.groupsOrDefault()
	return &groups
}

// mayAskOther reports whether the sender of a request may ask agents of a role that is not its own.
// It must be called with mu held.
func (o *Org) mayAskOther(s TaskSpec, role *Role) bool {
	m, err := o.taskGrantor(s.Caller)
	return err == nil && o.checkMayAsk(s) == nil && o.covers(m, role)
}

// checkOffersTools returns an error if a request that names no groups leaves its agent without
// tools, although its role has some for the sender. It must be called with mu held.
func (o *Org) checkOffersTools(task *Task, agent *Agent, s TaskSpec) error {
	if !s.Ask || s.Groups != nil {
		return nil
	}
	snapshot := o.config.Groups.CurrentSnapshot()
	view := func(bounds []constraint) *toolgroups.View {
		return (&scope{role: agent.Role, bounds: bounds, caller: task.CallerRole}).compile(snapshot, o.lookupRole)
	}
	if len(view(task.bounds()).ToolNames()) > 0 {
		return nil
	}
	whole := *task
	whole.Groups = toolgroups.PinnedSet{Set: toolgroups.AllGroups()}
	mayName := task.Ceiling
	if role := o.roles[agent.Role]; mayName.Set.IsAll() {
		mayName = toolgroups.PinnedSet{Set: role.Use, Owners: role.GroupOwners}
	}
	groups := o.groupsWith(snapshot, mayName, view(whole.bounds()).ToolNames())
	if len(groups) == 0 {
		return nil
	}
	role := o.roles[agent.Role]
	return errcode.New(errcode.NoToolsAvailable, "ask an agent of role %q: the request names no groups, and none of the role's tools is in %v; name groups of the role, such as %q",
		role.Name, role.Agent.groupsOrDefault(), groups[0]).With("groups", groups)
}

// groupsWith returns the groups of a set that have one of these tools, sorted.
func (o *Org) groupsWith(snapshot *toolgroups.Snapshot, set toolgroups.PinnedSet, tools []string) (ids []toolgroups.GroupID) {
	for _, id := range snapshot.GroupIDs() {
		part, ok := toolgroups.WholeOrRead(id, func(part toolgroups.GroupID) bool { return snapshot.CoversGroup(set, part) })
		if ok && slices.ContainsFunc(tools, func(name string) bool { return snapshot.InGroups(name, part) }) {
			ids = append(ids, part)
		}
	}
	slices.Sort(ids)
	return ids
}

// startState is the workflow state in which a task begins.
type startState struct {
	state  string // in which the agents of an operator's task begin; "" for an external caller's
	caller string // to record for an external caller; "" for none
}

// newStartState returns the workflow state in which the agents of a new task begin. An external
// caller may begin in a state of the list of its role, while none is on record for it. It must
// be called with mu held.
func (o *Org) newStartState(s TaskSpec) (startState, error) {
	switch {
	case s.Caller.Kind != identity.Caller && s.State == toolgroups.UndefinedState:
		return startState{}, nil
	case s.Caller.Kind != identity.Caller:
		return startState{state: s.State}, nil
	}
	now, ok := o.callers.stateOf(s.Caller)
	switch {
	case !ok && s.State != "":
		return startState{}, errcode.New(errcode.InsufficientPermissions, "begin in state %.200q: the caller's workflow state is lost; the operator can reset it", s.State)
	case s.State == "", s.State == now, now == "" && s.State == toolgroups.UndefinedState:
		return startState{}, nil
	case now != "":
		return startState{}, errcode.New(errcode.Conflict, "begin in state %.200q: the caller is in state %q; leave the state out, or name that one", s.State, now).With("state", now)
	case !slices.Contains(o.roles[s.Caller.Role].States, s.State):
		return startState{}, errcode.New(errcode.InsufficientPermissions, "begin in state %.200q: the caller's role lists no such state", s.State).With("field", "state")
	}
	return startState{caller: s.State}, nil
}

// setStartState sets the state in which an external caller begins and returns its record; nil
// if the state stays.
func (o *Org) setStartState(s TaskSpec, b startState) []RecordChange {
	if b.caller == "" {
		return nil
	}
	return o.setCallerState(s.Caller, b.caller)
}

// AskableRoles returns the active roles whose agents a sender may ask (TaskSpec.Ask), sorted by
// name. For the operator these are all active roles. For a caller they are its own role, if it
// has the field agent or may start tasks, and the roles that its tasks may have.
func (o *Org) AskableRoles(by identity.Principal) (list []Role) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m, err := o.taskGrantor(by)
	if err != nil {
		return nil
	}
	others := o.mayAskOthers(by)
	for _, r := range o.sortedRoles() {
		if r.Suspended() || !o.mayFind(by, r) || !others && o.checkMayAskOwn(TaskSpec{Caller: by, Role: string(r.ID)}) != nil {
			continue
		}
		if o.covers(m, r) || by.Kind == identity.Caller && r.ID == by.Role {
			list = append(list, *r)
		}
	}
	return list
}
