package org

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
)

// Agent is an instance of a role, in the form in which it is stored.
type Agent struct {
	ID        identity.AgentID `json:"id"`
	Role      identity.RoleID  `json:"roleId"`
	Parent    identity.AgentID `json:"parentAgentId,omitempty"`
	Task      identity.TaskID  `json:"taskId"`
	Root      bool             `json:"root,omitempty"` // the top agent of a task that names no role
	Name      string           `json:"name,omitempty"` // unique in its task, see agentName; records of old versions have none
	Brief     TaskBrief        `json:"taskBrief,omitzero"`
	Status    LifecycleStatus  `json:"status"`
	State     string           `json:"state,omitempty"` // workflow state; in a task of an external caller, that of the caller
	CreatedAt time.Time        `json:"createdAt"`
	EndedBy   identity.CallID  `json:"endedBy,omitempty"`
	Reason    string           `json:"reason,omitempty"`
}

// agentNode is an agent in memory, with the fields that decisions need. The siblings are
// a doubly linked list, so that an idle agent stays small and is removed in constant
// time.
type agentNode struct {
	id          identity.AgentID
	role        identity.RoleID
	task        identity.TaskID
	name        string
	parent      *agentNode
	firstChild  *agentNode // the youngest
	nextSibling *agentNode // older
	prevSibling *agentNode // younger
	scope       *scope
	nextInScope *agentNode // younger, see agentList
	prevInScope *agentNode // older
	state       string
	contacts    []identity.AgentID
	created     time.Time
	root        bool
	orphaned    bool // its record has an impossible parent or task: nothing is allowed
	listed      bool // in the list of its scope
}

// newNode returns the node of an agent, not yet attached to its parent. Ids of roles and
// tasks share the memory of the strings that o holds already.
func (o *Org) newNode(a *Agent) *agentNode {
	m := &agentNode{id: a.ID, role: a.Role, task: a.Task, name: a.Name, state: a.State, created: a.CreatedAt, root: a.Root}
	if role, ok := o.roles[a.Role]; ok {
		m.role = role.ID
	}
	if task, ok := o.tasks[a.Task]; ok {
		m.task = task.ID
	}
	for _, c := range a.Brief.Collaborators {
		m.contacts = append(m.contacts, c.Agent)
	}
	return m
}

// attach adds m to the children of parent.
func (m *agentNode) attach(parent *agentNode) {
	m.parent, m.nextSibling = parent, parent.firstChild
	if m.nextSibling != nil {
		m.nextSibling.prevSibling = m
	}
	parent.firstChild = m
}

// detach removes m from the children of its parent. m.parent stays set.
func (m *agentNode) detach() {
	switch {
	case m.prevSibling != nil:
		m.prevSibling.nextSibling = m.nextSibling
	case m.parent != nil:
		m.parent.firstChild = m.nextSibling
	}
	if m.nextSibling != nil {
		m.nextSibling.prevSibling = m.prevSibling
	}
	m.nextSibling, m.prevSibling = nil, nil
}

// agentOf returns m as an Agent, without its brief. It must be called with mu held.
func (o *Org) agentOf(m *agentNode) Agent {
	state, _ := o.stateOf(m)
	a := Agent{ID: m.id, Role: m.role, Task: m.task, Name: m.name, State: state, CreatedAt: m.created, Root: m.root, Status: Active}
	if m.parent != nil {
		a.Parent = m.parent.id
	}
	return a
}

// descendsFrom reports whether m is a descendant of ancestor.
func (m *agentNode) descendsFrom(ancestor *agentNode) bool {
	for p := m.parent; p != nil; p = p.parent {
		if p == ancestor {
			return true
		}
	}
	return false
}

// subtree returns m and its descendants, children before parents. It is not recursive,
// because a tree may be a million levels deep.
func (m *agentNode) subtree() []*agentNode {
	var list []*agentNode
	for left := []*agentNode{m}; len(left) > 0; {
		last := len(left) - 1
		at := left[last]
		list, left = append(list, at), left[:last]
		for c := at.firstChild; c != nil; c = c.nextSibling {
			left = append(left, c)
		}
	}
	slices.Reverse(list)
	return list
}

// SpawnSpec specifies an agent to spawn.
type SpawnSpec struct {
	Role   identity.RoleID // or the exact name of a role that exists for the parent
	Brief  TaskBrief
	Budget ModelAllowance // of the agent and the agents below it, taken from the parent's budget; a zero field shares that budget
}

// SpawnAgent creates an agent below parent with the given id. If there is an agent with this
// id already, SpawnAgent returns it and no Changes. The Use and Grant of the role must be
// within what the parent may grant. The parent must be allowed to message all collaborators
// of the brief.
//
// Errors have the codes AgentNotFound (the parent), RoleNotFound, InsufficientPermissions,
// InvalidTaskBrief and LimitExceeded. For a collaborator they have the codes of MayMessage.
func (o *Org) SpawnAgent(parent identity.AgentID, id identity.AgentID, s SpawnSpec) (Agent, []RecordChange, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m, ok := o.agents[id]; ok {
		return o.agentOf(m), nil, nil
	}
	p, ok := o.agents[parent]
	if !ok {
		return Agent{}, nil, notFound(errcode.AgentNotFound, "agent", string(parent))
	}
	s.Brief.Collaborators = o.resolveCollaborators(p, s.Brief.Collaborators)
	role, err := o.roleToSpawn(p, s)
	if err = cmp.Or(err, o.checkAgentLimits(p)); err != nil {
		return Agent{}, nil, err
	}
	agent := Agent{
		ID: id, Role: role.ID, Parent: parent, Task: p.task, Name: o.newAgentName(identity.ByAgent(p.id), p.task, role.Name), Brief: s.Brief,
		Status: Active, State: o.initialState(p.task), CreatedAt: o.config.Now().UTC(),
	}
	return agent, o.addAgent(&agent, p), nil
}

// SpawnLimit returns what an agent of a role may use at most if parent spawns it. It is zero if
// the role sets no limit or does not exist for parent; SpawnAgent rejects the latter.
func (o *Org) SpawnLimit(parent identity.AgentID, role identity.RoleID) ModelAllowance {
	o.mu.RLock()
	defer o.mu.RUnlock()
	r, err := o.findActiveRole(identity.ByAgent(parent), string(role))
	if err != nil {
		return ModelAllowance{}
	}
	return r.Limits.Budget
}

// roleToSpawn returns the role of s, or an error if p may not spawn s. It must be called
// with mu held.
func (o *Org) roleToSpawn(p *agentNode, s SpawnSpec) (*Role, error) {
	role, err := o.findActiveRole(identity.ByAgent(p.id), string(s.Role))
	if err != nil {
		return nil, errcode.New(errcode.RoleNotFound, "spawn an agent of role %q: there is no role with this id or name, or it was deleted; create_role makes one; %s", s.Role, o.spawnableHint(p)).With("roleId", s.Role)
	}
	return role, cmp.Or(s.Brief.Check(), o.checkSpawns(o.grantorFor(p, role), role), o.checkCollaborators(p, s.Brief))
}

// checkSpawns returns an error if g, which grantorFor returned, may not spawn agents of a
// role. The error does not name groups that g does not have.
func (o *Org) checkSpawns(g grantor, role *Role) error {
	if role.Suspended() {
		return errSuspended("spawn an agent of", role)
	}
	if !o.covers(g, role) {
		return errcode.New(errcode.InsufficientPermissions, "spawn an agent of role %q: it has more permissions than you may grant; create a role with fewer tool groups", role.Name)
	}
	if role.isDeclared() {
		return nil
	}
	return o.checkCreates(g, "spawn an agent of", role.Name)
}

// checkCollaborators returns an error if p may not message a collaborator of a brief.
func (o *Org) checkCollaborators(p *agentNode, b TaskBrief) error {
	for _, c := range b.Collaborators {
		if c.Agent == p.id || c.Agent == RootRole || c.Agent == "user" { // every agent may message these
			continue
		}
		if err := o.mayMessage(p, c.Agent); err != nil {
			return rephrase(err, "name collaborator %q: you may not message it yourself (%s); remove it from collaborators", c.Agent, errcode.Message(err))
		}
	}
	return nil
}

// rephrase returns err with another message, which says what was attempted. The code and
// the details stay.
func rephrase(err error, format string, args ...any) error {
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok {
		return err
	}
	other := *e
	other.Message = fmt.Sprintf(format, args...)
	return &other
}

// addAgent adds an agent to the organization. A nil parent is for the top agent of a
// task. It must be called with mu held.
func (o *Org) addAgent(a *Agent, parent *agentNode) []RecordChange {
	m := o.newNode(a)
	if parent != nil {
		m.attach(parent)
	}
	o.setScope(m)
	o.agents[m.id] = m
	o.countAgent(m.task, 1)
	return []RecordChange{newRecord(KindAgent, string(a.ID), a)}
}

// AgentByID returns an agent that is not terminated, without its brief.
func (o *Org) AgentByID(id identity.AgentID) (Agent, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m, ok := o.agents[id]
	if !ok {
		return Agent{}, false
	}
	return o.agentOf(m), true
}

// IsActive reports whether an agent is not terminated and its task has not ended.
func (o *Org) IsActive(id identity.AgentID) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m, ok := o.agents[id]
	if !ok {
		return false
	}
	task, ok := o.tasks[m.task]
	return ok && !task.Status.Ended()
}

// ListAgents returns the agents of a task that are not terminated, without briefs, oldest
// first. If task is empty, it returns the agents of all tasks.
func (o *Org) ListAgents(task identity.TaskID) []Agent {
	o.mu.RLock()
	defer o.mu.RUnlock()
	var list []Agent
	for _, m := range o.agents {
		if task == "" || m.task == task {
			list = append(list, o.agentOf(m))
		}
	}
	slices.SortFunc(list, func(a, b Agent) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// AgentsOfTasks returns the agents of some tasks that are not terminated, without briefs,
// in no particular order.
func (o *Org) AgentsOfTasks(tasks map[identity.TaskID]bool) []Agent {
	o.mu.RLock()
	defer o.mu.RUnlock()
	var list []Agent
	for _, m := range o.agents {
		if tasks[m.task] {
			list = append(list, o.agentOf(m))
		}
	}
	return list
}

// AgentTree returns an agent and its descendants, children before parents. It returns nil if
// there is no such agent.
func (o *Org) AgentTree(id identity.AgentID) []identity.AgentID {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m, ok := o.agents[id]
	if !ok {
		return nil
	}
	var list []identity.AgentID
	for _, d := range m.subtree() {
		list = append(list, d.id)
	}
	return list
}

// TopAncestor returns the agent whose workspace an agent shares. It is the agent itself
// or one of its ancestors. It is directly below root, or it is the top agent of a task
// without root. It reports false for root and for unknown agents.
func (o *Org) TopAncestor(id identity.AgentID) (identity.AgentID, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m, ok := o.agents[id]
	if !ok || m.root {
		return "", false
	}
	for m.parent != nil && !m.parent.root {
		m = m.parent
	}
	return m.id, true
}

// SetState sets the workflow state of an agent. In a task of an external caller this is
// the state of the caller. stored is the record of the agent, which contains what is not
// in memory. The error has the code AgentNotFound.
func (o *Org) SetState(id identity.AgentID, state string, stored Agent) ([]RecordChange, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m, ok := o.agents[id]
	if !ok {
		return nil, notFound(errcode.AgentNotFound, "agent", string(id))
	}
	if t, ok := o.tasks[m.task]; ok {
		if caller, external := t.ExternalCaller(); external {
			return o.setCallerState(caller, state), nil
		}
	}
	m.state = state
	stored.State = state
	return []RecordChange{newRecord(KindAgent, string(id), stored)}, nil
}

// Termination describes an agent that was terminated.
type Termination struct {
	Agent  identity.AgentID
	Role   identity.RoleID
	Task   identity.TaskID
	Parent identity.AgentID
	Reason string
}

// TerminateAgent terminates an agent and its descendants, children before parents, in time
// proportional to their number. An agent may terminate its own descendants, the operator
// any agent but the top agent of a task. call and reason are recorded. stored returns the
// record of an agent.
//
// Errors have the codes AgentNotFound and NotChildAgent.
func (o *Org) TerminateAgent(by identity.Principal, target identity.AgentID, call identity.CallID, reason string, stored func(identity.AgentID) (Agent, bool)) ([]Termination, []RecordChange, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m, err := o.agentToTerminate(by, target)
	if err != nil {
		return nil, nil, err
	}
	m.detach()
	list, changes := o.terminate(m.subtree(), call, func(d *agentNode) string {
		if d != m {
			return "parent terminated (cascade)"
		}
		return reason
	}, stored)
	return list, changes, nil
}

// TerminateBelow terminates the descendants of an agent, children before parents. It does
// nothing for an unknown agent. stored returns the record of an agent.
func (o *Org) TerminateBelow(id identity.AgentID, reason string, stored func(identity.AgentID) (Agent, bool)) ([]Termination, []RecordChange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m, ok := o.agents[id]
	if !ok {
		return nil, nil
	}
	below := m.subtree()
	m.firstChild = nil
	return o.terminate(below[:len(below)-1], "", func(*agentNode) string { return reason }, stored) // the last is m
}

// terminate removes agents that are detached from the tree. It must be called with mu held.
func (o *Org) terminate(agents []*agentNode, call identity.CallID, reason func(*agentNode) string, stored func(identity.AgentID) (Agent, bool)) (list []Termination, changes []RecordChange) {
	for _, d := range agents {
		why := reason(d)
		t := Termination{Agent: d.id, Role: d.role, Task: d.task, Reason: why}
		if d.parent != nil {
			t.Parent = d.parent.id
		}
		list = append(list, t)
		changes = append(changes, o.retireName(d)...)
		changes = append(changes, RecordChange{Kind: KindAgent, Key: string(d.id)}, o.endedRecord(d, call, why, stored))
		d.scope.agents.remove(d)
		delete(o.agents, d.id)
		o.countAgent(d.task, -1)
	}
	return list, changes
}

// endedRecord returns the record of m as a terminated agent. If the active record cannot
// be read, it is rebuilt from memory without the brief.
func (o *Org) endedRecord(m *agentNode, call identity.CallID, reason string, stored func(identity.AgentID) (Agent, bool)) RecordChange {
	a, ok := stored(m.id)
	if !ok {
		a = o.agentOf(m)
	}
	state, _ := o.stateOf(m)
	a.Status, a.State, a.EndedBy, a.Reason = Terminated, state, call, reason
	return newRecord(KindTerminated, string(m.id), a)
}

// agentToTerminate returns the node of target if by may terminate it. It must be called with
// mu held.
func (o *Org) agentToTerminate(by identity.Principal, target identity.AgentID) (*agentNode, error) {
	m, ok := o.agents[target]
	if !ok {
		return nil, errcode.New(errcode.AgentNotFound, "terminate agent %q: there is no agent with this id or name, or it has ended already%s", target, o.hiredHint(by)).With("agentId", target)
	}
	refused := errcode.New(errcode.NotChildAgent, "terminate agent %q: only its ancestors may; you may terminate the agents that you spawned and their descendants", target).With("agentId", target)
	switch by.Kind {
	case identity.Operator:
		if m.parent == nil && o.tasks[m.task].Status.Ended() {
			return nil, errcode.New(errcode.Conflict, "terminate agent %q: its task %s has ended", target, m.task).With("agentId", target)
		}
		if m.parent == nil {
			return nil, errcode.New(errcode.NotChildAgent, "terminate agent %q: it is the top agent of its task; cancel task %s instead", target, m.task).With("agentId", target)
		}
		return m, nil
	case identity.Agent:
		if caller, ok := o.agents[by.Agent]; ok && m.descendsFrom(caller) {
			return m, nil
		}
	}
	return nil, refused
}

// MayMessage returns an error if an agent may not send messages to another one. It may
// message its descendants, its parent, the top agent of its task, and the collaborators
// of its brief that belong to the same task.
//
// Errors have the codes SenderTerminated, UnknownRecipient, CrossTask and
// InsufficientPermissions.
func (o *Org) MayMessage(from, to identity.AgentID) error {
	o.mu.RLock()
	defer o.mu.RUnlock()
	sender, ok := o.agents[from]
	if !ok {
		return errcode.New(errcode.SenderTerminated, "send from agent %q: it is terminated", from)
	}
	return o.mayMessage(sender, to)
}

// isTopAgent reports whether m is the top agent of its task.
func (o *Org) isTopAgent(m *agentNode) bool {
	t, ok := o.tasks[m.task]
	return ok && t.Top == m.id
}

// mayMessage is MayMessage for a sender that exists. It must be called with mu held.
func (o *Org) mayMessage(from *agentNode, to identity.AgentID) error {
	m, ok := o.agents[to]
	switch {
	case !ok:
		return errcode.New(errcode.UnknownRecipient, "send to %q: there is no agent with this id or name that you may message, or it has ended; you may message %s", to, textutil.ListNames(o.recipientNames(from))).With("to", to)
	case m.task != from.task:
		return errcode.New(errcode.CrossTask, "send to %q: it belongs to another task; send to agents of your own task", to).With("from", from.id).With("to", to)
	case m == from.parent || o.isTopAgent(m) || m.descendsFrom(from) || slices.Contains(from.contacts, to):
		return nil
	}
	return errcode.New(errcode.InsufficientPermissions, "send to %q: an agent may message its parent, its descendants, root, user and the collaborators of its brief; ask root or your parent to forward the message", to).With("to", to)
}
