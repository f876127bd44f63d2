package wire

import (
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// Task is a task. Lists contain neither Result nor Usage, and Agents only if they are
// requested.
type Task struct {
	ID        identity.TaskID     `json:"id"`
	Text      string              `json:"text"`
	Status    org.TaskStatus      `json:"status"`
	Caller    string              `json:"caller"`
	Agent     identity.AgentID    `json:"agent"`  // the task's root agent
	Groups    toolgroups.GroupSet `json:"groups"` // the groups that the task is restricted to; ["*"] for no restriction
	State     string              `json:"state"`  // workflow state in which its agents start; "undefined" for none
	Workspace string              `json:"workspace,omitempty"`
	ReadOnly  bool                `json:"readOnly,omitempty"`
	Result    json.RawMessage     `json:"result,omitempty"`
	Error     *org.TaskError      `json:"error,omitempty"`
	CreatedAt time.Time           `json:"createdAt"`
	EndedAt   time.Time           `json:"endedAt,omitzero"`
	Usage     model.TokenUsage    `json:"usage,omitzero"`   // of all models so far
	Agents    []Agent             `json:"agents,omitempty"` // oldest first, including terminated ones
}
