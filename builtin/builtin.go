// Package builtin implements the tool groups that come with the runtime:
// org_management, artifact, workspace, command, network, context and console.
// docs/tools.md describes their tools for users.
//
// Each tool declares a small interface for what it needs; runtime.ToolHost
// implements all of them (Deps). NewGroups creates the groups and RegisterGroups also
// registers them with the owner toolgroups.Builtin:
//
//	groups, err := builtin.NewGroups(rt.ToolHost(), builtin.Options{})
//
// The package decides no permissions. Package gate decides who may call a tool,
// package org who may spawn, grant or write to whom.
package builtin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// CallLimits answers questions of tools that use the data of another tool or store
// content.
type CallLimits interface {
	// CheckCall returns the error of a call that would be denied, or would wait for an approval.
	// It returns nil if the principal may call the tool with these arguments now.
	CheckCall(ctx context.Context, by identity.Principal, tool string, args json.RawMessage) error
	// ArtifactLimit returns the maximum size of an artifact's content in bytes.
	ArtifactLimit() int64
	// ResultLimit returns the largest result that the principal reads whole, in bytes
	// of JSON. It depends on the context window of its model; 0 means no limit.
	ResultLimit(by identity.Principal) int
}

// ArtifactStore stores content that agents hand to each other and to people. An
// artifact belongs to the task of the agent that put it, or to the external
// caller that did.
type ArtifactStore interface {
	// PutArtifact stores an artifact and returns its reference. It is idempotent
	// by call id. Content over the limit is rejected with invalid_arguments.
	PutArtifact(ctx context.Context, c tool.Call, a Artifact) (ref string, err error)
	// GetArtifact returns an artifact, or nil if neither the caller nor its task
	// has one with this reference.
	GetArtifact(ctx context.Context, c tool.Call, ref string) (*Artifact, error)
	// ListArtifacts returns a page of the artifacts of an external caller, newest
	// first. after is the Next of the page before, or "". The page is empty for
	// other principals.
	ListArtifacts(ctx context.Context, c tool.Call, after string) (ArtifactPage, error)
}

// ArtifactPage is a part of a list of artifacts.
type ArtifactPage struct {
	Artifacts []ListedArtifact `json:"artifacts"`
	Next      string           `json:"next,omitempty"` // "" after the last page
}

// ListedArtifact describes an artifact without its content.
type ListedArtifact struct {
	Ref       string    `json:"artifactRef"`
	Type      string    `json:"type"`
	MediaType string    `json:"mediaType"` // guessed from the content
	Size      int       `json:"size"`      // of the content in bytes; text counts as JSON
	CreatedAt time.Time `json:"createdAt"`
}

// Artifact is typed content with metadata. The content is either Value, any JSON,
// or Data, bytes; the other one is nil.
type Artifact struct {
	Type  string
	Value json.RawMessage
	Data  []byte
	Meta  json.RawMessage // a JSON object, or nil
}

// WorkspaceOpener finds the folder that an agent or external caller works in.
type WorkspaceOpener interface {
	// OpenWorkspace opens the folder of the principal and creates it if it is
	// missing. The caller must close Root. The error is workspace_not_bound for a
	// principal without a workspace.
	OpenWorkspace(ctx context.Context, by identity.Principal) (*workspace.Dir, error)
}

// ContextManager measures and compresses the conversations of agents.
type ContextManager interface {
	// ContextUsage returns the size of the conversation and of the model's
	// context window in tokens. A limit of 0 is unknown.
	ContextUsage(ctx context.Context, agent identity.AgentID) (used, limit int, err error)
	// CompressContext replaces all but the last keep messages by summary in what is sent
	// to the model. The journal keeps them. It is idempotent by call id.
	CompressContext(ctx context.Context, c tool.Call, summary string, keep int) (Compression, error)
}

// Compression is the result of ContextManager.CompressContext. Before and After count the
// entries sent to the model: messages, answers, results, and a summary as one.
type Compression struct {
	Done          bool // false if there was nothing to replace
	Before, After int
}

// Console is the output of console_print.
type Console interface {
	PrintLine(ctx context.Context, by identity.Principal, text string) error
}

// callingAgent returns the agent that called the current tool. The error is
// tool_unavailable for other callers. They have no conversation and no place in
// the organization. hint tells them what to do instead.
func callingAgent(ctx context.Context, hint string) (identity.AgentID, error) {
	call := currentCall(ctx)
	if call.By.Kind != identity.Agent || call.By.Agent == "" {
		return "", errcode.New(errcode.ToolUnavailable, "%s is available only to agents of the organization, and you are not one; %s", call.Name, hint)
	}
	return call.By.Agent, nil
}
