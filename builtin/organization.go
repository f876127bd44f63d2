package builtin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// RoleManager finds and creates roles. CreateRole is idempotent by call id.
type RoleManager interface {
	FindRole(ctx context.Context, c tool.Call, name string) (*org.Role, error) // nil if there is none
	// SearchRoles returns the roles that the caller may spawn agents of and that match a query. It
	// returns at most limit roles, the best first, and the number of all matches. An empty query
	// matches all.
	SearchRoles(ctx context.Context, c tool.Call, query string, limit int) (list []org.Role, total int, err error)
	CreateRole(ctx context.Context, c tool.Call, spec org.RoleSpec) (org.Role, error)
}

// AgentManager creates and terminates agents. Both methods are idempotent by call id.
type AgentManager interface {
	// SpawnAgent creates an agent below the caller. If first is not nil, it also sends
	// that as the first message, in the same commit.
	SpawnAgent(ctx context.Context, c tool.Call, s org.SpawnSpec, first json.RawMessage) (org.SpawnResult, error)
	TerminateAgent(ctx context.Context, c tool.Call, agent identity.AgentID, reason string) error
	// AgentBelow returns the id of the agent below the caller with a name. It returns any
	// other text, such as an id, as it is.
	AgentBelow(ctx context.Context, c tool.Call, name identity.AgentID) (identity.AgentID, error)
}

// MessageSender sends messages between agents.
type MessageSender interface {
	// SendAll sends a message to each recipient, or to none if the caller may not
	// write to one of them. A recipient that is listed twice gets it once. The
	// result is in the order of to. SendAll is idempotent by call id.
	SendAll(ctx context.Context, c tool.Call, to []string, payload json.RawMessage, delay time.Duration) ([]org.SendResult, error)
}
