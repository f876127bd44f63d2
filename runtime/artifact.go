package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/builtin/workspace"
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
	Call      identity.CallID  `json:"callId,omitempty"` // whose result has the content; "" for other artifacts
	CreatedAt time.Time        `json:"createdAt"`

	// Set for the artifacts of external callers, which belong to no task.
	Caller string `json:"caller,omitempty"` // the identity.Principal, as text
	Owner  string `json:"owner,omitempty"`  // its identity.Principal.Key
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

// ArtifactStore stores the artifacts of agents and callers, and contents that
// are found by their hash, such as the configurations that tasks started with.
// Equal contents are stored once. All methods are safe for concurrent use.
type ArtifactStore struct {
	store      journal.Store
	org        *org.Org
	commit     func(*journal.Batch) (uint64, error)
	now        func() time.Time
	limits     func() StorageLimits // the active limits
	references blobReferences       // that are not on disk yet
}

// ArtifactStore returns the store of artifacts.
func (rt *Runtime) ArtifactStore() *ArtifactStore { return rt.artifacts }

// ReadArtifact returns an artifact and its content by id or reference. Errors:
// artifact_not_found.
func (s *ArtifactStore) ReadArtifact(ctx context.Context, ref string) (Artifact, []byte, error) {
	a, err := readRecord[Artifact](ctx, s.store, kindArtifact, strings.TrimPrefix(ref, refPrefix), errcode.ArtifactNotFound)
	if err != nil {
		return a, nil, err
	}
	content, err := s.store.ReadRecord(ctx, kindBlob, a.Blob)
	if err == nil && content == nil && a.Size > 0 {
		err = fmt.Errorf("artifact %s: content %s is missing", a.ID, a.Blob)
	}
	return a, content, err
}

// ListArtifacts yields the artifacts of a task, or all for "", sorted by id. A record
// that cannot be read is yielded with its error, and the sequence continues.
func (s *ArtifactStore) ListArtifacts(ctx context.Context, task identity.TaskID) iter.Seq2[Artifact, error] {
	return func(yield func(Artifact, error) bool) {
		for r, err := range s.store.ReadRecords(ctx, kindArtifact, "") {
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

// limit returns the largest permitted content of an artifact, in bytes.
func (s *ArtifactStore) limit() int64 { return s.limits().ArtifactBytes }

// ownerFields returns an Artifact with the owner fields of a principal set: the
// task of an agent, or the caller. It returns false for other principals and
// terminated agents.
func (s *ArtifactStore) ownerFields(by identity.Principal) (Artifact, bool) {
	switch by.Kind {
	case identity.Agent:
		agent, ok := s.org.AgentByID(by.Agent)
		return Artifact{Task: agent.Task, By: agent.ID}, ok
	case identity.Caller:
		return Artifact{Caller: by.String(), Owner: by.Key()}, org.CheckCaller(by) == nil
	}
	return Artifact{}, false
}

// newRecords returns a new artifact with what must be stored for it. owner has
// the owner fields. The commit that stores it must add its content to
// references.
func (s *ArtifactStore) newRecords(id string, owner Artifact, a builtin.Artifact) (Artifact, []journal.Record, error) {
	content := a.Data
	if content == nil {
		content = a.Value
	}
	if err := s.check(content, a.Meta); err != nil {
		return Artifact{}, nil, err
	}
	record := Artifact{
		ID: id, Type: a.Type, Meta: a.Meta,
		Blob: hashOf(content), Binary: a.Data != nil, Size: len(content), MediaType: a.MediaType(),
		Task: owner.Task, By: owner.By, Call: owner.Call, Caller: owner.Caller, Owner: owner.Owner, CreatedAt: s.now(),
	}
	value, err := json.Marshal(record)
	if err != nil {
		return record, nil, fmt.Errorf("put artifact: %w", err)
	}
	put := []journal.Record{{Kind: kindBlob, Key: record.Blob, Value: content}, {Kind: kindArtifact, Key: record.ID, Value: value}}
	if record.Owner != "" {
		put = append(put, listRecord(record))
	}
	return record, put, nil
}

// check checks the size limits of an artifact.
func (s *ArtifactStore) check(content []byte, meta json.RawMessage) error {
	if size, limit := int64(len(content)), s.limit(); size > limit {
		return workspace.TooLarge(size, limit)
	}
	if len(meta) > maxMeta {
		return errcode.New(errcode.InvalidArguments, "meta of %d bytes is over the limit of %d; put long data into the content", len(meta), maxMeta)
	}
	return nil
}

// PutArtifact implements builtin.ArtifactStore.
func (h *ToolHost) PutArtifact(_ context.Context, c tool.Call, a builtin.Artifact) (string, error) {
	store := h.rt.artifacts
	owner, ok := store.ownerFields(c.By)
	if !ok {
		return "", errcode.New(errcode.AgentNotFound, "put artifact: %s not found", c.By)
	}
	record, put, err := store.newRecords(identity.DeriveID(string(c.ID), "artifact"), owner, a)
	if err != nil {
		return "", err
	}
	if err := h.rt.recorded.checkPrincipal(c.By, record.Size); err != nil {
		return "", err
	}
	hold := diskHold{guard: h.rt.disk}
	if err := hold.set(int64(record.Size)); err != nil { // the content may come from a file
		return "", err
	}
	defer hold.end()
	defer h.rt.acquireLargeCommit(c.By, record.Size)()
	err = h.rt.commitBy(c.By, func(b *journal.Batch) error {
		store.references.add(record.Blob)
		b.Put = put
		return nil
	})
	return refPrefix + record.ID, err
}

// GetArtifact implements builtin.ArtifactStore. It returns nil if the artifact does
// not exist or has another owner than the caller.
func (h *ToolHost) GetArtifact(ctx context.Context, c tool.Call, ref string) (*builtin.Artifact, error) {
	owner, ok := h.rt.artifacts.ownerFields(c.By)
	if !ok {
		return nil, nil
	}
	a, content, err := h.rt.artifacts.ReadArtifact(ctx, ref)
	if errcode.CodeOf(err) == errcode.ArtifactNotFound || err == nil && !a.sameOwner(owner) {
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
