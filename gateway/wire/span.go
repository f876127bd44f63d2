package wire

import (
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
)

// Span is something that took time in a task. It is an answer of a model, a call of a tool, or the
// wait of a call for approval. A denied call takes no time.
type Span struct {
	Seq    uint64           `json:"seq"` // number of its first event; of an answer, that of the answer
	Kind   SpanKind         `json:"kind"`
	Status SpanStatus       `json:"status"`
	Agent  identity.AgentID `json:"agent"`
	Role   string           `json:"role"`             // of the agent
	Name   string           `json:"name,omitempty"`   // of the model or the tool
	Parent uint64           `json:"parent,omitempty"` // Seq of the answer that asked for the call; 0 if it is not known
	Start  time.Time        `json:"start"`            // of an answer, when its model was asked: the time of the message or the result before
	End    time.Time        `json:"end,omitzero"`     // absent if the span is unfinished

	Call     identity.CallID  `json:"call,omitempty"`
	Approval string           `json:"approval,omitempty"` // id of the request for approval
	Code     errcode.Code     `json:"code,omitempty"`     // of a denial or a failure
	Reason   string           `json:"reason,omitempty"`   // likewise
	Rule     string           `json:"rule,omitempty"`     // that denied the call
	Group    string           `json:"group,omitempty"`    // of the tool
	Epoch    uint64           `json:"epoch,omitempty"`    // in which the call was decided
	Usage    model.TokenUsage `json:"usage,omitzero"`     // of the answer
}

// SpanKind says what took time.
type SpanKind string

// Kinds of a Span.
const (
	ModelSpan    SpanKind = "model"
	ToolSpan     SpanKind = "tool"
	ApprovalSpan SpanKind = "approval"
)

// SpanStatus says how a span ended.
type SpanStatus string

// Statuses of a Span.
const (
	SpanOK         SpanStatus = "ok"
	SpanFailed     SpanStatus = "failed"
	SpanDenied     SpanStatus = "denied"
	SpanUnfinished SpanStatus = "unfinished" // no end was found: it runs, or its end is more than 20,000 events later
)
