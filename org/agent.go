package org

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// Agent is an instance of a role, as it is stored.
type Agent struct {
	ID        identity.AgentID `json:"id"`
	Role      identity.RoleID  `json:"roleId"`
	Parent    identity.AgentID `json:"parentAgentId,omitempty"`
	Task      identity.TaskID  `json:"taskId"`
	Root      bool             `json:"root,omitempty"` // the agent a task starts with, unless the task names a role
	Brief     TaskBrief        `json:"taskBrief,omitzero"`
	Status    Status           `json:"status"`
	State     string           `json:"state,omitempty"` // workflow state
	CreatedAt time.Time        `json:"createdAt"`
	EndedBy   identity.CallID  `json:"endedBy,omitempty"`
	Reason    string           `json:"reason,omitempty"`
}

// agentNode is an agent in memory: what decisions need, no more.
type agentNode struct {
	id       identity.AgentID
	role     identity.RoleID
	task     identity.TaskID
	parent   *agentNode
	children *agentNode // the youngest child
	next     *agentNode // the next older sibling
	younger  *agentNode // the next younger one
	slot     *scope
	state    string
	contacts []identity.AgentID
	created  time.Time
	root     bool
	orphaned bool // its record claims a place it cannot have: nothing is allowed
}

// newMember makes an agent's member. Of ids that many share it keeps the one
// text there is.
func (o *Org) newMember(a *Agent) *agentNode {
	m := &agentNode{id: a.ID, role: a.Role, task: a.Task, state: a.State, created: a.CreatedAt, root: a.Root}
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

func (m *agentNode) attach(parent *agentNode) {
	m.parent, m.next = parent, parent.children
	if m.next != nil {
		m.next.younger = m
	}
	parent.children = m
}

// detach takes an agent out of its parent's children. It still knows whose it was.
func (m *agentNode) detach() {
	switch {
	case m.younger != nil:
		m.younger.next = m.next
	case m.parent != nil:
		m.parent.children = m.next
	}
	if m.next != nil {
		m.next.younger = m.younger
	}
	m.next, m.younger = nil, nil
}

func (m *agentNode) agent() Agent {
	a := Agent{ID: m.id, Role: m.role, Task: m.task, State: m.state, CreatedAt: m.created, Root: m.root, Status: Active}
	if m.parent != nil {
		a.Parent = m.parent.id
	}
	return a
}

// descendants says whether m is a descendant of ancestor.
func (m *agentNode) descendants(ancestor *agentNode) bool {
	for p := m.parent; p != nil; p = p.parent {
		if p == ancestor {
			return true
		}
	}
	return false
}

// tree lists m and everything below it, children before parents. It may be a
// million deep.
func (m *agentNode) tree() []*agentNode {
	var list []*agentNode
	for left := []*agentNode{m}; len(left) > 0; {
		last := len(left) - 1
		at := left[last]
		list, left = append(list, at), left[:last]
		for c := at.children; c != nil; c = c.next {
			left = append(left, c)
		}
	}
	slices.Reverse(list)
	return list
}

// Spawn asks for an agent.
type Spawn struct {
	Role  identity.RoleID
	Brief TaskBrief
}

// Spawn makes an agent below parent, under the given id; the same id again
// gives the agent it made. The role's use and grant must be covered by what
// the parent may grant.
//
// Errors: AgentNotFound, RoleNotFound, InsufficientPermissions,
// InvalidTaskBrief, UnknownRecipient for a collaborator the parent may not
// message itself.
func (o *Org) Spawn(parent identity.AgentID, id identity.AgentID, s Spawn) (Agent, []Change, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m, ok := o.agents[id]; ok {
		return m.agent(), nil, nil
	}
	p, ok := o.agents[parent]
	if !ok {
		return Agent{}, nil, notFound(errcode.AgentNotFound, "agent", string(parent))
	}
	if err := o.maySpawn(p, s); err != nil {
		return Agent{}, nil, err
	}
	agent := Agent{
		ID: id, Role: s.Role, Parent: parent, Task: p.task, Brief: s.Brief,
		Status: Active, State: o.initialState(p.task), CreatedAt: o.config.Now().UTC(),
	}
	return agent, o.addAgent(&agent, p), nil
}

func (o *Org) maySpawn(p *agentNode, s Spawn) error {
	role, ok := o.roles[s.Role]
	if !ok || role.Status != Active {
		return o.noRole(s.Role)
	}
	if err := s.Brief.Check(); err != nil {
		return err
	}
	if err := o.grantorOf(p).checkGrant(role.Name, role.Use, role.Grant); err != nil {
		return rephrase(err, "spawn an agent of role %q: it has more than you may give (%s); create a role with fewer tool groups", role.Name, errcode.Message(err))
	}
	for _, c := range s.Brief.Collaborators {
		if c.Agent == p.id || c.Agent == RootRole || c.Agent == "user" { // everybody may
			continue
		}
		if err := o.mayMessage(p, c.Agent); err != nil {
			return rephrase(err, "name collaborator %q: you may not write to it yourself (%s); leave it out of collaborators", c.Agent, errcode.Message(err))
		}
	}
	return nil
}

// rephrase gives a refusal in the words of what was attempted.
func rephrase(err error, format string, args ...any) error {
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok {
		return err
	}
	other := *e
	other.Message = fmt.Sprintf(format, args...)
	return &other
}

// noRole says that there is no active role of an id; names are taken for ids
// often enough to be told apart.
func (o *Org) noRole(id identity.RoleID) error {
	if r, ok := o.rolesByName[string(id)]; ok {
		return errcode.New(errcode.RoleNotFound, "spawn an agent of role %q: that is a role's name; its id is %s", id, r.ID).With("roleId", id)
	}
	return errcode.New(errcode.RoleNotFound, "spawn an agent of role %q: there is no role of this id, or it was deleted; take the id that create_role or find_role_by_name answers", id).With("roleId", id)
}

func (o *Org) addAgent(a *Agent, parent *agentNode) []Change {
	m := o.newMember(a)
	if parent != nil {
		m.attach(parent)
	}
	m.slot = o.scopeOf(m)
	o.agents[m.id] = m
	return []Change{record(KindAgent, string(a.ID), a)}
}

// Agent gives an agent that is not terminated, without its brief.
func (o *Org) Agent(id identity.AgentID) (Agent, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m, ok := o.agents[id]
	if !ok {
		return Agent{}, false
	}
	return m.agent(), true
}

// Active says whether an agent is in being and its task is not over.
func (o *Org) Active(id identity.AgentID) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m, ok := o.agents[id]
	if !ok {
		return false
	}
	task, ok := o.tasks[m.task]
	return ok && task.Status == Running
}

// Agents lists the agents of a task, or of all tasks for "", without briefs,
// sorted by age.
func (o *Org) Agents(task identity.TaskID) []Agent {
	o.mu.RLock()
	defer o.mu.RUnlock()
	var list []Agent
	for _, m := range o.agents {
		if task == "" || m.task == task {
			list = append(list, m.agent())
		}
	}
	slices.SortFunc(list, func(a, b Agent) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// Tree lists an agent and everything below it, children before parents; nobody
// when there is no such agent.
func (o *Org) Tree(id identity.AgentID) []identity.AgentID {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m, ok := o.agents[id]
	if !ok {
		return nil
	}
	var list []identity.AgentID
	for _, d := range m.tree() {
		list = append(list, d.id)
	}
	return list
}

// TopAncestor gives the ancestor of an agent, or itself, that stands directly below
// root, or that its task started with: the one whose workspace it shares.
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

// SetState sets an agent's workflow state; stored is its record, to be rewritten.
func (o *Org) SetState(id identity.AgentID, state string, stored Agent) ([]Change, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m, ok := o.agents[id]
	if !ok {
		return nil, notFound(errcode.AgentNotFound, "agent", string(id))
	}
	m.state = state
	stored.State = state
	return []Change{record(KindAgent, string(id), stored)}, nil
}

// Termination says which agent was ended, and why.
type Termination struct {
	Agent  identity.AgentID
	Role   identity.RoleID
	Task   identity.TaskID
	Parent identity.AgentID
	Reason string
}

// Terminate ends an agent and everything below it, children before parents,
// in time proportional to their number. An agent ends its own descendants,
// the operator any agent but a root. stored gives an agent's record.
//
// Errors: AgentNotFound, NotChildAgent.
func (o *Org) Terminate(by identity.Principal, target identity.AgentID, call identity.CallID, reason string, stored func(identity.AgentID) (Agent, bool)) ([]Termination, []Change, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m, err := o.mayTerminate(by, target)
	if err != nil {
		return nil, nil, err
	}
	var list []Termination
	var changes []Change
	m.detach()
	for _, d := range m.tree() {
		why := reason
		if d != m {
			why = "parent terminated (cascade)"
		}
		t := Termination{Agent: d.id, Role: d.role, Task: d.task, Reason: why}
		if d.parent != nil {
			t.Parent = d.parent.id
		}
		list = append(list, t)
		changes = append(changes, Change{Kind: KindAgent, Key: string(d.id)}, d.end(call, why, stored))
		delete(o.agents, d.id)
	}
	return list, changes, nil
}

func (m *agentNode) end(call identity.CallID, reason string, stored func(identity.AgentID) (Agent, bool)) Change {
	a, ok := stored(m.id)
	if !ok {
		a = m.agent()
	}
	a.Status, a.State, a.EndedBy, a.Reason = Terminated, m.state, call, reason
	return record(KindTerminated, string(m.id), a)
}

func (o *Org) mayTerminate(by identity.Principal, target identity.AgentID) (*agentNode, error) {
	m, ok := o.agents[target]
	if !ok {
		return nil, errcode.New(errcode.AgentNotFound, "terminate agent %q: there is no agent of this id, or it has ended already", target).With("agentId", target)
	}
	refused := errcode.New(errcode.NotChildAgent, "terminate agent %q: only an agent above it may; you may end those you spawned and those below them", target).With("agentId", target)
	switch by.Kind {
	case identity.Operator:
		if m.parent == nil {
			return nil, errcode.New(errcode.NotChildAgent, "terminate agent %q: its task stands on it; cancel task %s instead", target, m.task).With("agentId", target)
		}
		return m, nil
	case identity.Agent:
		if caller, ok := o.agents[by.Agent]; ok && m.descendants(caller) {
			return m, nil
		}
	}
	return nil, refused
}

// MayMessage says whether an agent may write to another: its descendants, its
// parent, the collaborators its brief names in the same task, and the agent
// its task stands on: root, or that of the role the task is bound to.
//
// Errors: UnknownRecipient, CrossTask, InsufficientPermissions.
func (o *Org) MayMessage(from, to identity.AgentID) error {
	o.mu.RLock()
	defer o.mu.RUnlock()
	sender, ok := o.agents[from]
	if !ok {
		return errcode.New(errcode.SenderTerminated, "send from agent %q: it is terminated", from)
	}
	return o.mayMessage(sender, to)
}

// isTopAgent says whether a task stands on an agent.
func (o *Org) isTopAgent(m *agentNode) bool {
	t, ok := o.tasks[m.task]
	return ok && t.Top == m.id
}

func (o *Org) mayMessage(from *agentNode, to identity.AgentID) error {
	m, ok := o.agents[to]
	switch {
	case !ok:
		return errcode.New(errcode.UnknownRecipient, "send to %q: there is no agent of this id, or it has ended; give the id that spawn_agent answered, root or user", to).With("to", to)
	case m.task != from.task:
		return errcode.New(errcode.CrossTask, "send to %q: it works on another task; write to agents of your own", to).With("from", from.id).With("to", to)
	case m == from.parent || o.isTopAgent(m) || m.descendants(from) || slices.Contains(from.contacts, to):
		return nil
	}
	return errcode.New(errcode.InsufficientPermissions, "send to %q: an agent writes to its parent, the agents below it, root, user and the collaborators of its brief; ask root or your parent to pass it on", to).With("to", to)
}
