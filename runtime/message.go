package runtime

import (
	"context"
	"encoding/json"
	"strconv"
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

// maxSendBytes bounds the bytes of one call's messages together.
const maxSendBytes = 8 << 20

// Send is SendAll to one recipient.
func (rt *Runtime) Send(ctx context.Context, c tool.Call, to string, payload json.RawMessage, delay time.Duration) (builtin.Sent, error) {
	sent, err := rt.SendAll(ctx, c, []string{to}, payload, delay)
	if err != nil {
		return builtin.Sent{}, err
	}
	return sent[0], nil
}

// SendAll implements builtin.Messages. An agent writes to those org.MayMessage
// says, to root and to user; the operator to every agent, as user. A message
// with a delay is delivered when it is due.
func (rt *Runtime) SendAll(ctx context.Context, c tool.Call, to []string, payload json.RawMessage, delay time.Duration) ([]builtin.Sent, error) {
	c = withCallID(c)
	m := model.Message{From: User, Payload: payload, CreatedAt: rt.now()}
	letters, sent, err := rt.buildMessages(c, m, to)
	if err != nil {
		return nil, err
	}
	var due time.Time
	if delay > 0 {
		due = m.CreatedAt.Add(delay)
	}
	before, err := rt.previouslySent(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case before != nil:
		return withDue(sent, dueOf(before)), nil
	}
	return withDue(sent, due), rt.post(c.By, letters, due)
}

// post commits letters, all or none.
func (rt *Runtime) post(by identity.Principal, letters []model.Message, due time.Time) error {
	for _, m := range letters {
		if rt.hold(m.Task) {
			defer rt.release(m.Task)
		}
	}
	return rt.change(by, func(b *journal.Batch) error {
		for _, m := range letters {
			if err := rt.maySend(by, m.To); err != nil {
				return err
			}
		}
		for _, m := range letters {
			rt.send(b, by, m, due)
		}
		return nil
	})
}

// buildMessages makes a letter of m for everybody in to, and says which letter each
// is sent. Of somebody named twice there is one.
func (rt *Runtime) buildMessages(c tool.Call, m model.Message, to []string) (letters []model.Message, sent []builtin.Sent, err error) {
	known := map[string]string{}
	for i, name := range to {
		m.To = name
		if err := rt.resolveRecipient(c.By, &m); err != nil {
			return nil, nil, err
		}
		if known[m.To] == "" {
			m.ID = messageID(c.ID, i)
			known[m.To] = m.ID
			letters = append(letters, m)
		}
		sent = append(sent, builtin.Sent{MessageID: known[m.To]})
	}
	if n := len(letters); n > 1 && n*len(m.Payload) > maxSendBytes {
		return nil, nil, errcode.New(errcode.InvalidArguments, "send %d bytes to %d agents: one call may send %d bytes in all; put the payload into an artifact and send its reference", len(m.Payload), n, maxSendBytes)
	}
	return letters, sent, nil
}

// messageID gives the id of the i-th letter of a call.
func messageID(call identity.CallID, i int) string {
	if i == 0 {
		return identity.Derive(string(call), "message")
	}
	return identity.Derive(string(call), "message", strconv.Itoa(i))
}

// withDue says when messages are due; those without delay are not dated.
func withDue(sent []builtin.Sent, due time.Time) []builtin.Sent {
	for i := range sent {
		if !due.IsZero() {
			sent[i].Due = &due
		}
	}
	return sent
}

// resolveRecipient completes sender, task and recipient; "root" is the task's root.
func (rt *Runtime) resolveRecipient(by identity.Principal, m *model.Message) error {
	if by.Kind != identity.Agent {
		a, ok := rt.org.Agent(identity.AgentID(m.To))
		if !ok {
			return unknownRecipient(m.To)
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

func unknownRecipient(to string) error {
	return errcode.New(errcode.UnknownRecipient, "send to %q: there is no such agent", to).With("to", to)
}

// maySend is asked inside the commit.
func (rt *Runtime) maySend(by identity.Principal, to string) error {
	if by.Kind != identity.Agent {
		if _, ok := rt.org.Agent(identity.AgentID(to)); !ok {
			return unknownRecipient(to)
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
		b.Send = append(b.Send, journal.Message{Message: m, Due: due})
		rt.markMailed(m.Task)
	}
}

// previouslySent gives what a call that a former process had started did send,
// nil if it did not.
func (rt *Runtime) previouslySent(ctx context.Context, c tool.Call) (*journal.MessageSent, error) {
	rt.mu.Lock()
	a := rt.active[c.By.Agent]
	again := false
	if a != nil {
		_, again = a.recovered[c.ID]
	}
	rt.mu.Unlock()
	if !again {
		return nil, nil
	}
	return rt.sentIn(ctx, c)
}

// sentIn reads from the caller's journal what a call did send.
func (rt *Runtime) sentIn(ctx context.Context, c tool.Call) (*journal.MessageSent, error) {
	id := messageID(c.ID, 0)
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

// dueOf gives when a message is due; zero when it was sent without delay.
func dueOf(m *journal.MessageSent) time.Time {
	due, err := time.Parse(time.RFC3339Nano, m.Due)
	if err != nil {
		return time.Time{}
	}
	return due
}
