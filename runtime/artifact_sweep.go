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

// blobs knows of contents that no record on disk names yet and that are not to
// be swept. The zero blobs is ready.
type blobs struct {
	mu   sync.Mutex
	kept map[string]bool // in the life of this process: a task to come will name them
	new  map[string]bool // named by a commit since the sweep under way began; nil when there is none
}

// keep spares a content until the process ends.
func (b *blobs) keep(hash string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept == nil {
		b.kept = map[string]bool{}
	}
	b.kept[hash] = true
}

// named is called by the committer with what a commit names.
func (b *blobs) named(hash string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.new != nil {
		b.new[hash] = true
	}
}

// begin notes from now on what commits name; there is one sweep at a time.
func (b *blobs) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.new != nil {
		return errcode.New(errcode.Conflict, "contents are being swept already; wait for it to end")
	}
	b.new = map[string]bool{}
	return nil
}

func (b *blobs) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.new = nil
}

// keepReferenced takes from a list what is not to be swept.
func (b *blobs) keepReferenced(found map[string]int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(found, func(hash string, _ int) bool { return b.kept[hash] || b.new[hash] })
}

// SweepResult is what a sweep removed, or would have.
type SweepResult struct {
	Contents int   `json:"contents"`
	Bytes    int64 `json:"bytes"`
	DryRun   bool  `json:"dryRun,omitempty"`
}

// CollectGarbage removes stored contents that nothing names: no artifact, no task whose
// configuration they are, no event of any journal. With dryRun it only counts
// them. It may run beside everything else:
//
//  1. a commit marks the beginning: what was named before it is on disk when
//     it returns, what is named after it is noted (blobs.named),
//  2. what nothing on disk names is found,
//  3. one commit removes of it what was not named meanwhile. Whoever names a
//     content later puts it again, in the same commit.
//
// When a record cannot be read nothing is removed, since nobody knows what it
// names. Errors: conflict while another sweep is under way.
func (rt *Runtime) CollectGarbage(ctx context.Context, dryRun bool) (SweepResult, error) {
	if err := rt.beginSweep(); err != nil {
		return SweepResult{}, err
	}
	defer rt.blobs.end()
	found, err := rt.unreferencedBlobs(ctx)
	if err != nil {
		return SweepResult{}, fmt.Errorf("sweep stored contents: %w; nothing was removed", err)
	}
	if dryRun {
		rt.blobs.keepReferenced(found)
		return sweptOf(found, true), nil
	}
	_, err = rt.commit(&journal.Batch{Prepare: func(b *journal.Batch) error {
		rt.blobs.keepReferenced(found)
		for hash := range found {
			b.Put = append(b.Put, journal.Record{Kind: kindBlob, Key: hash})
		}
		return nil
	}})
	if err != nil {
		return SweepResult{}, err
	}
	return sweptOf(found, false), nil
}

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

func sweptOf(found map[string]int, dryRun bool) SweepResult {
	s := SweepResult{Contents: len(found), DryRun: dryRun}
	for _, size := range found {
		s.Bytes += int64(size)
	}
	return s
}

// unreferencedBlobs lists the contents that nothing names, with their sizes.
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

// recordFields gives what the records of a kind have in one field.
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

var hashes = regexp.MustCompile(`[0-9a-f]{64}`)

// dropReferencedByEvents takes from found what an event names. The log is long: it is read
// only when there is something to look for.
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
