// Package builtin owns the seven tool groups that come with the runtime and
// their 18 tools.
//
// Each tool states the small interface it needs; runtime.ToolHost has them all:
//
//	groups, err := builtin.Groups(rt.ToolHost(), builtin.Options{})
//
// and registers what it gets under the owner toolgroups.Builtin. The package
// decides no permission: who may call a tool is the gate's business, who may
// spawn, grant or write to whom is org's.
package builtin

import (
	"context"
	"encoding/json"
	"os"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// Limits is what a tool asks that reaches into what is another tool's, or
// reads what is to be kept.
type Limits interface {
	// CanCall says whether the gate would now let the principal call a tool.
	CanCall(by identity.Principal, tool string) bool
	// ArtifactLimit is how many bytes the content of an artifact may have.
	ArtifactLimit() int64
}

// Artifacts keeps what agents hand to each other and to people. They belong to
// the task of the agent, or to the caller from outside, that put them. Put is
// idempotent by call id, and refuses with invalid_arguments what is over the
// limit.
type Artifacts interface {
	PutArtifact(ctx context.Context, c tool.Call, a Artifact) (ref string, err error)
	GetArtifact(ctx context.Context, c tool.Call, ref string) (*Artifact, error) // nil when the caller, or its task, has none of this ref
}

// Artifact is typed content with metadata. Content is either Value, any JSON,
// or Data, bytes.
type Artifact struct {
	Type  string
	Value json.RawMessage
	Data  []byte
	Meta  json.RawMessage // a JSON object, or nil
}

// Workspaces finds the folder an agent works in, or a caller from outside.
type Workspaces interface {
	// Workspace opens the principal's folder, made when absent; who asks
	// closes Root. The error is workspace_not_bound when it has none.
	Workspace(ctx context.Context, by identity.Principal) (*Workspace, error)
}

// Workspace is a folder no path leads out of.
type Workspace struct {
	Root     *os.Root
	ReadOnly bool
	Space    *WorkspaceQuota // how much may be written; nil is nothing
}

// Contexts knows how full an agent's conversation is.
type Contexts interface {
	ContextUsage(ctx context.Context, agent identity.AgentID) (used, limit int, err error) // tokens
	// Compress replaces all but the last keep messages by summary in what the
	// model is sent. It is idempotent by call id.
	Compress(ctx context.Context, c tool.Call, summary string, keep int) (Compression, error)
}

// Compression is what became of a conversation. Before and After count what
// the model is sent: messages, answers, results, and a summary as one.
type Compression struct {
	Done          bool // false: there was nothing to replace
	Before, After int
}

// Console is where console_print writes.
type Console interface {
	Print(ctx context.Context, by identity.Principal, text string) error
}

// callingAgent gives the agent that calls. What only agents have, a conversation
// or a place in the organization, is unavailable to everybody else; instead
// says what else to do.
func callingAgent(ctx context.Context, instead string) (identity.AgentID, error) {
	call := caller(ctx)
	if call.By.Kind != identity.Agent || call.By.Agent == "" {
		return "", errcode.New(errcode.ToolUnavailable, "%s is for agents of the organization, and you are none; %s", call.Name, instead)
	}
	return call.By.Agent, nil
}
