package builtin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// Roles is where roles are found and made. CreateRole is idempotent by call id.
type Roles interface {
	FindRole(ctx context.Context, c tool.Call, name string) (*org.Role, error) // nil when there is none
	CreateRole(ctx context.Context, c tool.Call, spec org.RoleSpec) (org.Role, error)
}

// Agents is where agents are made and ended. Both are idempotent by call id.
type Agents interface {
	// Spawn makes an agent below the caller and, if first is not nil, sends it
	// its first message in the same commit.
	Spawn(ctx context.Context, c tool.Call, s org.Spawn, first json.RawMessage) (org.SpawnResult, error)
	Terminate(ctx context.Context, c tool.Call, agent identity.AgentID, reason string) error
}

// Messages is how agents write to each other. SendAll is idempotent by call id.
type Messages interface {
	// SendAll sends a message to each recipient or, when one of them may not
	// have it, to none; one who is named twice gets it once. It answers in
	// the order of to.
	SendAll(ctx context.Context, c tool.Call, to []string, payload json.RawMessage, delay time.Duration) ([]org.SendResult, error)
}
