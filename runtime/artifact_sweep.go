package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// blobs tracks contents that the garbage collection must keep although no
// record on disk references them yet. The zero value is ready to use.
type blobs struct {
	mu         sync.Mutex      // guards the fields below
	pinned     map[string]bool // until the process ends: a future task will reference them
	referenced map[string]bool // referenced by commits during the current collection; nil if none is running
}

// pin protects a content until the process ends.
func (b *blobs) pin(hash string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pinned == nil {
		b.pinned = map[string]bool{}
	}
	b.pinned[hash] = true
}

// addReference notes that a commit references a content. It is called within the
// commit.
func (b *blobs) addReference(hash string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.referenced != nil {
		b.referenced[hash] = true
	}
}

// begin starts collecting the references of commits. It fails if a collection
// is running.
func (b *blobs) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.referenced != nil {
		return errcode.New(errcode.Conflict, "a garbage collection is running; wait for it to end")
	}
	b.referenced = map[string]bool{}
	return nil
}

func (b *blobs) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.referenced = nil
}

// dropReferenced removes from found what must be kept.
func (b *blobs) dropReferenced(found map[string]int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(found, func(hash string, _ int) bool { return b.pinned[hash] || b.referenced[hash] })
}

// SweepResult counts what a garbage collection removed, or with DryRun would
// remove.
type SweepResult struct {
	Contents int   `json:"contents"`
	Bytes    int64 `json:"bytes"`
	DryRun   bool  `json:"dryRun,omitempty"`
}

// CollectGarbage removes stored contents without a reference: no artifact, no
// task's configuration and no event of any journal names them. With dryRun it
// only counts them. It may run while the organization works:
//
//  1. A commit marks the start. References committed before it are on disk when
//     it returns; references committed later are noted (blobs.addReference).
//  2. The contents without a reference on disk are listed.
//  3. One commit removes those that were not referenced meanwhile. A later
//     reference stores the content again, in the same commit.
//
// If a record cannot be read nothing is removed, since its references are
// unknown. Errors: conflict while another collection is running.
func (rt *Runtime) CollectGarbage(ctx context.Context, dryRun bool) (SweepResult, error) {
	if err := rt.beginSweep(); err != nil {
		return SweepResult{}, err
	}
	defer rt.blobs.end()
	found, err := rt.unreferencedBlobs(ctx)
	if err != nil {
		return SweepResult{}, fmt.Errorf("collect garbage: %w; nothing was removed", err)
	}
	if dryRun {
		rt.blobs.dropReferenced(found)
		return newSweepResult(found, true), nil
	}
	_, err = rt.commit(&journal.Batch{Prepare: func(b *journal.Batch) error {
		rt.blobs.dropReferenced(found)
		for hash := range found {
			b.Put = append(b.Put, journal.Record{Kind: kindBlob, Key: hash})
		}
		return nil
	}})
	if err != nil {
		return SweepResult{}, err
	}
	return newSweepResult(found, false), nil
}

// beginSweep commits the mark of step 1.
func (rt *Runtime) beginSweep() error {
	began := false
	_, err := rt.commit(&journal.Batch{Prepare: func(*journal.Batch) error {
		err := rt.blobs.begin()
		began = err == nil
		return err
	}})
	if err != nil && began {
		rt.blobs.end()
	}
	return err
}

func newSweepResult(found map[string]int, dryRun bool) SweepResult {
	s := SweepResult{Contents: len(found), DryRun: dryRun}
	for _, size := range found {
		s.Bytes += int64(size)
	}
	return s
}

// unreferencedBlobs returns the contents without a reference on disk, with
// their sizes.
func (rt *Runtime) unreferencedBlobs(ctx context.Context) (map[string]int, error) {
	found := map[string]int{}
	for e, err := range rt.store.Entries(ctx, kindBlob, "") {
		if err != nil {
			return nil, err
		}
		found[e.Key] = e.Size
	}
	for _, named := range []iter.Seq2[string, error]{
		rt.recordFields(ctx, kindArtifact, "blob"), rt.recordFields(ctx, string(org.KindTask), "config"),
	} {
		for hash, err := range named {
			if err != nil {
				return nil, err
			}
			delete(found, hash)
		}
	}
	return found, rt.dropReferencedByEvents(ctx, found)
}

// recordFields yields the value of one field for each record of a kind.
func (rt *Runtime) recordFields(ctx context.Context, kind, field string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for r, err := range rt.store.Records(ctx, kind, "") {
			if err == nil && !gjson.ValidBytes(r.Value) {
				err = fmt.Errorf("read %s %s: %w", kind, r.Key, journal.ErrDamaged)
			}
			if !yield(gjson.GetBytes(r.Value, field).Str, err) {
				return
			}
		}
	}
}

// hashes matches the hash of a content in an event.
var hashes = regexp.MustCompile(`[0-9a-f]{64}`)

// dropReferencedByEvents removes from found what an event references. It reads
// the whole log, so it returns early if found is empty.
func (rt *Runtime) dropReferencedByEvents(ctx context.Context, found map[string]int) error {
	if len(found) == 0 {
		return nil
	}
	for e, err := range rt.store.Follow(ctx, 0, false) {
		if err != nil {
			return err
		}
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		for _, hash := range hashes.FindAll(text, -1) {
			delete(found, string(hash))
		}
	}
	return nil
}
