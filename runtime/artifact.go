package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// Record kinds of artifacts: the content, stored once under its hash, and one
// record per artifact.
const (
	kindArtifact = "artifact"
	kindBlob     = "blob"
)

// Artifact is the record of an artifact.
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
	CreatedAt time.Time        `json:"createdAt"`

	// Set for the artifacts of external callers, which belong to no task.
	Caller string `json:"caller,omitempty"` // the identity.Principal, as text
	Owner  string `json:"owner,omitempty"`  // its identity.Principal.Key
}

// artifactOwner returns an Artifact with the owner fields of a principal set:
// the task of an agent, or the caller. It returns false for other principals
// and terminated agents.
func (rt *Runtime) artifactOwner(by identity.Principal) (Artifact, bool) {
	switch by.Kind {
	case identity.Agent:
		agent, ok := rt.org.Agent(by.Agent)
		return Artifact{Task: agent.Task, By: agent.ID}, ok
	case identity.Caller:
		return Artifact{Caller: by.String(), Owner: by.Key()}, org.CheckCaller(by) == nil
	}
	return Artifact{}, false
}

// sameOwner reports whether two artifacts have the same owner.
func (a Artifact) sameOwner(b Artifact) bool {
	return a.Owner == b.Owner && a.Task == b.Task && a.Owner+string(a.Task) != ""
}

// refPrefix begins a reference to an artifact.
const refPrefix = "artifact:"

// maxMeta bounds the metadata of an artifact in bytes, since readers of the
// record always get all of it.
const maxMeta = 64 << 10

// PutArtifact implements builtin.Artifacts.
func (h *ToolHost) PutArtifact(_ context.Context, c tool.Call, a builtin.Artifact) (string, error) {
	rt := h.rt
	owner, ok := rt.artifactOwner(c.By)
	if !ok {
		return "", errcode.New(errcode.AgentNotFound, "put artifact: %s not found", c.By)
	}
	record, put, err := rt.artifactRecords(identity.Derive(string(c.ID), "artifact"), owner, a)
	if err != nil {
		return "", err
	}
	err = rt.change(c.By, func(b *journal.Batch) error {
		rt.blobs.addReference(record.Blob)
		b.Put = put
		return nil
	})
	return refPrefix + record.ID, err
}

// artifactRecords returns the record of a new artifact and what must be stored
// for it; of has the owner fields.
func (rt *Runtime) artifactRecords(id string, owner Artifact, a builtin.Artifact) (Artifact, []journal.Record, error) {
	content := a.Data
	if content == nil {
		content = a.Value
	}
	if err := rt.checkArtifact(content, a.Meta); err != nil {
		return Artifact{}, nil, err
	}
	sum := sha256.Sum256(content)
	record := Artifact{
		ID: id, Type: a.Type, Meta: a.Meta,
		Blob: hex.EncodeToString(sum[:]), Binary: a.Data != nil, Size: len(content), MediaType: a.MediaType(),
		Task: owner.Task, By: owner.By, Caller: owner.Caller, Owner: owner.Owner, CreatedAt: rt.now(),
	}
	value, err := json.Marshal(record)
	if err != nil {
		return record, nil, fmt.Errorf("put artifact: %w", err)
	}
	return record, []journal.Record{
		{Kind: kindBlob, Key: record.Blob, Value: content}, {Kind: kindArtifact, Key: record.ID, Value: value},
	}, nil
}

// checkArtifact checks the size limits of an artifact.
func (rt *Runtime) checkArtifact(content []byte, meta json.RawMessage) error {
	if size := int64(len(content)); size > rt.settings.Load().Storage.ArtifactBytes {
		return builtin.TooLarge(size, rt.settings.Load().Storage.ArtifactBytes)
	}
	if len(meta) > maxMeta {
		return errcode.New(errcode.InvalidArguments, "meta of %d bytes is over the limit of %d; put long data into the content", len(meta), maxMeta)
	}
	return nil
}

// GetArtifact implements builtin.Artifacts. It returns nil if the artifact does
// not exist or has another owner than the caller.
func (h *ToolHost) GetArtifact(ctx context.Context, c tool.Call, ref string) (*builtin.Artifact, error) {
	owner, ok := h.rt.artifactOwner(c.By)
	if !ok {
		return nil, nil
	}
	a, content, err := h.rt.Artifact(ctx, ref)
	if errcode.Of(err) == errcode.ArtifactNotFound || err == nil && !a.sameOwner(owner) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := &builtin.Artifact{Type: a.Type, Meta: a.Meta, Value: content}
	if a.Binary {
		out.Data, out.Value = content, nil
	}
	return out, nil
}

// Artifact returns an artifact and its content by id or reference.
func (rt *Runtime) Artifact(ctx context.Context, ref string) (Artifact, []byte, error) {
	a, err := readRecord[Artifact](ctx, rt, kindArtifact, strings.TrimPrefix(ref, refPrefix), errcode.ArtifactNotFound)
	if err != nil {
		return a, nil, err
	}
	content, err := rt.store.Record(ctx, kindBlob, a.Blob)
	if err == nil && content == nil && a.Size > 0 {
		err = fmt.Errorf("artifact %s: content %s is missing", a.ID, a.Blob)
	}
	return a, content, err
}

// Artifacts lists the artifacts of a task, or all for "", sorted by id.
func (rt *Runtime) Artifacts(ctx context.Context, task identity.TaskID) iter.Seq2[Artifact, error] {
	return func(yield func(Artifact, error) bool) {
		for r, err := range rt.store.Records(ctx, kindArtifact, "") {
			var a Artifact
			if err == nil {
				err = json.Unmarshal(r.Value, &a)
			}
			if err == nil && task != "" && a.Task != task {
				continue
			}
			if !yield(a, err) {
				return
			}
		}
	}
}
