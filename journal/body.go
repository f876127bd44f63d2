package journal

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
)

// EventType names a kind of event. The values are part of the API.
type EventType string

// EventBody is the content of an event of one type. The set of bodies is closed.
type EventBody interface {
	EventType() EventType
	body()
}

// TaskStarted records the start of a task.
type TaskStarted struct {
	Text   string   `json:"text"`
	Caller string   `json:"caller"`
	As     string   `json:"as,omitempty"`    // name of the role that bounds the task in place of its caller's
	Groups []string `json:"groups,omitzero"` // groups the task is restricted to; nil if unrestricted
	State  string   `json:"state,omitempty"` // initial workflow state

	Asked     bool     `json:"asked,omitempty"`          // a request to an agent in a role
	Requested []string `json:"requestedGroups,omitzero"` // groups that the request named; nil if it named none

	AsID identity.RoleID `json:"asId,omitempty"` // id of the role As

	Trigger string `json:"trigger,omitempty"` // name of the trigger that started it; "" for none
	Chain   int    `json:"chain,omitempty"`   // ended tasks that led to it by triggers
	Missed  int    `json:"missed,omitempty"`  // times of the trigger's schedule for which no task was started
}

// TaskDenied records that an external caller asked for a task that it may not start.
type TaskDenied struct {
	Caller    string       `json:"caller"`                   // the identity.Principal
	Role      string       `json:"askedRole,omitempty"`      // the role that the request named, shortened
	Requested []string     `json:"requestedGroups,omitzero"` // groups that the request named, at most 100, shortened; nil if it named none
	Defaults  []string     `json:"defaultGroups,omitzero"`   // groups that a request without groups has by default, limited likewise; nil if it named groups, or no role that its caller may ask
	State     string       `json:"state,omitempty"`          // workflow state that the request named, shortened
	Decision  string       `json:"decision"`                 // Denied
	Code      errcode.Code `json:"code"`
	Reason    string       `json:"reason"`
}

// PromptGot records that an external caller has got a declared prompt.
type PromptGot struct {
	Caller    string `json:"caller"` // the identity.Principal
	Prompt    string `json:"prompt"`
	ArgsHash  string `json:"argsHash"`  // SHA-256 of the arguments, an object of texts, in hex
	ArgsSize  int    `json:"argsSize"`  // in bytes
	ArgsStart string `json:"argsStart"` // their start, without secrets
}

// AgentSpawned records a new agent.
type AgentSpawned struct {
	Name   string           `json:"name,omitempty"` // in its task, such as clerk-1
	Parent identity.AgentID `json:"parent,omitempty"`
	RoleID identity.RoleID  `json:"roleId"`
	Tools  []string         `json:"tools"`           // tools visible at the start
	Budget *ModelBudget     `json:"budget,omitzero"` // of the agent and those below it; absent if it shares that of its parent
	Most   *ModelBudget     `json:"most,omitzero"`   // that its role allows it; nothing is reserved for it
}

// ModelBudget is the part of a budget that an agent has. A zero field is no part.
type ModelBudget struct {
	Tokens   int64 `json:"tokens,omitempty"`
	Cost     int64 `json:"costNano,omitempty"` // in billionths of the currency of the prices
	Requests int64 `json:"requests,omitempty"` // to language models
	Calls    int64 `json:"calls,omitempty"`    // of tools
}

// AgentTerminated records the termination of an agent.
type AgentTerminated struct {
	By     string           `json:"by"`
	Parent identity.AgentID `json:"parent,omitempty"`
	Reason string           `json:"reason,omitempty"`
}

// MessageSent records a message from an agent or the user to another.
type MessageSent struct {
	Message model.Message `json:"message"`
	Due     string        `json:"due,omitempty"` // delivery time in RFC 3339, if delayed
}

// MessageReceived records that an agent received a message. It is needed for
// replay only and is not public.
type MessageReceived struct {
	Message model.Message `json:"message"`
}

// ModelAnswered records an answer of an agent's model.
type ModelAnswered struct {
	Answer     model.Answer `json:"answer"`
	Unanswered int          `json:"unanswered,omitempty"` // requests to the model before, of which no answer is recorded
}

// ModelDelta is a part of an answer in progress. It is shown to current
// watchers and never stored.
type ModelDelta struct {
	Text    string `json:"text,omitempty"`
	Tool    string `json:"tool,omitempty"`  // a call of this tool starts
	Args    string `json:"args,omitempty"`  // a part of that call's arguments
	Restart bool   `json:"again,omitempty"` // the answer starts again: the previous deltas are void
	Note    string `json:"note,omitempty"`  // what the model is waiting for
}

// ToolCall records the decision about a call. An allowed call has started.
type ToolCall struct {
	Call     identity.CallID `json:"call"`
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"args,omitempty"`
	Group    string          `json:"group,omitempty"`
	Decision string          `json:"decision"` // allowed or denied
	Code     errcode.Code    `json:"code,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Rule     string          `json:"rule,omitempty"` // the toolgroups.DecisionRule that denied the call, or "paused"
	Epoch    uint64          `json:"epoch"`
	Effect   tool.Effect     `json:"effect,omitzero"`    // of the tool when the call started; absent means mutating
	Caller   string          `json:"caller,omitempty"`   // the identity.Principal that called, unless it is an agent
	Approval string          `json:"approval,omitempty"` // the approval that the call has used, or that was denied

	// Arguments that are not in Args. The arguments of an agent's call are in its
	// answer. Large arguments of an external caller's call are stored content. A denied
	// call may contain anything, so only the start of its arguments is kept.
	ArgsHash  string `json:"argsHash,omitempty"`  // SHA-256 of the arguments, in hex
	ArgsSize  int    `json:"argsSize,omitempty"`  // bytes of the arguments
	ArgsStart string `json:"argsStart,omitempty"` // the first 512 bytes of a denied call's arguments, without secrets
}

// Decisions of a ToolCall.
const (
	Allowed = "allowed"
	Denied  = "denied"
)

// ToolResult records the result of a successful call.
type ToolResult struct {
	Call   identity.CallID `json:"call"`
	Tool   string          `json:"tool"`
	Result json.RawMessage `json:"result"`
	Caller string          `json:"caller,omitempty"` // as in ToolCall
}

// ToolError records the error of a denied or failed call.
type ToolError struct {
	Call   identity.CallID `json:"call"`
	Tool   string          `json:"tool"`
	Code   errcode.Code    `json:"code"`
	Result json.RawMessage `json:"result"`           // as the model reads it
	Caller string          `json:"caller,omitempty"` // as in ToolCall
}

// QuestionAsked records that a tool asks for input during a call. A question that its client
// repeats is recorded once.
type QuestionAsked struct {
	Call     identity.CallID `json:"call"`
	Tool     string          `json:"tool"`
	Question string          `json:"question"`         // its name, which is unique in the call
	ID       string          `json:"id,omitempty"`     // under which it is answered over the HTTP API; "" if its client answers it
	Kind     tool.InputKind  `json:"kind"`             // elicitation for a person, sampling for a model, or roots
	Server   string          `json:"server,omitempty"` // the MCP server that asks; "" if it is the tool itself
	Message  string          `json:"message,omitempty"`
	Schema   json.RawMessage `json:"schema,omitempty"` // of the answer
	URL      string          `json:"url,omitempty"`
	Until    time.Time       `json:"until"`            // when it counts as declined
	Caller   string          `json:"caller,omitempty"` // as in ToolCall
}

// QuestionAnswered records the end of a question.
type QuestionAnswered struct {
	Call     identity.CallID `json:"call"`
	Tool     string          `json:"tool"`
	Question string          `json:"question"`
	Action   tool.Action     `json:"action"`            // accept, decline or cancel
	Content  json.RawMessage `json:"content,omitempty"` // what the tool gets
	By       string          `json:"by,omitempty"`      // the identity.Principal that answered; "" without an answer
	Reason   string          `json:"reason,omitempty"`  // why there is no answer
	Caller   string          `json:"caller,omitempty"`  // as in ToolCall
}

// ApprovalRequested records that a call, or an operation of an operator, waits until people approve
// it, or its deadline.
type ApprovalRequested struct {
	Approval   string          `json:"approval"` // id of the request
	Call       identity.CallID `json:"call"`
	Tool       string          `json:"tool"`
	Args       json.RawMessage `json:"args,omitempty"`   // absent if they are large: the request has them
	Digest     string          `json:"digest"`           // of the arguments, see approval.DigestJSON
	Definition string          `json:"definition"`       // digest of the definition of the tool
	Rules      json.RawMessage `json:"rules"`            // that select the call, a list of approval.Rule
	Reason     string          `json:"reason,omitempty"` // the text of the answer with the call, shortened
	Epoch      uint64          `json:"epoch"`
	Until      time.Time       `json:"until"`            // after that the call is denied
	Caller     string          `json:"caller,omitempty"` // as in ToolCall
	For        string          `json:"for,omitempty"`    // the person for whom the call is made; absent for the operator

	// Of a request for an operation of an operator, which Tool names, too. Args describes it.
	Operation string `json:"operation,omitempty"` // an approval.Operation; "" for a call
	Operator  string `json:"operator,omitempty"`  // name of the operator who asks
	Auth      string `json:"auth,omitempty"`      // how that operator was authenticated
}

// ApprovalEscalated records that people of another role, or operators, may approve a call too,
// because it has waited for long.
type ApprovalEscalated struct {
	Approval string          `json:"approval"` // id of the request
	Call     identity.CallID `json:"call"`
	Tool     string          `json:"tool"`
	Digest   string          `json:"digest"`           // of the arguments
	To       string          `json:"to"`               // whose votes are enough now, as approval.Quorum.String
	Until    time.Time       `json:"until"`            // after that the call is denied
	Caller   string          `json:"caller,omitempty"` // as in ToolCall
}

// ApprovalDecided records a vote about a request for approval, or its end.
type ApprovalDecided struct {
	Approval string          `json:"approval"`
	Call     identity.CallID `json:"call"`
	Tool     string          `json:"tool"`
	Outcome  string          `json:"outcome"`        // vote, approved, denied, used, expired or void
	By       string          `json:"by,omitempty"`   // the identity.Principal; "" for expired and void
	As       string          `json:"as,omitempty"`   // name of the role in which a caller decided
	Auth     string          `json:"auth,omitempty"` // how the principal was authenticated
	Reason   string          `json:"reason,omitempty"`
	Override bool            `json:"override,omitempty"` // an operator approved in place of the approvers
	Digest   string          `json:"digest,omitempty"`   // of the arguments that the decision is about
	Args     json.RawMessage `json:"args,omitempty"`     // that the approver set in place of those of the call
	Waited   time.Duration   `json:"waited,omitempty"`   // since the request, in nanoseconds
	Caller   string          `json:"caller,omitempty"`   // as in ToolCall

	// Pattern is an approval.Pattern that the vote is for, besides the call. Standing is the id of
	// the standing approval if enough people have voted for it. tool_call has that id for further calls.
	Pattern  json.RawMessage `json:"pattern,omitempty"`
	Standing string          `json:"standing,omitempty"`
}

// PatternEnded records the end of a standing approval: no further call uses it.
type PatternEnded struct {
	Standing string `json:"standing"`
	Tool     string `json:"tool"`
	Outcome  string `json:"outcome"`        // used, expired, void or revoked
	Used     int    `json:"used"`           // how many calls have used it
	By       string `json:"by,omitempty"`   // the identity.Principal that revoked it
	Auth     string `json:"auth,omitempty"` // how the principal was authenticated
	Reason   string `json:"reason,omitempty"`
}

// PatternRevoked is the Outcome of a PatternEnded that a person has ended. The others are the
// outcomes of an ApprovalDecided; used means that no use is left.
const PatternRevoked = "revoked"

// Outcomes of an ApprovalDecided.
const (
	ApprovalVoted   = "vote"     // one of several approvals that are needed
	ApprovalGiven   = "approved" // the call may run, once
	ApprovalRefused = "denied"
	ApprovalExpired = "expired"
	ApprovalUsed    = "used" // the operation of an operator was carried out; for a call, tool_call has the approval
	ApprovalVoid    = "void" // the call will not run: its agent or task has ended, or it has changed
)

// StateTransition records a change of the workflow state of an agent, or of an
// external caller in its role.
type StateTransition struct {
	Tool   string `json:"tool"` // "" if the operator reset the state
	From   string `json:"from"`
	To     string `json:"to"`
	Caller string `json:"caller,omitempty"` // as in ToolCall
}

// RoleChanged records that a role was created, updated, deleted, revived, paused or
// resumed. The role root stands for what root may grant.
type RoleChanged struct {
	RoleID identity.RoleID `json:"roleId"`
	Change string          `json:"change"` // created, updated, deleted, revived, paused or resumed
	By     string          `json:"by"`
	Record json.RawMessage `json:"record"`         // the role after the change
	Diff   json.RawMessage `json:"diff,omitempty"` // an org.PermissionDiff
	Epoch  uint64          `json:"epoch"`
}

// GroupRegistered records that a tool group was registered or replaced at run
// time.
type GroupRegistered struct {
	Group string   `json:"group"`
	Owner string   `json:"owner"`
	Tools []string `json:"tools"`
	Epoch uint64   `json:"epoch"`
}

// GroupUnregistered records that a tool group was unregistered.
type GroupUnregistered struct {
	Group string `json:"group"`
	Owner string `json:"owner"`
	Epoch uint64 `json:"epoch"`
}

// GroupOpened records that a tool group with hours has its tools from now on. It also follows
// the GroupRegistered of a group that is open.
type GroupOpened struct {
	Group      string    `json:"group"`
	Owner      string    `json:"owner"`
	Tools      []string  `json:"tools"`
	NextChange time.Time `json:"nextChange,omitzero"` // when the hours close it
	Epoch      uint64    `json:"epoch"`
}

// GroupClosed records that a tool group with hours has no tools from now on. It also follows
// the GroupRegistered of a group that is closed.
type GroupClosed struct {
	Group      string    `json:"group"`
	Owner      string    `json:"owner"`
	NextChange time.Time `json:"nextChange,omitzero"` // when the hours open it
	Epoch      uint64    `json:"epoch"`
}

// ItemChanged records that the operator applied or deleted a configuration item.
type ItemChanged struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Change string `json:"change"` // applied or deleted
	By     string `json:"by"`
	Digest string `json:"digest,omitempty"` // SHA-256 of the text, in hexadecimal; absent when it is deleted
}

// ContextCompressed records a compression: the model is sent Summary in place
// of the first Items of the conversation from then on.
type ContextCompressed struct {
	Call    identity.CallID  `json:"call,omitempty"` // the call that requested it
	Summary string           `json:"summary"`
	Items   int              `json:"items"`
	Usage   model.TokenUsage `json:"usage,omitzero"`  // of the summary request, if the runtime made one
	Model   string           `json:"model,omitempty"` // that wrote the summary, as in model.Answer

	Unanswered int `json:"unanswered,omitempty"` // as in ModelAnswered
}

// TurnFailed records that an agent's turn ended with an error. Messages after the
// first MessagesRead were not read in the turn; zero means that all were.
type TurnFailed struct {
	Code         errcode.Code `json:"code"`
	Message      string       `json:"message"`
	MessagesRead int          `json:"read,omitempty"`
	Unanswered   int          `json:"unanswered,omitempty"` // as in ModelAnswered

	// These fields are set for a turn that ended because the agent repeated itself. Repeated has
	// the calls of one pass, oldest first and at most twenty. Times is how often the agent made
	// them.
	Repeated []RepeatedCall `json:"repeated,omitempty"`
	Times    int            `json:"times,omitempty"`
}

// RepeatedCall names a call that an agent repeated. The answer of its model has the arguments.
type RepeatedCall struct {
	Call identity.CallID `json:"call"`
	Tool string          `json:"tool"`
}

// UngroundedAnswer records that the final answer of a strictly tool-gated agent was withheld,
// because no call of its turn was successful. The event before it has what was delivered.
type UngroundedAnswer struct{}

// MailDropped records that a task ended before all messages to its agents were read.
type MailDropped struct {
	Count   int `json:"count"`             // messages that no model has read
	Delayed int `json:"delayed,omitempty"` // those of them that were not delivered yet
}

// TaskPaused records that a task stops until the operator retries it.
type TaskPaused struct {
	Code   errcode.Code `json:"code"`
	Reason string       `json:"reason"`
}

// TaskRetried records that a task that was paused goes on.
type TaskRetried struct {
	By     string `json:"by"`               // the identity.Principal
	Tokens int64  `json:"tokens,omitempty"` // that the task may use beyond its budget
	Cost   int64  `json:"costNano,omitempty"`

	Requests int64 `json:"requests,omitempty"` // likewise
	Calls    int64 `json:"calls,omitempty"`    // likewise, of tools
}

// BudgetWarning records that a large part of a budget is used, after the answer of an agent.
type BudgetWarning struct {
	Owner    identity.AgentID `json:"owner,omitempty"` // the agent whose budget it is; "" for the task
	Quantity string           `json:"quantity"`        // requests, tokens, cost, calls or seconds (of the task)
	Used     int64            `json:"used"`            // a cost is in billionths of the currency of the prices
	Limit    int64            `json:"limit"`
}

// Paused records that a person has paused a task, a role or the organization. It names one of them:
// the task in the event, the role in RoleID, or All.
type Paused struct {
	By     string          `json:"by"` // the identity.Principal
	Reason string          `json:"reason,omitempty"`
	RoleID identity.RoleID `json:"roleId,omitempty"`
	All    bool            `json:"all,omitempty"`
	Epoch  uint64          `json:"epoch"`
}

// Resumed records that a person has ended a pause. It names what goes on as Paused does.
type Resumed Paused

// TaskEnded records the end of a task.
type TaskEnded struct {
	Status     string           `json:"status"` // done, failed or cancelled
	Result     json.RawMessage  `json:"result,omitempty"`
	Incomplete model.StopReason `json:"incomplete,omitempty"` // why the answer with the result ended early; absent if it is whole
	Code       errcode.Code     `json:"code,omitempty"`
	Error      string           `json:"error,omitempty"`
}

// EventGap ends a stream of events that are read too slowly, or of which none was found
// for long. It is never stored. Its Event has the sequence number of the last event that
// was read. The stream continues after this event.
type EventGap struct {
	Last uint64 `json:"last"` // sequence number of the last event of the log
}

// Types of the events.
func (TaskStarted) EventType() EventType       { return "task_started" }
func (TaskDenied) EventType() EventType        { return "task_denied" }
func (PromptGot) EventType() EventType         { return "prompt_got" }
func (AgentSpawned) EventType() EventType      { return "agent_spawned" }
func (AgentTerminated) EventType() EventType   { return "agent_terminated" }
func (MessageSent) EventType() EventType       { return "message" }
func (MessageReceived) EventType() EventType   { return "message_taken" }
func (ModelAnswered) EventType() EventType     { return "model_answered" }
func (ModelDelta) EventType() EventType        { return "model_delta" }
func (ToolCall) EventType() EventType          { return "tool_call" }
func (ToolResult) EventType() EventType        { return "tool_result" }
func (ToolError) EventType() EventType         { return "tool_error" }
func (QuestionAsked) EventType() EventType     { return "question_asked" }
func (QuestionAnswered) EventType() EventType  { return "question_answered" }
func (ApprovalRequested) EventType() EventType { return "approval_requested" }
func (ApprovalEscalated) EventType() EventType { return "approval_escalated" }
func (ApprovalDecided) EventType() EventType   { return "approval_decided" }
func (PatternEnded) EventType() EventType      { return "approval_pattern_ended" }
func (StateTransition) EventType() EventType   { return "state_transition" }
func (UngroundedAnswer) EventType() EventType  { return "ungrounded_answer" }
func (RoleChanged) EventType() EventType       { return "role_changed" }
func (GroupRegistered) EventType() EventType   { return "group_registered" }
func (GroupUnregistered) EventType() EventType { return "group_unregistered" }
func (GroupOpened) EventType() EventType       { return "group_opened" }
func (GroupClosed) EventType() EventType       { return "group_closed" }
func (ItemChanged) EventType() EventType       { return "item_changed" }
func (ContextCompressed) EventType() EventType { return "context_compressed" }
func (TurnFailed) EventType() EventType        { return "error" }
func (MailDropped) EventType() EventType       { return "mail_dropped" }
func (BudgetWarning) EventType() EventType     { return "budget_warning" }
func (TaskPaused) EventType() EventType        { return "task_paused" }
func (TaskRetried) EventType() EventType       { return "task_retried" }
func (Paused) EventType() EventType            { return "paused" }
func (Resumed) EventType() EventType           { return "resumed" }
func (TaskEnded) EventType() EventType         { return "result" }
func (EventGap) EventType() EventType          { return "gap" }

func (TaskStarted) body()       {}
func (TaskDenied) body()        {}
func (PromptGot) body()         {}
func (AgentSpawned) body()      {}
func (AgentTerminated) body()   {}
func (MessageSent) body()       {}
func (MessageReceived) body()   {}
func (ModelAnswered) body()     {}
func (ModelDelta) body()        {}
func (ToolCall) body()          {}
func (ToolResult) body()        {}
func (ToolError) body()         {}
func (QuestionAsked) body()     {}
func (QuestionAnswered) body()  {}
func (ApprovalRequested) body() {}
func (ApprovalEscalated) body() {}
func (ApprovalDecided) body()   {}
func (PatternEnded) body()      {}
func (StateTransition) body()   {}
func (UngroundedAnswer) body()  {}
func (RoleChanged) body()       {}
func (GroupRegistered) body()   {}
func (GroupUnregistered) body() {}
func (GroupOpened) body()       {}
func (GroupClosed) body()       {}
func (ItemChanged) body()       {}
func (ContextCompressed) body() {}
func (TurnFailed) body()        {}
func (MailDropped) body()       {}
func (BudgetWarning) body()     {}
func (TaskPaused) body()        {}
func (TaskRetried) body()       {}
func (Paused) body()            {}
func (Resumed) body()           {}
func (TaskEnded) body()         {}
func (EventGap) body()          {}

// IsPublic reports whether an event is shown outside its agent's journal.
func IsPublic(b EventBody) bool {
	_, internal := b.(MessageReceived)
	return !internal
}

// bodies has the zero value of each event body, by its event type.
var bodies = byEventType(
	TaskStarted{}, TaskDenied{}, AgentSpawned{}, AgentTerminated{}, MessageSent{}, MessageReceived{}, ModelAnswered{}, ModelDelta{},
	ToolCall{}, ToolResult{}, ToolError{}, StateTransition{}, RoleChanged{}, GroupRegistered{}, GroupUnregistered{}, GroupOpened{},
	GroupClosed{}, ItemChanged{}, ContextCompressed{}, TurnFailed{}, MailDropped{}, BudgetWarning{}, TaskPaused{}, TaskRetried{},
	TaskEnded{}, UngroundedAnswer{}, EventGap{}, QuestionAsked{}, QuestionAnswered{}, PromptGot{}, ApprovalRequested{},
	ApprovalEscalated{}, ApprovalDecided{}, PatternEnded{}, Paused{}, Resumed{},
)

func byEventType(list ...EventBody) map[EventType]EventBody {
	m := map[EventType]EventBody{}
	for _, b := range list {
		m[b.EventType()] = b
	}
	return m
}

// decodeBody decodes the body of a type from an event's flat object.
func decodeBody(t EventType, data []byte) (EventBody, error) {
	zero, ok := bodies[t]
	if !ok {
		return nil, fmt.Errorf("unknown event type %q", t)
	}
	body := reflect.New(reflect.TypeOf(zero))
	if err := json.Unmarshal(data, body.Interface()); err != nil {
		return nil, fmt.Errorf("decode event of type %q: %w", t, err)
	}
	return body.Elem().Interface().(EventBody), nil
}

// EventTypes returns the types of stored events that are shown outside the journal of an
// agent, sorted.
func EventTypes() []EventType {
	var list []EventType
	for t, b := range bodies {
		if IsPublic(b) && isStored(b) {
			list = append(list, t)
		}
	}
	slices.Sort(list)
	return list
}

// isStored reports whether journals store an event. The others are parts of streams.
func isStored(b EventBody) bool {
	switch b.(type) {
	case ModelDelta, EventGap:
		return false
	}
	return true
}
