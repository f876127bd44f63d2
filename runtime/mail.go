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

// User is the recipient outside the organization, and its name as a sender.
const User = "user"

// Send implements builtin.Messages. An agent writes to those org.MayMessage
// says, to root and to user; the operator to every agent, as user. A message
// with a delay is delivered when it is due.
func (rt *Runtime) Send(ctx context.Context, c tool.Call, to string, payload json.RawMessage, delay time.Duration) (builtin.Sent, error) {
	c = identified(c)
	m := model.Message{ID: identity.Derive(string(c.ID), "message"), From: User, To: to, Payload: payload, CreatedAt: rt.now()}
	sent := builtin.Sent{MessageID: m.ID}
	var due time.Time
	if delay > 0 {
		due = m.CreatedAt.Add(delay)
		sent.Due = &due
	}
	if err := rt.address(c.By, &m); err != nil {
		return sent, err
	}
	if before, err := rt.sentBefore(ctx, c); before != nil || err != nil {
		sent.Due = dueOf(before)
		return sent, err
	}
	if rt.hold(m.Task) {
		defer rt.release(m.Task)
	}
	err := rt.change(c.By, func(b *journal.Batch) error {
		if err := rt.maySend(c.By, m.To); err != nil {
			return err
		}
		rt.send(b, c.By, m, due)
		return nil
	})
	return sent, err
}

// address completes sender, task and recipient; "root" is the task's root.
func (rt *Runtime) address(by identity.Principal, m *model.Message) error {
	if by.Kind != identity.Agent {
		a, ok := rt.org.Agent(identity.AgentID(m.To))
		if !ok {
			return errcode.New(errcode.UnknownRecipient, "send to %q: there is no such agent", m.To).With("to", m.To)
		}
		m.Task = a.Task
		return nil
	}
	sender, ok := rt.org.Agent(by.Agent)
	if !ok {
		return errcode.New(errcode.SenderTerminated, "send from agent %q: it is terminated", by.Agent).With("to", m.To)
	}
	m.From, m.Task = string(sender.ID), sender.Task
	if task, ok := rt.org.Task(sender.Task); ok && m.To == org.RootRole {
		m.To = string(task.Top)
	}
	return nil
}

// maySend is asked inside the commit.
func (rt *Runtime) maySend(by identity.Principal, to string) error {
	if by.Kind != identity.Agent {
		if _, ok := rt.org.Agent(identity.AgentID(to)); !ok {
			return errcode.New(errcode.UnknownRecipient, "send to %q: there is no such agent", to).With("to", to)
		}
		return nil
	}
	if to == User {
		return nil
	}
	return rt.org.MayMessage(by.Agent, identity.AgentID(to))
}

// send adds a message and its event to a batch. What is sent to a task that has
// ended is recorded and reaches nobody.
func (rt *Runtime) send(b *journal.Batch, by identity.Principal, m model.Message, due time.Time) {
	e := journal.MessageSent{Message: m}
	if !due.IsZero() {
		e.Due = due.Format(time.RFC3339Nano)
	}
	role := User
	if by.Kind == identity.Agent {
		a, _ := rt.org.Agent(by.Agent)
		role = rt.roleName(a)
	}
	b.Events = append(b.Events, journal.Event{At: m.CreatedAt, Task: m.Task, Agent: by.Agent, Role: role, Body: e})
	if task, ok := rt.org.Task(m.Task); ok && task.Status == org.Running && m.To != User {
		b.Post = append(b.Post, journal.Message{Message: m, Due: due})
		rt.note(m.Task)
	}
}

// sentBefore gives what a call that a former process had started did send,
// nil if it did not.
func (rt *Runtime) sentBefore(ctx context.Context, c tool.Call) (*journal.MessageSent, error) {
	rt.mu.Lock()
	a := rt.active[c.By.Agent]
	again := false
	if a != nil {
		_, again = a.redo[c.ID]
	}
	rt.mu.Unlock()
	if !again {
		return nil, nil
	}
	id := identity.Derive(string(c.ID), "message")
	for e, err := range rt.store.Read(ctx, c.By.Agent, 0) {
		if err != nil {
			return nil, err
		}
		if b, ok := e.Body.(journal.MessageSent); ok && b.Message.ID == id {
			return &b, nil
		}
	}
	return nil, nil
}

// dueOf gives when a message is due; nil when it was sent without delay.
func dueOf(m *journal.MessageSent) *time.Time {
	if m == nil || m.Due == "" {
		return nil
	}
	due, err := time.Parse(time.RFC3339Nano, m.Due)
	if err != nil {
		return nil
	}
	return &due
}
