package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
)

// hashOf returns the SHA-256 hash of a content, in hex.
func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// PutBlob stores content under its SHA-256 hash, in hex, and returns the hash.
// The content is kept at least until the process ends.
func (s *ArtifactStore) PutBlob(content []byte) (string, error) {
	hash := hashOf(content)
	s.references.pin(hash)
	_, err := s.commit(&journal.Batch{Put: []journal.Record{{Kind: kindBlob, Key: hash, Value: content}}})
	return hash, err
}

// ReadBlob returns content that PutBlob stored.
func (s *ArtifactStore) ReadBlob(ctx context.Context, hash string) ([]byte, error) {
	content, err := s.store.ReadRecord(ctx, kindBlob, hash)
	if err == nil && content == nil {
		return nil, errcode.New(errcode.ArtifactNotFound, "stored content %q not found", hash)
	}
	return content, err
}

// blobReferences tracks the contents that the garbage collection must keep
// although no record on disk references them yet. The zero value is ready to
// use.
type blobReferences struct {
	mu         sync.Mutex      // guards the fields below
	pinned     map[string]bool // until the process ends: a future task will reference them
	referenced map[string]bool // referenced by commits during the current collection; nil if none is running
}

// pin protects a content until the process ends.
func (r *blobReferences) pin(hash string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pinned == nil {
		r.pinned = map[string]bool{}
	}
	r.pinned[hash] = true
}

// add notes that a commit references a content. It is called within the
// commit.
func (r *blobReferences) add(hash string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.referenced != nil {
		r.referenced[hash] = true
	}
}

// beginSweep starts collecting the references of commits. It fails if a
// collection is running.
func (r *blobReferences) beginSweep() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.referenced != nil {
		return errcode.New(errcode.Conflict, "a garbage collection is running; wait for it to end")
	}
	r.referenced = map[string]bool{}
	return nil
}

// endSweep stops collecting references.
func (r *blobReferences) endSweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.referenced = nil
}

// dropFrom removes from found what must be kept.
func (r *blobReferences) dropFrom(found map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(found, func(hash string, _ int) bool { return r.pinned[hash] || r.referenced[hash] })
}
