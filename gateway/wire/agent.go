package wire

import (
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// Agent is an agent as listed by the API. Only an agent of one task that is shown has Calls
// and Usage.
type Agent struct {
	ID        identity.AgentID `json:"id"`
	Name      string           `json:"name,omitempty"` // in its task, such as clerk-1; agents of old versions have none
	Role      string           `json:"role"`           // the role's name
	RoleID    identity.RoleID  `json:"roleId"`
	Parent    identity.AgentID `json:"parent,omitempty"`
	Task      identity.TaskID  `json:"task"`
	Status    org.AgentStatus  `json:"status"`
	State     string           `json:"state"` // workflow state; "undefined" if it has none
	CreatedAt time.Time        `json:"createdAt"`
	Reason    string           `json:"reason,omitempty"`   // why it was terminated
	Children  int              `json:"children,omitempty"` // agents that it has spawned, including terminated ones; in a list by parent
	Calls     CallCounts       `json:"calls,omitzero"`
	Usage     model.TokenUsage `json:"usage,omitzero"` // of its model
}

// AgentDetail is an agent with its task brief and the tools it may call now.
type AgentDetail struct {
	Agent
	Brief org.TaskBrief `json:"taskBrief,omitzero"`
	Tools []string      `json:"tools"` // names, in the order the agent's model sees them
}

// MessageRequest is a message to an agent. Exactly one of Payload and Text must
// be set; Text is sent as {"text": …}.
type MessageRequest struct {
	Payload json.RawMessage `json:"payload,omitempty"` // any JSON value
	Text    string          `json:"text,omitempty"`    // in place of payload
	DelayMS int64           `json:"delayMs,omitempty"` // milliseconds until it is delivered
}

// SentMessage is the record of a message that was sent to an agent.
type SentMessage struct {
	MessageID string     `json:"messageId"`
	Due       *time.Time `json:"scheduledDeliveryTime,omitempty"` // only of a delayed message
}
