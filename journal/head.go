package journal

import (
	"time"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// EventHead reads single fields of an encoded event without decoding it. It is valid
// while the encoded event is.
type EventHead struct {
	Seq     uint64
	encoded []byte
}

// NewEventHead returns the head of an event, encoded as MarshalJSON does.
func NewEventHead(seq uint64, encoded []byte) EventHead { return EventHead{seq, encoded} }

// text returns a field that is a string, "" if there is none.
func (h EventHead) text(field string) string { return gjson.GetBytes(h.encoded, field).Str }

// has reports whether a field is a text, without a copy of it: thousands of followers ask this
// for each event.
func (h EventHead) has(field, want string) bool {
	if len(h.encoded) == 0 {
		return want == ""
	}
	return gjson.Get(unsafe.String(unsafe.SliceData(h.encoded), len(h.encoded)), field).Str == want // not kept
}

// IsType reports whether the event has a type.
func (h EventHead) IsType(t EventType) bool { return h.has("type", string(t)) }

// IsCaller reports whether the event has a caller, as Caller returns it.
func (h EventHead) IsCaller(caller string) bool {
	return caller != "" && h.has("caller", caller) && h.isOfCaller()
}

// Type returns the type of the event.
func (h EventHead) Type() EventType { return EventType(h.text("type")) }

// Task returns the task that the event is about.
func (h EventHead) Task() identity.TaskID { return identity.TaskID(h.text("task")) }

// Agent returns the agent that the event is about.
func (h EventHead) Agent() identity.AgentID { return identity.AgentID(h.text("agent")) }

// Stream returns the journal that has the event.
func (h EventHead) Stream() identity.AgentID { return identity.AgentID(h.text("stream")) }

// Role returns the name of the role that the event is about.
func (h EventHead) Role() string { return h.text("role") }

// Tool returns the tool of a call, of its outcome, of a question, or of a change of a workflow state.
func (h EventHead) Tool() string {
	if !h.isOfCall() {
		return ""
	}
	return h.text("tool")
}

// Call returns the call of an event about a call, or about a request for its approval.
func (h EventHead) Call() identity.CallID { return identity.CallID(h.text("call")) }

// Approval returns the approval that a call has used or that was denied, or that an event about a
// request is about.
func (h EventHead) Approval() string { return h.text("approval") }

// Caller returns the principal that called, asked for a task in vain, or got a prompt, unless it is an
// agent.
func (h EventHead) Caller() string {
	if !h.isOfCaller() {
		return ""
	}
	return h.text("caller")
}

// IsDenied reports whether the event is the denial of a call or of a request for a task. The error of
// a call that asked for more permissions than its caller has counts too.
func (h EventHead) IsDenied() bool {
	switch h.Type() {
	case ToolCall{}.EventType(), TaskDenied{}.EventType():
		return h.text("decision") == Denied
	case ToolError{}.EventType():
		return h.text("code") == string(errcode.InsufficientPermissions)
	}
	return false
}

// At returns the time of the event; the zero time if it cannot be read.
func (h EventHead) At() time.Time {
	at, _ := time.Parse(time.RFC3339, h.text("at"))
	return at
}

// isOfCaller reports whether the event may have a caller.
func (h EventHead) isOfCaller() bool {
	return h.isOfCall() || h.IsType(TaskDenied{}.EventType()) || h.IsType(PromptGot{}.EventType())
}

// isOfCall reports whether the event is a call, its outcome, a question of its tool, or the change
// of a workflow state.
func (h EventHead) isOfCall() bool {
	return h.IsType(ToolCall{}.EventType()) || h.IsType(ToolResult{}.EventType()) || h.IsType(ToolError{}.EventType()) ||
		h.IsType(StateTransition{}.EventType()) || h.IsType(QuestionAsked{}.EventType()) || h.IsType(QuestionAnswered{}.EventType()) ||
		h.IsType(ApprovalRequested{}.EventType()) || h.IsType(ApprovalEscalated{}.EventType()) || h.IsType(ApprovalDecided{}.EventType())
}

// EventFilter reports whether an event is wanted.
type EventFilter func(EventHead) bool
