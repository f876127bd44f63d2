package wire

import (
	"encoding/json"

	"github.com/rolecall/rolecall/errcode"
)

// The shapes of the Authorization API 1.0 (AuthZEN). Fields that the gateway does not read are
// accepted and have no effect.

// Evaluation asks whether a subject may call a tool.
type Evaluation struct {
	Subject  *EvaluationSubject  `json:"subject,omitempty"`
	Action   *EvaluationAction   `json:"action,omitempty"`
	Resource *EvaluationResource `json:"resource,omitempty"`
	Context  *EvaluationContext  `json:"context,omitempty"`
}

// EvaluationSubject is the caller.
type EvaluationSubject struct {
	Type       string          `json:"type"` // role, agent or user
	ID         string          `json:"id"`   // of a role or an agent, or a name; of a user the name of its token
	Properties json.RawMessage `json:"properties,omitempty"`
}

// EvaluationAction is what the subject does.
type EvaluationAction struct {
	Name       string          `json:"name"` // call
	Properties json.RawMessage `json:"properties,omitempty"`
}

// EvaluationResource is the called tool.
type EvaluationResource struct {
	Type       string          `json:"type"` // tool
	ID         string          `json:"id"`   // its name
	Properties json.RawMessage `json:"properties,omitempty"`
}

// EvaluationContext restricts the question, as a request to an agent can.
type EvaluationContext struct {
	State string   `json:"state,omitempty"` // workflow state to check in
	Group []string `json:"group,omitempty"` // restricts the check to these groups
}

// Evaluations asks several questions. If a question leaves out a field, the field of the request
// counts.
type Evaluations struct {
	Subject     *EvaluationSubject  `json:"subject,omitempty"`
	Action      *EvaluationAction   `json:"action,omitempty"`
	Resource    *EvaluationResource `json:"resource,omitempty"`
	Context     *EvaluationContext  `json:"context,omitempty"`
	Evaluations []Evaluation        `json:"evaluations,omitempty"`
	Options     *EvaluationOptions  `json:"options,omitempty"`
}

// EvaluationOptions say how far several questions are answered.
type EvaluationOptions struct {
	Semantic EvaluationSemantic `json:"evaluations_semantic,omitempty"`
}

// EvaluationSemantic says which of several questions are answered.
type EvaluationSemantic string

// The semantics. The default is ExecuteAll.
const (
	ExecuteAll          EvaluationSemantic = "execute_all"
	DenyOnFirstDeny     EvaluationSemantic = "deny_on_first_deny"     // those up to the first that is denied
	PermitOnFirstPermit EvaluationSemantic = "permit_on_first_permit" // those up to the first that is permitted
)

// Decision answers an Evaluation.
type Decision struct {
	Decision bool             `json:"decision"`
	Context  *DecisionContext `json:"context,omitempty"`
}

// DecisionContext says why.
type DecisionContext struct {
	Code   errcode.Code `json:"code,omitempty"` // of a denial
	Reason string       `json:"reason"`
	Epoch  uint64       `json:"epoch,omitempty"`
}

// Decisions answers Evaluations, in their order. A request without evaluations is answered with
// a Decision.
type Decisions struct {
	Evaluations []Decision `json:"evaluations"`
}

// DecisionPoint describes the gateway to enforcement points.
type DecisionPoint struct {
	Point       string `json:"policy_decision_point"`
	Evaluation  string `json:"access_evaluation_endpoint"`
	Evaluations string `json:"access_evaluations_endpoint"`
}
