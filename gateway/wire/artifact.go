package wire

import (
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/identity"
)

// Artifact is the record of an artifact, without its content.
type Artifact struct {
	ID        string           `json:"id"`
	Type      string           `json:"type"`
	Meta      json.RawMessage  `json:"meta,omitempty"`
	Blob      string           `json:"blob"` // SHA-256 of the content, in hex
	Binary    bool             `json:"binary,omitempty"`
	Size      int              `json:"size"`                // bytes of the content
	MediaType string           `json:"mediaType,omitempty"` // guessed from the content
	Task      identity.TaskID  `json:"taskId"`
	By        identity.AgentID `json:"agentId"`
	Call      identity.CallID  `json:"callId,omitempty"` // whose result has the content; "" for other artifacts
	CreatedAt time.Time        `json:"createdAt"`

	// Set for the artifacts of external callers, which belong to no task.
	Caller string `json:"caller,omitempty"` // the identity.Principal, as text
	Owner  string `json:"owner,omitempty"`  // its identity.Principal.Key
}

// SweepResult counts the stored contents that a sweep deleted, or would delete.
type SweepResult struct {
	Contents int   `json:"contents"`
	Bytes    int64 `json:"bytes"`
	DryRun   bool  `json:"dryRun,omitempty"`
}
