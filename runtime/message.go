package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// User names the recipient outside the organization, and the operator as a
// sender.
const User = "user"

// maxSendBytes bounds the total payload bytes of the messages of one call.
const maxSendBytes = 8 << 20

// SendMessage sends one message. An agent may send to the agents that org.Org.MayMessage
// allows, to root and to the user, until Limits.Mail messages wait. The operator may send to every agent, as the
// user. A message with a delay is delivered when it is due. A repeated call
// sends nothing again.
//
// Errors:
//
//   - UnknownRecipient
//   - Conflict if the recipient's task has ended
//   - StorageLow
//   - InvalidArguments if there is too much to send
//   - InsufficientPermissions for other principals
//   - the errors of org.Org.MayMessage
func (rt *Runtime) SendMessage(ctx context.Context, c tool.Call, to string, payload json.RawMessage, delay time.Duration) (org.SendResult, error) {
	sent, err := rt.sendAll(ctx, c, []string{to}, payload, delay)
	if err != nil {
		return org.SendResult{}, err
	}
	return sent[0], nil
}

// sendAll sends a message to each recipient, as SendMessage does, in one commit. The
// results are in the order of to.
func (rt *Runtime) sendAll(ctx context.Context, c tool.Call, to []string, payload json.RawMessage, delay time.Duration) ([]org.SendResult, error) {
	c = withCallID(c)
	if c.By.Kind != identity.Agent { // an agent's call was admitted before
		hold := diskHold{guard: rt.disk}
		if err := hold.set(sendFactor * int64(len(to)) * int64(len(payload))); err != nil {
			return nil, err
		}
		defer hold.end()
	}
	m := model.Message{From: User, Payload: payload, CreatedAt: rt.now()}
	messages, sent, err := rt.buildMessages(c, m, to)
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
	return withDue(sent, due), rt.commitMessages(c.By, messages, due)
}

// commitMessages commits the messages, all or none.
func (rt *Runtime) commitMessages(by identity.Principal, messages []model.Message, due time.Time) error {
	for _, m := range messages {
		if run := rt.tracker.acquire(m.Task); run != nil {
			defer rt.releaseOrEnd(run)
		}
	}
	return rt.commitBy(by, func(b *journal.Batch) error {
		for _, m := range messages {
			if err := rt.checkSend(by, m); err != nil {
				return err
			}
		}
		for _, m := range messages {
			rt.addMessage(b, by, m, due)
		}
		return nil
	})
}

// buildMessages returns one copy of m per distinct recipient, and for each
// entry of to the id of the message sent to it.
func (rt *Runtime) buildMessages(c tool.Call, m model.Message, to []string) (messages []model.Message, sent []org.SendResult, err error) {
	known := map[string]string{}
	for i, name := range to {
		m.To = name
		if err := rt.setParties(c.By, &m); err != nil {
			return nil, nil, err
		}
		if known[m.To] == "" {
			m.ID = messageID(c.ID, i)
			known[m.To] = m.ID
			messages = append(messages, m)
		}
		sent = append(sent, org.SendResult{MessageID: known[m.To]})
	}
	if n := len(messages); n > 1 && n*len(m.Payload) > maxSendBytes {
		return nil, nil, errcode.New(errcode.InvalidArguments, "send %d bytes to %d agents: one call may send %d bytes in all; put the payload into an artifact and send its reference", len(m.Payload), n, maxSendBytes)
	}
	return messages, sent, nil
}

// messageID returns the id of the i-th message of a call.
func messageID(call identity.CallID, i int) string {
	if i == 0 {
		return identity.DeriveID(string(call), "message")
	}
	return identity.DeriveID(string(call), "message", strconv.Itoa(i))
}

// withDue sets the due time of messages, unless it is zero.
func withDue(sent []org.SendResult, due time.Time) []org.SendResult {
	for i := range sent {
		if !due.IsZero() {
			sent[i].Due = &due
		}
	}
	return sent
}

// setParties sets the sender, the task and the recipient of a message. The recipient "root" becomes
// the first agent of the task, and the name of an agent becomes its id.
func (rt *Runtime) setParties(by identity.Principal, m *model.Message) error {
	switch by.Kind {
	case identity.Operator:
		a, ok := rt.org.AgentByID(identity.AgentID(m.To))
		if !ok {
			return rt.noRecipientError(identity.AgentID(m.To))
		}
		m.Task = a.Task
		return nil
	case identity.Agent:
	default:
		return errcode.New(errcode.InsufficientPermissions, "send to %q: only agents and the operator send messages", m.To)
	}
	sender, ok := rt.org.AgentByID(by.Agent)
	if !ok {
		return errcode.New(errcode.SenderTerminated, "send from agent %q: it is terminated", by.Agent).With("to", m.To)
	}
	m.From, m.Task = string(sender.ID), sender.Task
	if task, ok := rt.org.TaskByID(sender.Task); ok && m.To == org.RootRole {
		m.To = string(task.Top)
	} else if m.To != User {
		m.To = string(rt.org.ResolveRecipient(sender.ID, m.To))
	}
	return nil
}

// noRecipientError returns the error for a recipient that is not active. Its task has ended, it is
// terminated, or it never existed.
func (rt *Runtime) noRecipientError(to identity.AgentID) error {
	a, err := rt.AgentRecord(rt.uncancelled, to)
	if err != nil {
		return unknownRecipient(string(to))
	}
	return cmp.Or(rt.checkReceives(a), error(errcode.New(errcode.UnknownRecipient, "send to %q: the agent is terminated", to).With("to", to)))
}

// checkReceives returns an error if the task of an agent ends or has ended, so that no
// agent would read a message to it.
func (rt *Runtime) checkReceives(a org.Agent) error {
	task, ok := rt.org.TaskByID(a.Task)
	switch {
	case !ok:
		return unknownRecipient(string(a.ID))
	case task.Status.Ended():
		return errcode.New(errcode.Conflict, "send to %q: its task %s has ended (%s); start a new task", a.ID, task.ID, task.Status).With("to", a.ID).With("task", task.ID)
	case rt.tracker.isEnding(task.ID):
		return errcode.New(errcode.Conflict, "send to %q: its task %s is about to end; start a new task", a.ID, task.ID).With("to", a.ID).With("task", task.ID)
	}
	return nil
}

func unknownRecipient(to string) error {
	return errcode.New(errcode.UnknownRecipient, "send to %q: agent not found", to).With("to", to)
}

// checkSend checks whether by may send a message, and whether the recipient has room for
// it. The operator's messages are never refused for lack of room. It is called within the
// commit.
func (rt *Runtime) checkSend(by identity.Principal, m model.Message) error {
	if by.Kind != identity.Agent {
		a, ok := rt.org.AgentByID(identity.AgentID(m.To))
		if !ok {
			return unknownRecipient(m.To)
		}
		return rt.checkReceives(a)
	}
	if m.To == User {
		return nil
	}
	if err := rt.org.MayMessage(by.Agent, identity.AgentID(m.To)); err != nil {
		return err
	}
	return rt.mail.checkRoom(m)
}

// addMessage adds a message and its event to a batch. One to the user is only recorded.
func (rt *Runtime) addMessage(b *journal.Batch, by identity.Principal, m model.Message, due time.Time) {
	role := User
	if by.Kind == identity.Agent {
		a, _ := rt.org.AgentByID(by.Agent)
		role = rt.roleName(a)
		m.FromRole, m.FromName = role, a.Name
	}
	e := journal.MessageSent{Message: m}
	if !due.IsZero() {
		e.Due = due.Format(time.RFC3339Nano)
	}
	b.Events = append(b.Events, journal.Event{At: m.CreatedAt, Task: m.Task, Agent: by.Agent, Role: role, Body: e})
	if m.To != User {
		b.Send = append(b.Send, journal.Message{Message: m, Due: due})
		rt.tracker.markNewMessages(m.Task)
	}
}

// previouslySent returns the message that a call has sent before a restart, or
// nil if it sent none.
func (rt *Runtime) previouslySent(ctx context.Context, c tool.Call) (*journal.MessageSent, error) {
	if !rt.tracker.isRecovered(c.By.Agent, c.ID) {
		return nil, nil
	}
	return rt.findSent(ctx, c)
}

// findSent finds the first message of a call in the caller's journal, or returns
// nil.
func (rt *Runtime) findSent(ctx context.Context, c tool.Call) (*journal.MessageSent, error) {
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

// dueOf returns when a message is due, or the zero time if it has no delay.
func dueOf(m *journal.MessageSent) time.Time {
	due, err := time.Parse(time.RFC3339Nano, m.Due)
	if err != nil {
		return time.Time{}
	}
	return due
}
