package runtime

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// fail ends the turn with an error. The parent is notified; without a parent
// the task fails too. An aborted turn sends no notice.
func (a *actor) fail(cause error) error {
	if known, ok := errors.AsType[*errcode.Error](cause); !ok || known.Err != nil || known.Code == errcode.Internal { // the log gets details that peers do not see
		a.rt.log.Error("turn failed", "agent", a.agent.ID, "error", cause)
	}
	switch {
	case errcode.CodeOf(cause) == errcode.TurnAborted:
		return a.commit(a.failureBatch(cause))
	case a.agent.Parent != "":
		b := a.failureBatch(cause)
		a.report(b, a.errorPayload(cause), "error")
		return a.commit(b)
	}
	return a.failWithTask(cause)
}

// failureBatch returns a batch that ends the turn with an error.
func (a *actor) failureBatch(cause error) *journal.Batch {
	read := a.messagesRead(cause)
	failed := journal.TurnFailed{Code: errcode.CodeOf(cause), Message: errcode.Message(cause), MessagesRead: read}
	if e, ok := errors.AsType[*errcode.Error](cause); ok {
		repeated, _ := e.Details[repeatedDetail].(repeatedCalls)
		failed.Repeated, failed.Times = repeated.Calls, repeated.Times
	}
	return &journal.Batch{Idle: read == 0 || read >= a.state.messages, Events: []journal.Event{a.event(failed)}}
}

// failWithTask ends the agent's task together with its turn.
func (a *actor) failWithTask(cause error) error {
	b := a.failureBatch(cause)
	b.Idle = true
	task, err := a.rt.TaskRecord(a.rt.ctx, a.agent.Task)
	if err != nil {
		return err
	}
	b.Prepare = a.rt.prepareTaskEnd(&task, failedEnd(errcode.CodeOf(cause), errcode.Message(cause)))
	if err := a.commit(b); err != nil {
		return err
	}
	a.rt.tracker.end(task.ID, a.taskRun, &task)
	return errTerminated
}

// reportAnswer adds the message with a final answer. A text that is not whole says why.
func (a *actor) reportAnswer(b *journal.Batch, answer *model.Answer) {
	payload := answer.Value
	if payload == nil {
		payload = messagePayload{Text: answer.Text, Incomplete: answer.Stop}.encode()
	}
	a.report(b, payload, "end")
}

// report adds a message to the parent, or to the user if there is no parent.
func (a *actor) report(b *journal.Batch, payload []byte, kind string) {
	to := "user"
	if a.agent.Parent != "" {
		to = string(a.agent.Parent)
	}
	m := a.message(to, payload, kind)
	b.Events = append(b.Events, a.event(journal.MessageSent{Message: m}))
	if to != "user" {
		b.Send = append(b.Send, journal.Message{Message: m})
	}
}

// message builds a message of the current step. Its id is derived from the
// step, so a repeated step sends the same message.
func (a *actor) message(to string, payload []byte, kind string) model.Message {
	return model.Message{
		ID:   identity.DeriveID(string(a.agent.ID), strconv.Itoa(a.state.answers), kind),
		From: string(a.agent.ID), FromName: a.agent.Name, FromRole: a.rt.roleName(a.agent), To: to, Task: a.agent.Task, Payload: payload, CreatedAt: a.rt.now(),
	}
}

// messagesRead returns how many messages the model had read when it failed, if
// the error's detail "read" has that number (the script model sets it). It
// returns 0 if there is no such detail or if the turn read nothing new. 0 means
// all messages: otherwise the agent would fail on the same message forever.
func (a *actor) messagesRead(cause error) int {
	if e, ok := errors.AsType[*errcode.Error](cause); ok {
		if read, ok := e.Details["read"].(int); ok && read > a.state.readUpTo {
			return read
		}
	}
	return 0
}

// errorPayload returns the payload of the error message that a parent receives.
func (a *actor) errorPayload(cause error) []byte {
	var original string
	for _, item := range slices.Backward(a.state.items) {
		if item.Message != nil {
			original = item.Message.ID
			break
		}
	}
	payload, _ := json.Marshal(map[string]any{ // strings and times always marshal
		"kind": "error", "errorType": errcode.CodeOf(cause), "message": errcode.Message(cause),
		"agentId": a.agent.ID, "originalMessageId": original, "taskId": a.agent.Task, "timestamp": a.rt.now(),
	})
	return payload
}

// textPayload returns the message payload {"text": text}.
func textPayload(text string) json.RawMessage { return messagePayload{Text: text}.encode() }

// messagePayload is the payload of a message with a text.
type messagePayload struct {
	Text       string           `json:"text"`
	Incomplete model.StopReason `json:"incomplete,omitempty"` // why the text is not whole
	Input      json.RawMessage  `json:"input,omitempty"`      // a JSON object
	Files      []sharedFile     `json:"files,omitempty"`
	Images     []string         `json:"images,omitempty"` // references to the files that are images
}

func (p messagePayload) encode() json.RawMessage {
	payload, _ := json.Marshal(p) // strings and valid JSON always marshal
	return payload
}
