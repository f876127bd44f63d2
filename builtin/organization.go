package builtin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// Roles finds and creates roles. CreateRole is idempotent by call id.
type Roles interface {
	FindRole(ctx context.Context, c tool.Call, name string) (*org.Role, error) // nil if there is none
	CreateRole(ctx context.Context, c tool.Call, spec org.RoleSpec) (org.Role, error)
}

// Agents creates and terminates agents. Both methods are idempotent by call id.
type Agents interface {
	// Spawn creates an agent below the caller. If first is not nil, it also sends
	// that as the first message, in the same commit.
	Spawn(ctx context.Context, c tool.Call, s org.Spawn, first json.RawMessage) (Spawned, error)
	Terminate(ctx context.Context, c tool.Call, agent identity.AgentID, reason string) error
}

// Spawned describes a new agent.
type Spawned struct {
	ID        identity.AgentID `json:"id"`
	Role      identity.RoleID  `json:"roleId"`
	RoleName  string           `json:"roleName"`
	MessageID string           `json:"messageId,omitempty"`
}

// Messages sends messages between agents.
type Messages interface {
	// SendAll sends a message to each recipient, or to none if the caller may not
	// write to one of them. A recipient that is listed twice gets it once. The
	// result is in the order of to. SendAll is idempotent by call id.
	SendAll(ctx context.Context, c tool.Call, to []string, payload json.RawMessage, delay time.Duration) ([]Sent, error)
}

// Sent describes a message that was sent.
type Sent struct {
	MessageID string     `json:"messageId"`
	Due       *time.Time `json:"scheduledDeliveryTime,omitempty"` // set for a delayed message
}
