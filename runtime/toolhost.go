package runtime

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/tool"
)

// ToolHost is what the built-in tools need of a Runtime. It implements
// builtin.Deps:
//
//	err := builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{})
//
// Its methods act for the principal they are given and check what that
// principal may do. Whether the principal may call the tool is checked before,
// by the gate. All methods are safe for concurrent use.
type ToolHost struct{ rt *Runtime }

var _ builtin.Deps = (*ToolHost)(nil)

// ToolHost returns what the built-in tools need.
func (rt *Runtime) ToolHost() *ToolHost { return &ToolHost{rt} }

// FindRole implements builtin.RoleManager. It finds declared roles and the roles of tasks of the
// same caller. Of the groups of the role it names only groups that the caller has.
func (h *ToolHost) FindRole(_ context.Context, c tool.Call, name string) (*org.Role, error) {
	role, ok := h.rt.org.RoleForAgent(c.By.Agent, name)
	if !ok {
		return nil, nil
	}
	role = h.rt.org.VisibleRole(c.By.Agent, role)
	return &role, nil
}

// SearchRoles implements builtin.RoleManager. It finds the roles that org.Org.SpawnableRoles
// returns. Of their groups it names only groups that the caller has.
func (h *ToolHost) SearchRoles(_ context.Context, c tool.Call, query string, limit int) ([]org.Role, int, error) {
	list, total := h.rt.org.SpawnableRoles(c.By.Agent, query, limit)
	for i := range list {
		list[i] = h.rt.org.VisibleRole(c.By.Agent, list[i])
	}
	return list, total, nil
}

// CreateRole implements builtin.RoleManager. See Runtime.CreateRole.
func (h *ToolHost) CreateRole(ctx context.Context, c tool.Call, spec org.RoleSpec) (org.Role, error) {
	return h.rt.CreateRole(ctx, c, spec)
}

// SpawnAgent implements builtin.AgentManager. See Runtime.SpawnAgent. An agent may spawn
// Limits.Hires agents; more is limit_exceeded.
func (h *ToolHost) SpawnAgent(ctx context.Context, c tool.Call, s org.SpawnSpec, first json.RawMessage) (org.SpawnResult, error) {
	if err := h.rt.checkHires(c.By.Agent); err != nil {
		return org.SpawnResult{}, err
	}
	return h.rt.SpawnAgent(ctx, c, s, first)
}

// TerminateAgent implements builtin.AgentManager. See Runtime.TerminateAgent.
func (h *ToolHost) TerminateAgent(ctx context.Context, c tool.Call, agent identity.AgentID, reason string) error {
	return h.rt.TerminateAgent(ctx, c, agent, reason)
}

// AgentBelow implements builtin.AgentManager. A repeated call finds the agent that its first
// attempt terminated.
func (h *ToolHost) AgentBelow(ctx context.Context, c tool.Call, name identity.AgentID) (identity.AgentID, error) {
	return h.rt.agentBelow(ctx, c, name)
}

// SendAll implements builtin.MessageSender. It sends one message to several
// recipients; see Runtime.SendMessage. All messages are committed together or none is.
func (h *ToolHost) SendAll(ctx context.Context, c tool.Call, to []string, payload json.RawMessage, delay time.Duration) ([]org.SendResult, error) {
	return h.rt.sendAll(ctx, c, to, payload, delay)
}

// CheckCall implements builtin.CallLimits. See gate.Gate.CheckCall.
func (h *ToolHost) CheckCall(ctx context.Context, by identity.Principal, tool string, args json.RawMessage) error {
	return h.rt.gate.CheckCall(ctx, h.rt.gate.Subject(by), tool, args)
}

// ArtifactLimit implements builtin.CallLimits.
func (h *ToolHost) ArtifactLimit() int64 { return h.rt.artifacts.limit() }

// ResultLimit implements builtin.CallLimits. Only agents with a language model have a
// limit.
func (h *ToolHost) ResultLimit(by identity.Principal) int {
	if by.Kind != identity.Agent {
		return 0
	}
	a, err := h.rt.tracker.activeActor(by.Agent)
	if err != nil {
		return 0
	}
	m, err := a.agentModel()
	if err != nil || !m.language {
		return 0
	}
	return m.resultLimit()
}

// MayReach implements builtin.HostPolicy, with the errors of org.Org.MayReach.
func (h *ToolHost) MayReach(_ context.Context, by identity.Principal, host hosts.Host) error {
	return h.rt.org.MayReach(by, host)
}
