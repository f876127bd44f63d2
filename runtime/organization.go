package runtime

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// What the built-in tools need.
var (
	_ builtin.Roles      = (*Runtime)(nil)
	_ builtin.Agents     = (*Runtime)(nil)
	_ builtin.Messages   = (*Runtime)(nil)
	_ builtin.Artifacts  = (*Runtime)(nil)
	_ builtin.Workspaces = (*Runtime)(nil)
	_ builtin.Contexts   = (*Runtime)(nil)
	_ builtin.Console    = (*Runtime)(nil)
)

// FindRole implements builtin.Roles.
func (rt *Runtime) FindRole(_ context.Context, _ tool.Call, name string) (*org.Role, error) {
	role, ok := rt.org.RoleNamed(name)
	if !ok {
		return nil, nil
	}
	return &role, nil
}

// CreateRole implements builtin.Roles. Any principal may be the call's; the
// id of a call that no agent makes may be left out, here as in Send and
// Terminate. Errors: those of org.CreateRole.
func (rt *Runtime) CreateRole(_ context.Context, c tool.Call, spec org.RoleSpec) (org.Role, error) {
	c = withCallID(c)
	id := identity.RoleID(identity.Derive(string(c.ID), "role"))
	if c.By.Kind == identity.Configuration {
		id = identity.RoleID(identity.Derive("config role", spec.Name))
	}
	var role org.Role
	err := rt.change(c.By, func(b *journal.Batch) error {
		var changes []org.Change
		var err error
		if role, changes, err = rt.org.CreateRole(c.By, id, spec); err != nil || changes == nil {
			return err
		}
		rt.roleChanged(b, c.By, role, "created", nil, changes)
		return nil
	})
	return role, err
}

// withCallID gives a call that no agent makes an id of its own.
func withCallID(c tool.Call) tool.Call {
	if c.ID == "" {
		c.ID = identity.CallID(identity.NewID())
	}
	return c
}

// UpdateRole changes a role and says who gains or loses what; with dryRun it
// only says so. Errors: those of org.UpdateRole.
func (rt *Runtime) UpdateRole(by identity.Principal, id identity.RoleID, spec org.RoleSpec, dryRun bool) (org.Role, org.Diff, error) {
	var role org.Role
	var diff org.Diff
	err := rt.change(by, func(b *journal.Batch) error {
		var changes []org.Change
		var err error
		if role, diff, changes, err = rt.org.UpdateRole(by, id, spec, dryRun); err != nil || changes == nil {
			return err
		}
		rt.roleChanged(b, by, role, "updated", diff, changes)
		return nil
	})
	return role, diff, err
}

// DeleteRole takes a role out of use. Errors: those of org.DeleteRole.
func (rt *Runtime) DeleteRole(by identity.Principal, id identity.RoleID, dryRun bool) (org.Diff, error) {
	var diff org.Diff
	err := rt.change(by, func(b *journal.Batch) error {
		var changes []org.Change
		var err error
		if diff, changes, err = rt.org.DeleteRole(by, id, dryRun); err != nil || changes == nil {
			return err
		}
		role, _ := rt.org.Role(id)
		rt.roleChanged(b, by, role, "deleted", diff, changes)
		return nil
	})
	return diff, err
}

// roleChanged adds a change of a role and its event.
func (rt *Runtime) roleChanged(b *journal.Batch, by identity.Principal, role org.Role, change string, diff org.Diff, changes []org.Change) {
	record, _ := json.Marshal(role) // a role always marshals
	e := journal.RoleChanged{RoleID: role.ID, Change: change, By: by.String(), Record: record, Epoch: rt.org.Epoch()}
	if diff != nil {
		e.Diff, _ = json.Marshal(diff)
	}
	b.Events = append(b.Events, rt.eventBy(by, role.Name, e))
	b.Put = append(b.Put, records(changes)...)
}

// eventBy makes an event of what a principal did.
func (rt *Runtime) eventBy(by identity.Principal, role string, body journal.Body) journal.Event {
	e := journal.Event{At: rt.now(), Role: role, Body: body}
	if by.Kind == identity.Agent {
		if a, ok := rt.org.Agent(by.Agent); ok {
			e.Task, e.Agent = a.Task, a.ID
		}
	}
	return e
}

// change commits what a principal does, in its own name: to the journal of
// the agent that calls a tool, if it is still there, else to the
// organization's. An agent's own loop waits for the call meanwhile.
func (rt *Runtime) change(by identity.Principal, prepare func(*journal.Batch) error) error {
	b := &journal.Batch{Prepare: prepare}
	if by.Kind == identity.Agent {
		b.Stream = by.Agent
		b.Prepare = func(b *journal.Batch) error {
			if !rt.org.Active(by.Agent) {
				return errcode.New(errcode.AgentNotFound, "agent %q is terminated, or its task has ended", by.Agent)
			}
			return prepare(b)
		}
	}
	_, err := rt.flushAndCommit(b)
	return err
}

// Spawn implements builtin.Agents.
func (rt *Runtime) Spawn(ctx context.Context, c tool.Call, s org.Spawn, first json.RawMessage) (builtin.Spawned, error) {
	id := identity.AgentID(identity.Derive(string(c.ID), "agent"))
	out := builtin.Spawned{ID: id, Role: s.Role}
	if first != nil {
		out.MessageID = identity.Derive(string(c.ID), "message")
	}
	if role, ok := rt.org.Role(s.Role); ok {
		out.RoleName = role.Name
	}
	if ended, err := rt.hasEnded(ctx, id); ended || err != nil {
		return out, err // made by an earlier try of this call, and ended since
	}
	err := rt.change(c.By, func(b *journal.Batch) error {
		agent, changes, err := rt.org.Spawn(c.By.Agent, id, s)
		if err != nil || changes == nil { // made by an earlier try
			return err
		}
		b.Put = append(b.Put, records(changes)...)
		b.Events = append(b.Events, journal.Event{At: agent.CreatedAt, Task: agent.Task, Agent: agent.ID, Role: rt.roleName(agent), Body: rt.spawned(agent)})
		if first != nil {
			rt.send(b, c.By, model.Message{
				ID: out.MessageID, From: string(c.By.Agent), To: string(id), Task: agent.Task, Payload: first, CreatedAt: agent.CreatedAt,
			}, time.Time{})
		}
		return nil
	})
	return out, err
}

func (rt *Runtime) spawned(a org.Agent) journal.AgentSpawned {
	return journal.AgentSpawned{Parent: a.Parent, RoleID: a.Role, Tools: rt.gate.Subject(identity.ByAgent(a.ID)).ToolNames()}
}

// Terminate implements builtin.Agents: it ends an agent and everything below.
func (rt *Runtime) Terminate(ctx context.Context, c tool.Call, target identity.AgentID, reason string) error {
	c = withCallID(c)
	if old, err := rt.AgentRecord(ctx, target); err == nil && old.Status == org.Terminated && old.EndedBy == c.ID {
		return nil // by an earlier try of this call
	}
	record := func(id identity.AgentID) (org.Agent, bool) {
		a, err := rt.AgentRecord(rt.uncancelled, id) // within the commit
		return a, err == nil
	}
	if a, ok := rt.org.Agent(target); ok && rt.hold(a.Task) {
		defer rt.release(a.Task)
	}
	var ended []org.Termination
	err := rt.change(c.By, func(b *journal.Batch) error {
		var changes []org.Change
		var err error
		if ended, changes, err = rt.org.Terminate(c.By, target, c.ID, reason, record); err != nil {
			return err
		}
		b.Put = append(b.Put, records(changes)...)
		rt.recordTerminations(b, c.By, ended)
		return nil
	})
	gone := map[identity.AgentID]bool{}
	for _, t := range ended {
		gone[t.Agent] = true
		rt.interrupt(t.Agent, errTerminated)
		rt.evictAgent(t.Task, t.Agent)
	}
	if len(ended) > 0 {
		rt.dropDelayed(ended[0].Task, gone)
	}
	return err
}

// recordTerminations adds the end of agents to a batch, with the mail that waited for them.
func (rt *Runtime) recordTerminations(b *journal.Batch, by identity.Principal, ended []org.Termination) {
	for _, t := range ended {
		b.Purge = append(b.Purge, t.Agent)
		b.Events = append(b.Events, rt.terminated(by, t))
	}
}

func (rt *Runtime) terminated(by identity.Principal, t org.Termination) journal.Event {
	return journal.Event{
		At: rt.now(), Task: t.Task, Agent: t.Agent, Role: rt.roleName(org.Agent{Role: t.Role}),
		Body: journal.AgentTerminated{By: by.String(), Parent: t.Parent, Reason: t.Reason},
	}
}

// Abort ends the turn of an agent that is at work: the call in flight is
// cancelled, nobody is told, and the agent waits for its next message.
//
// Errors: AgentNotFound, Conflict when it is not at work.
func (rt *Runtime) Abort(id identity.AgentID) error {
	if _, ok := rt.org.Agent(id); !ok {
		return errcode.New(errcode.AgentNotFound, "abort agent %q: there is no such agent", id)
	}
	if !rt.interrupt(id, errAborted) {
		return errcode.New(errcode.Conflict, "abort agent %q: it is not at work", id)
	}
	return nil
}

// Busy says whether an agent is at work.
func (rt *Runtime) Busy(id identity.AgentID) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.active[id] != nil
}
