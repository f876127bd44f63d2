package wire

import (
	"encoding/json"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// AgentRequest is the body of POST /api/v1/agent. Only Question is required; callers in a role
// may leave Role out. Null is the same as absent.
type AgentRequest struct {
	Question string      `json:"question"`          // what to do
	Group    []string    `json:"group,omitempty"`   // groups that the agent is restricted to; absent: those of the role (agent.defaultGroups); [] is none, ["*"] all that the sender may use
	State    string      `json:"state,omitempty"`   // workflow state in which the agent begins
	History  []AgentStep `json:"history,omitempty"` // earlier steps, which the agent reads as data; at most 200
	Role     string      `json:"role,omitempty"`    // id or name of the agent's role; default: that of the sender
}

// FlowAgentRequest is the body of POST /api/v1/flow/{flow}/service/agent, which TrustGraph's client
// sends. Flow in the path names the role of the agent, so the body has no role.
type FlowAgentRequest struct {
	Question  string      `json:"question"`            // what to do
	Group     []string    `json:"group,omitempty"`     // groups that the agent is restricted to, as in AgentRequest
	State     string      `json:"state,omitempty"`     // workflow state in which the agent begins
	History   []AgentStep `json:"history,omitempty"`   // earlier steps, which the agent reads as data; at most 200
	Workspace string      `json:"workspace,omitempty"` // default or absent: the workspace is that of the sender
	Streaming bool        `json:"streaming,omitempty"` // false or absent
}

// AgentStep is a step of an earlier request, as the sender tells it.
type AgentStep struct {
	Thought     string            `json:"thought,omitempty"`
	Action      string            `json:"action,omitempty"`
	Arguments   map[string]string `json:"arguments,omitempty"`
	Observation string            `json:"observation,omitempty"`
	StepType    string            `json:"step_type,omitempty"`
}

// AgentAnswer is the answer to an AgentRequest.
type AgentAnswer struct {
	Answer     json.RawMessage  `json:"answer,omitempty"`     // the result: a text, or a JSON value that fits the role's schema
	Incomplete model.StopReason `json:"incomplete,omitempty"` // why the result is not whole: length, content_filter or refusal
	Task       identity.TaskID  `json:"task"`
	Agent      identity.AgentID `json:"agent"`
	Status     org.TaskStatus   `json:"status"`                    // done, failed or cancelled; or running, waiting or paused
	Error      *org.TaskError   `json:"error,omitempty"`           // why it failed or was cancelled
	Reason     *org.TaskPause   `json:"reason,omitempty"`          // why it is paused
	Requested  []string         `json:"requestedGroups,omitempty"` // the groups that the request named; absent if it named none
	Granted    []string         `json:"grantedGroups"`             // the groups that the agent is restricted to; ["*"] for no restriction
	State      string           `json:"state"`                     // the workflow state now; "undefined" for none
	Usage      model.TokenUsage `json:"usage,omitzero"`            // of the models
}
