package wire

import (
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// Approval is a call, or an operation of an operator, that waits until people approve it. Args, Reason
// and TaskShort come from an agent, a caller or an operator: they are data, not instructions.
type Approval struct {
	ID        string           `json:"id"`
	Status    string           `json:"status"` // waiting, approved, denied or expired; it is removed when its call is decided again
	Task      identity.TaskID  `json:"task,omitempty"`
	TaskShort string           `json:"taskShort,omitempty"` // the beginning of the task's text on one line, at most 160 bytes; also for approvers who may not see the task
	Agent     identity.AgentID `json:"agent,omitempty"`     // that calls
	AgentName string           `json:"agentName,omitempty"`
	Caller    string           `json:"caller,omitempty"`  // that calls, in place of an agent
	Starter   string           `json:"starter,omitempty"` // the person for whom the call is made; absent for the operator
	Call      identity.CallID  `json:"call"`
	Tool      string           `json:"tool"`
	Role      string           `json:"role"` // of the agent or the caller
	// Operation is set for an operation of the operator Starter: role_gain, apply, tool_accept, override
	// or oversight. Tool has the same text, and Args describe the operation.
	Operation approval.Operation `json:"operation,omitempty"`
	Reason    string             `json:"reason,omitempty"`
	Rules     []approval.Rule    `json:"rules"`             // all of them must be satisfied
	Votes     []ApprovalVote     `json:"votes"`             // so far
	Args      json.RawMessage    `json:"args,omitempty"`    // of the call; only of one request
	Edited    json.RawMessage    `json:"edited,omitempty"`  // that an approver has set; the votes are about these
	Text      string             `json:"text,omitempty"`    // the arguments that the votes are about, for people: indented, with the numbers as written and invisible characters escaped; only of one request
	Short     string             `json:"short,omitempty"`   // the beginning of these arguments, at most 160 bytes, with invisible characters escaped
	Digest    string             `json:"digest"`            // of the arguments that the votes are about
	Refusal   string             `json:"refusal,omitempty"` // why an approval of the sender would not count; only of one request
	Asked     time.Time          `json:"asked"`
	Until     time.Time          `json:"until"` // after that the call is denied
}

// ApprovalChange is an item of the stream of the calls that wait for the sender's approval. The
// stream begins with the requests that wait, and an item of the type listed. What comes later
// follows.
type ApprovalChange struct {
	Type     string    `json:"type"` // waiting, listed, requested, escalated, vote, approved, denied, expired or void
	At       time.Time `json:"at"`
	ID       string    `json:"id,omitempty"`
	Tool     string    `json:"tool,omitempty"`
	Role     string    `json:"role,omitempty"`     // of the agent or the caller
	Approval *Approval `json:"approval,omitempty"` // of waiting, requested and escalated
	To       string    `json:"to,omitempty"`       // whose votes are enough since the escalation
	By       string    `json:"by,omitempty"`       // who decided
	As       string    `json:"as,omitempty"`       // name of the role in which a caller decided
	Reason   string    `json:"reason,omitempty"`
	Override bool      `json:"override,omitempty"` // an operator approved in place of the approvers
}

// The types of items of a stream that are not outcomes of decisions.
const (
	ApprovalWaits     = "waiting"
	ApprovalsListed   = "listed"
	ApprovalAsked     = "requested"
	ApprovalEscalates = "escalated"
)

// DecidedApproval is a call, or an operation of an operator, that people were asked about and that is
// decided. It says what became of the call, and has no result of it.
type DecidedApproval struct {
	ID        string             `json:"id"`
	Status    string             `json:"status"`         // approved (and not started), running, ok, failed, denied, expired or void
	Code      string             `json:"code,omitempty"` // of a failed or denied call
	Task      identity.TaskID    `json:"task,omitempty"`
	TaskShort string             `json:"taskShort,omitempty"` // as in Approval
	Agent     identity.AgentID   `json:"agent,omitempty"`
	AgentName string             `json:"agentName,omitempty"`
	Caller    string             `json:"caller,omitempty"`
	Starter   string             `json:"starter,omitempty"` // as in Approval
	Tool      string             `json:"tool"`
	Role      string             `json:"role,omitempty"`
	Operation approval.Operation `json:"operation,omitempty"`
	Short     string             `json:"short,omitempty"`       // the beginning of the arguments, as in Approval; absent for long ones
	Before    string             `json:"shortBefore,omitempty"` // as Short, of the arguments that an approver has replaced
	By        string             `json:"by,omitempty"`          // who decided last; absent for expired and void
	As        string             `json:"as,omitempty"`
	Reason    string             `json:"reason,omitempty"`
	Override  bool               `json:"override,omitempty"`
	Asked     time.Time          `json:"asked"`
	At        time.Time          `json:"at"` // of the decision
}

// DecidedApprovals are the requests that were decided last, the newest decision first.
type DecidedApprovals struct {
	Approvals []DecidedApproval `json:"approvals"`
}

// ApprovalVote is the approval of one person.
type ApprovalVote struct {
	By   string    `json:"by"`
	As   string    `json:"as,omitempty"`   // name of the role
	Auth string    `json:"auth,omitempty"` // how the person was authenticated
	At   time.Time `json:"at"`

	// Pattern is what the vote approves besides the call.
	Pattern *ApprovalPattern `json:"pattern,omitempty"`
}

// ApprovalPattern approves further calls of the same agent and tool within the task. They fit Args,
// and their other arguments are equal to the arguments of the call that waits. Uses or Seconds is
// required.
type ApprovalPattern struct {
	Args    json.RawMessage `json:"args"`              // conditions by path, as of bind
	Uses    int             `json:"uses,omitempty"`    // how many further calls
	Seconds int64           `json:"seconds,omitempty"` // from the approval on; else until the task ends
}

// StandingApproval is a pattern that enough people have approved.
type StandingApproval struct {
	ID      string           `json:"id"`
	Request string           `json:"request"` // id of the request that was approved with it
	Task    identity.TaskID  `json:"task"`
	Agent   identity.AgentID `json:"agent"`
	Tool    string           `json:"tool"`
	Role    string           `json:"role"`
	Pattern ApprovalPattern  `json:"pattern"`
	Used    int              `json:"used"` // how many calls have used it
	Votes   []ApprovalVote   `json:"votes"`
	Since   time.Time        `json:"since"`
	Until   *time.Time       `json:"until,omitempty"` // absent: until the task ends
}

// RevokeRequest is the body of POST /api/v1/standing-approvals/{id}/revoke.
type RevokeRequest struct {
	Reason string `json:"reason,omitempty"`
}

// Revoked names a standing approval that has ended.
type Revoked struct {
	ID string `json:"id"`
}

// ApprovalDecision is the body of POST /api/v1/approvals/{id}.
type ApprovalDecision struct {
	Action   string          `json:"action"`             // approve or deny
	Args     json.RawMessage `json:"args,omitempty"`     // in place of those of the call; they pass the gate
	Reason   string          `json:"reason,omitempty"`   // of a denial, which the agent reads; required with override
	Override bool            `json:"override,omitempty"` // an operator approves in place of the approvers
	Digest   string          `json:"digest,omitempty"`   // of the arguments that were seen; others are rejected

	// Pattern also approves further calls, once enough people have approved the same one.
	Pattern *ApprovalPattern `json:"pattern,omitempty"`
}

// ApprovalDecisions is the body of POST /api/v1/approvals.
type ApprovalDecisions struct {
	Decisions []NamedDecision `json:"decisions"` // at most 1000, recorded in one commit
}

// NamedDecision is a decision about one of several requests.
type NamedDecision struct {
	ID string `json:"id"`
	ApprovalDecision
}

// ApprovalOutcome is what has become of a decision.
type ApprovalOutcome struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome,omitempty"` // vote, approved or denied; absent after an error
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`

	Standing string `json:"standing,omitempty"` // id of the standing approval, if the pattern is approved
}

// ApprovalOutcomes are the outcomes of decisions, in their order.
type ApprovalOutcomes struct {
	Outcomes []ApprovalOutcome `json:"outcomes"`
}
