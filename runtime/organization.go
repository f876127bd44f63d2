package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// CreateRole creates a role on behalf of any principal. The call id may be
// empty if the principal is not an agent, as in SendMessage and TerminateAgent. A role of an
// operator that has rights may wait for people (approval.Oversight).
// Errors: the errors of org.Org.CreateRole and UseOperationApproval.
func (rt *Runtime) CreateRole(_ context.Context, c tool.Call, spec org.RoleSpec) (org.Role, error) {
	c = withCallID(c)
	id := identity.RoleID(identity.DeriveID(string(c.ID), "role"))
	var role org.Role
	var held error
	from := Requester{c.By, spec.Auth}
	err := rt.commitBy(c.By, func(b *journal.Batch) error {
		var changes []org.RecordChange
		granted, refused, err := rt.judgeRole(b, from, func() (heldRole, error) { return rt.planCreate(c.By, spec) })
		if held = refused; err != nil || held != nil {
			return err
		}
		if role, changes, err = rt.org.CreateRole(c.By, id, spec); err != nil || changes == nil {
			return err
		}
		rt.useApproval(b, from, granted)
		rt.addRoleChange(b, c.By, role, "created", nil, changes)
		return nil
	})
	return role, cmp.Or(err, held)
}

// withCallID sets the id of a call that has none.
func withCallID(c tool.Call) tool.Call {
	if c.ID == "" {
		c.ID = identity.CallID(identity.NewID())
	}
	return c
}

// UpdateRole changes a role and returns who gains and loses which tools.
// With dryRun it changes nothing. A change that adds rights may wait for
// people (approval.Oversight). Errors: the errors of org.Org.UpdateRole and
// UseOperationApproval.
func (rt *Runtime) UpdateRole(by identity.Principal, id identity.RoleID, spec org.RoleSpec, dryRun bool) (org.Role, org.PermissionDiff, error) {
	var role org.Role
	var diff org.PermissionDiff
	var held error
	var lost lostRequests
	from := Requester{by, spec.Auth}
	err := rt.commitBy(by, func(b *journal.Batch) error {
		var changes []org.RecordChange
		var granted Approval
		var err error
		if !dryRun {
			granted, held, err = rt.judgeRole(b, from, func() (heldRole, error) { return rt.planUpdate(by, id, spec) })
		}
		if err != nil || held != nil {
			return err
		}
		callable := rt.callableRequests(id)
		if role, diff, changes, err = rt.org.UpdateRole(by, id, spec, dryRun); err != nil || changes == nil {
			return err
		}
		rt.useApproval(b, from, granted)
		rt.addRoleChange(b, by, role, "updated", &diff, changes)
		lost = rt.voidLost(b, callable)
		return nil
	})
	rt.wakeLost(lost)
	return role, diff, cmp.Or(err, held)
}

// DeleteRole deletes a role and returns who loses which tools. With
// dryRun it changes nothing. Errors: the errors of org.Org.DeleteRole.
func (rt *Runtime) DeleteRole(by identity.Principal, id identity.RoleID, dryRun bool) (org.PermissionDiff, error) {
	var diff org.PermissionDiff
	var lost lostRequests
	err := rt.commitBy(by, func(b *journal.Batch) error {
		var changes []org.RecordChange
		var err error
		callable := rt.callableRequests(id)
		if diff, changes, err = rt.org.DeleteRole(by, id, dryRun); err != nil || changes == nil {
			return err
		}
		role, _ := rt.org.RoleByID(id)
		rt.addRoleChange(b, by, role, "deleted", &diff, changes)
		lost = rt.voidLost(b, callable)
		return nil
	})
	rt.wakeLost(lost)
	return diff, err
}

// addRoleChange adds a role change and its event to a batch.
func (rt *Runtime) addRoleChange(b *journal.Batch, by identity.Principal, role org.Role, change string, diff *org.PermissionDiff, changes []org.RecordChange) {
	record, _ := json.Marshal(role) // a role always marshals
	e := journal.RoleChanged{RoleID: role.ID, Change: change, By: by.String(), Record: record, Epoch: rt.org.CurrentEpoch()}
	if diff != nil {
		e.Diff, _ = json.Marshal(diff)
	}
	b.Events = append(b.Events, rt.eventBy(by, role.Name, e))
	b.Put = append(b.Put, storeRecords(changes)...)
	rt.voidOperations(b, "the role has changed", func(a *Approval) bool { return a.Operation == approval.RoleGain && a.Subject == string(role.ID) })
}

// eventBy returns an event about an action of a principal.
func (rt *Runtime) eventBy(by identity.Principal, role string, body journal.EventBody) journal.Event {
	e := journal.Event{At: rt.now(), Role: role, Body: body}
	if by.Kind == identity.Agent {
		if a, ok := rt.org.AgentByID(by.Agent); ok {
			e.Task, e.Agent = a.Task, a.ID
		}
	}
	return e
}

// commitBy commits an action of a principal in its name. The action of an active
// agent goes to the journal of the agent. The loop of the agent waits for the
// call meanwhile. Other actions go to the organization's stream.
func (rt *Runtime) commitBy(by identity.Principal, prepare func(*journal.Batch) error) error {
	b := &journal.Batch{Prepare: prepare}
	if by.Kind == identity.Agent {
		b.Stream = by.Agent
		b.Prepare = func(b *journal.Batch) error {
			if !rt.org.IsActive(by.Agent) {
				return errcode.New(errcode.AgentNotFound, "agent %q is terminated or its task has ended", by.Agent)
			}
			return prepare(b)
		}
	}
	rt.recorded.measure(b, by)
	_, err := rt.flushAndCommit(b)
	return err
}

// SpawnAgent creates an agent below the calling agent and, if first is not nil,
// sends it its first message in the same commit. The same commit takes the budget of the agent
// from the budget of its parent. A repeated call finds the agent that its first attempt
// created. Errors: the errors of org.SpawnSpec; budget_exceeded, with the detail left.
func (rt *Runtime) SpawnAgent(ctx context.Context, c tool.Call, s org.SpawnSpec, first json.RawMessage) (org.SpawnResult, error) {
	id := identity.AgentID(identity.DeriveID(string(c.ID), "agent"))
	out := org.SpawnResult{ID: id}
	if first != nil {
		out.MessageID = identity.DeriveID(string(c.ID), "message")
	}
	if old, err := rt.endedAgent(ctx, id); old != nil || err != nil {
		return rt.withRole(out, old), err // created by an earlier attempt of this call, and terminated since
	}
	if err := rt.prepareBudget(ctx, c.By.Agent, s); err != nil {
		return out, err
	}
	err := rt.commitBy(c.By, func(b *journal.Batch) error {
		budget := rt.budgetOf(c.By.Agent, s)
		undo, err := rt.takeBudget(c.By.Agent, id, budget)
		if err != nil {
			return err
		}
		agent, changes, err := rt.org.SpawnAgent(c.By.Agent, id, s)
		if err != nil {
			undo()
		}
		if out = rt.withRole(out, &agent); err != nil || changes == nil { // changes is nil if an earlier attempt created the agent
			return err
		}
		rt.tracker.nameBudget(agent)
		b.Put = append(b.Put, storeRecords(changes)...)
		b.Events = append(b.Events, journal.Event{At: agent.CreatedAt, Task: agent.Task, Agent: agent.ID, Role: rt.roleName(agent), Body: rt.spawnedEvent(agent, budget)})
		if first != nil {
			rt.addMessage(b, c.By, model.Message{
				ID: out.MessageID, From: string(c.By.Agent), To: string(id), Task: agent.Task, Payload: first, CreatedAt: agent.CreatedAt,
			}, time.Time{})
		}
		return nil
	})
	return out, err
}

// endedAgent returns the record of an agent that is terminated. It returns nil if there is no such
// agent.
func (rt *Runtime) endedAgent(ctx context.Context, id identity.AgentID) (*org.Agent, error) {
	if ended, err := rt.wasTerminated(ctx, id); !ended || err != nil {
		return nil, err
	}
	a, err := rt.AgentRecord(ctx, id)
	return &a, err
}

// withRole returns a result with the name and the role of the agent.
func (rt *Runtime) withRole(out org.SpawnResult, a *org.Agent) org.SpawnResult {
	if a != nil && a.Role != "" {
		out.Name, out.Role, out.RoleName = a.Name, a.Role, rt.roleName(*a)
	}
	return out
}

// spawnedEvent returns the event of a new agent.
func (rt *Runtime) spawnedEvent(a org.Agent, budget spawnBudget) journal.AgentSpawned {
	return journal.AgentSpawned{
		Name: a.Name, Parent: a.Parent, RoleID: a.Role, Tools: rt.gate.Subject(identity.ByAgent(a.ID)).ToolNames(),
		Budget: recordedBudget(budget.part), Most: recordedBudget(budget.most),
	}
}

// TerminateAgent terminates an agent and all its descendants. It does nothing if an
// earlier attempt of the same call did so. Errors: the errors of org.Org.TerminateAgent.
func (rt *Runtime) TerminateAgent(ctx context.Context, c tool.Call, target identity.AgentID, reason string) error {
	c = withCallID(c)
	if old, err := rt.AgentRecord(ctx, target); err == nil && old.Status == org.Terminated && old.EndedBy == c.ID {
		return nil // by an earlier attempt of this call
	}
	if a, ok := rt.org.AgentByID(target); ok {
		if run := rt.tracker.acquire(a.Task); run != nil {
			defer rt.releaseOrEnd(run)
		}
	}
	var ended []org.Termination
	err := rt.commitBy(c.By, func(b *journal.Batch) error {
		var changes []org.RecordChange
		var err error
		if ended, changes, err = rt.org.TerminateAgent(c.By, target, c.ID, reason, rt.storedAgent); err != nil {
			return err
		}
		b.Put = append(b.Put, storeRecords(changes)...)
		rt.recordTerminations(b, c.By, ended)
		return nil
	})
	gone := map[identity.AgentID]bool{}
	for _, t := range ended {
		gone[t.Agent] = true
		rt.tracker.cancelTurn(t.Agent, errTerminated)
		rt.tracker.evictAgent(t.Task, t.Agent)
	}
	if len(ended) > 0 {
		rt.tracker.dropDelayed(ended[0].Task, gone)
	}
	return err
}

// agentBelow returns the id of the agent below the caller that has a name. A repeated call
// finds the agent that its first attempt terminated. Any other text is returned as it is.
func (rt *Runtime) agentBelow(ctx context.Context, c tool.Call, target identity.AgentID) (identity.AgentID, error) {
	id := rt.org.ResolveBelow(c.By.Agent, target)
	if id != target || identity.IsID(string(id)) || !rt.tracker.isRecovered(c.By.Agent, c.ID) {
		return id, nil
	}
	for e, err := range rt.store.Read(ctx, c.By.Agent, 0) {
		if err != nil {
			return "", err
		}
		if _, ok := e.Body.(journal.AgentTerminated); !ok {
			continue
		}
		if a, err := rt.AgentRecord(ctx, e.Agent); err == nil && a.EndedBy == c.ID && a.Name == string(target) {
			return a.ID, nil
		}
	}
	return target, nil
}

// storedAgent returns the record of an agent. It is called within a commit.
func (rt *Runtime) storedAgent(id identity.AgentID) (org.Agent, bool) {
	a, err := rt.AgentRecord(rt.uncancelled, id)
	return a, err == nil
}

// recordTerminations adds the events of terminated agents to a batch and purges
// their inboxes.
func (rt *Runtime) recordTerminations(b *journal.Batch, by identity.Principal, ended []org.Termination) {
	for _, t := range ended {
		b.Purge = append(b.Purge, t.Agent)
		rt.voidApprovals(b, t.Task, "its agent was terminated", func(a *Approval) bool { return a.Agent == t.Agent })
		rt.voidStanding(b, "its agent was terminated", func(s *StandingApproval) bool { return s.Agent == t.Agent })
		b.Events = append(b.Events, rt.terminatedEvent(by, t))
		rt.tracker.endBudget(t.Task, t.Agent)
	}
}

// terminatedEvent returns the event of a terminated agent.
func (rt *Runtime) terminatedEvent(by identity.Principal, t org.Termination) journal.Event {
	return journal.Event{
		At: rt.now(), Task: t.Task, Agent: t.Agent, Role: rt.roleName(org.Agent{Role: t.Role}),
		Body: journal.AgentTerminated{By: by.String(), Parent: t.Parent, Reason: t.Reason},
	}
}

// AbortTurn cancels the turn of an active agent, including a tool call in progress.
// The agent's parent is not notified, and the agent waits for its next message.
//
// Errors: AgentNotFound, and Conflict if the agent is not active.
func (rt *Runtime) AbortTurn(id identity.AgentID) error {
	if _, ok := rt.org.AgentByID(id); !ok {
		return errcode.New(errcode.AgentNotFound, "abort agent %q: agent not found", id)
	}
	if !rt.tracker.cancelTurn(id, errAborted) {
		return errcode.New(errcode.Conflict, "abort agent %q: the agent is not active", id)
	}
	return nil
}
