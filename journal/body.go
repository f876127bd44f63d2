package journal

import (
	"encoding/json"
	"fmt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
)

// Type names a kind of event; the values are the contract's.
type Type string

// Body is what an event of one type says. The set of bodies is closed.
type Body interface {
	Type() Type
	body()
}

// TaskStarted: a task was given to the organization.
type TaskStarted struct {
	Text   string   `json:"text"`
	Caller string   `json:"caller"`
	Groups []string `json:"groups,omitzero"` // the narrowing; nil is none
	State  string   `json:"state,omitempty"`
}

// AgentSpawned: an agent was made.
type AgentSpawned struct {
	Parent identity.AgentID `json:"parent,omitempty"`
	RoleID identity.RoleID  `json:"roleId"`
	Tools  []string         `json:"tools"` // visible at its start
}

// AgentTerminated: an agent was ended.
type AgentTerminated struct {
	By     string           `json:"by"`
	Parent identity.AgentID `json:"parent,omitempty"`
	Reason string           `json:"reason,omitempty"`
}

// MessageSent: somebody wrote to somebody.
type MessageSent struct {
	Message model.Message `json:"message"`
	Due     string        `json:"due,omitempty"` // RFC 3339, of a delayed one
}

// MessageReceived: an agent took a message into its journal. It is for the
// agent's own replay and shown to nobody.
type MessageReceived struct {
	Message model.Message `json:"message"`
}

// ModelAnswered: the model of an agent answered.
type ModelAnswered struct {
	Answer model.Answer `json:"answer"`
}

// ModelDelta: a piece of an answer that is coming. It is shown to who watches
// at that moment and never stored.
type ModelDelta struct {
	Text    string `json:"text,omitempty"`
	Tool    string `json:"tool,omitempty"`  // a call of this tool begins
	Args    string `json:"args,omitempty"`  // a piece of that call's arguments
	Restart bool   `json:"again,omitempty"` // the answer is begun anew: what came so far is void
	Note    string `json:"note,omitempty"`  // what the model is waiting for
}

// ToolCall: a call was decided; if it was allowed, it has started.
type ToolCall struct {
	Call     identity.CallID `json:"call"`
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"args,omitempty"`
	Group    string          `json:"group,omitempty"`
	Decision string          `json:"decision"` // allowed or denied
	Code     errcode.Code    `json:"code,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Rule     string          `json:"rule,omitempty"` // of the View, when that denied: a toolgroups.Rule
	Epoch    uint64          `json:"epoch"`
	Effect   tool.Effect     `json:"effect,omitzero"`  // of the tool when the call started; absent is Mutating
	Caller   string          `json:"caller,omitempty"` // who called, if it was no agent: an identity.Principal
}

// The decisions of a ToolCall.
const (
	Allowed = "allowed"
	Denied  = "denied"
)

// ToolResult: a call ended well.
type ToolResult struct {
	Call   identity.CallID `json:"call"`
	Tool   string          `json:"tool"`
	Result json.RawMessage `json:"result"`
	Caller string          `json:"caller,omitempty"` // as in ToolCall
}

// ToolError: a call was denied or failed.
type ToolError struct {
	Call   identity.CallID `json:"call"`
	Tool   string          `json:"tool"`
	Code   errcode.Code    `json:"code"`
	Result json.RawMessage `json:"result"`           // as the model reads it
	Caller string          `json:"caller,omitempty"` // as in ToolCall
}

// StateTransition: a successful call moved the workflow state of an agent, or
// of a caller from outside in its role.
type StateTransition struct {
	Tool   string `json:"tool"` // "" when the operator moved it
	From   string `json:"from"`
	To     string `json:"to"`
	Caller string `json:"caller,omitempty"` // as in ToolCall
}

// RoleChanged: a role was created, changed or deleted.
type RoleChanged struct {
	RoleID identity.RoleID `json:"roleId"`
	Change string          `json:"change"` // created, updated, deleted
	By     string          `json:"by"`
	Record json.RawMessage `json:"record"`         // the role as it is now
	Diff   json.RawMessage `json:"diff,omitempty"` // org.Diff
	Epoch  uint64          `json:"epoch"`
}

// GroupRegistered: a tool group was registered or replaced while running.
type GroupRegistered struct {
	Group string   `json:"group"`
	Owner string   `json:"owner"`
	Tools []string `json:"tools"`
	Epoch uint64   `json:"epoch"`
}

// GroupUnregistered: a tool group is gone.
type GroupUnregistered struct {
	Group string `json:"group"`
	Owner string `json:"owner"`
	Epoch uint64 `json:"epoch"`
}

// ContextCompressed: from now on the first Items of the conversation are sent
// to the model as Summary.
type ContextCompressed struct {
	Call    identity.CallID `json:"call,omitempty"` // that asked for it
	Summary string          `json:"summary"`
	Items   int             `json:"items"`
	Usage   model.Usage     `json:"usage,omitzero"` // of the request for the summary, when the runtime made it
}

// Failed: an agent's turn ended in an error. Messages after the first Read
// were not read in it; zero says that all were.
type Failed struct {
	Code         errcode.Code `json:"code"`
	Message      string       `json:"message"`
	MessagesRead int          `json:"read,omitempty"`
}

// Result: a task ended.
type Result struct {
	Status string          `json:"status"` // done, failed, cancelled
	Result json.RawMessage `json:"result,omitempty"`
	Code   errcode.Code    `json:"code,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// The types of events, each beside its body.
func (TaskStarted) Type() Type       { return "task_started" }
func (AgentSpawned) Type() Type      { return "agent_spawned" }
func (AgentTerminated) Type() Type   { return "agent_terminated" }
func (MessageSent) Type() Type       { return "message" }
func (MessageReceived) Type() Type   { return "message_taken" }
func (ModelAnswered) Type() Type     { return "model_answered" }
func (ModelDelta) Type() Type        { return "model_delta" }
func (ToolCall) Type() Type          { return "tool_call" }
func (ToolResult) Type() Type        { return "tool_result" }
func (ToolError) Type() Type         { return "tool_error" }
func (StateTransition) Type() Type   { return "state_transition" }
func (RoleChanged) Type() Type       { return "role_changed" }
func (GroupRegistered) Type() Type   { return "group_registered" }
func (GroupUnregistered) Type() Type { return "group_unregistered" }
func (ContextCompressed) Type() Type { return "context_compressed" }
func (Failed) Type() Type            { return "error" }
func (Result) Type() Type            { return "result" }

func (TaskStarted) body()       {}
func (AgentSpawned) body()      {}
func (AgentTerminated) body()   {}
func (MessageSent) body()       {}
func (MessageReceived) body()   {}
func (ModelAnswered) body()     {}
func (ModelDelta) body()        {}
func (ToolCall) body()          {}
func (ToolResult) body()        {}
func (ToolError) body()         {}
func (StateTransition) body()   {}
func (RoleChanged) body()       {}
func (GroupRegistered) body()   {}
func (GroupUnregistered) body() {}
func (ContextCompressed) body() {}
func (Failed) body()            {}
func (Result) body()            {}

// Public says whether an event is shown outside its agent's journal.
func Public(b Body) bool {
	_, internal := b.(MessageReceived)
	return !internal
}

// decodeBody reads the body of a type from an event's flat object.
func decodeBody(t Type, data []byte) (Body, error) {
	for _, decode := range decoders {
		if b, err := decode(t, data); b != nil || err != nil {
			return b, err
		}
	}
	return nil, fmt.Errorf("event type %q is not known here", t)
}

var decoders = []func(Type, []byte) (Body, error){
	decoder[TaskStarted], decoder[AgentSpawned], decoder[AgentTerminated], decoder[MessageSent],
	decoder[MessageReceived], decoder[ModelAnswered], decoder[ModelDelta], decoder[ToolCall], decoder[ToolResult],
	decoder[ToolError], decoder[StateTransition], decoder[RoleChanged], decoder[GroupRegistered],
	decoder[GroupUnregistered], decoder[ContextCompressed], decoder[Failed], decoder[Result],
}

func decoder[B Body](t Type, data []byte) (Body, error) {
	var b B
	if b.Type() != t {
		return nil, nil
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, fmt.Errorf("event of type %q: %w", t, err)
	}
	return b, nil
}
