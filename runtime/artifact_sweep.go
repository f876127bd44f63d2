package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

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
//     it returns; references committed later are noted (blobReferences.add).
//  2. The contents without a reference on disk are listed.
//  3. One commit removes the artifacts that were not referenced meanwhile. A
//     later reference stores the content again, in the same commit.
//
// If a record cannot be read nothing is removed, since its references are
// unknown. Errors: conflict while another collection is running.
func (s *ArtifactStore) CollectGarbage(ctx context.Context, dryRun bool) (SweepResult, error) {
	if err := s.beginSweep(); err != nil {
		return SweepResult{}, err
	}
	defer s.references.endSweep()
	found, err := s.unreferencedBlobs(ctx)
	if err != nil {
		return SweepResult{}, fmt.Errorf("collect garbage: %w; nothing was removed", err)
	}
	if dryRun {
		s.references.dropFrom(found)
		result := newSweepResult(found)
		result.DryRun = true
		return result, nil
	}
	_, err = s.commit(&journal.Batch{Prepare: func(b *journal.Batch) error {
		s.references.dropFrom(found)
		for hash := range found {
			b.Put = append(b.Put, journal.Record{Kind: kindBlob, Key: hash})
		}
		return nil
	}})
	if err != nil {
		return SweepResult{}, err
	}
	return newSweepResult(found), nil
}

// beginSweep commits the mark of step 1.
func (s *ArtifactStore) beginSweep() error {
	began := false
	_, err := s.commit(&journal.Batch{Prepare: func(*journal.Batch) error {
		err := s.references.beginSweep()
		began = err == nil
		return err
	}})
	if err != nil && began {
		s.references.endSweep()
	}
	return err
}

func newSweepResult(found map[string]int) SweepResult {
	s := SweepResult{Contents: len(found)}
	for _, size := range found {
		s.Bytes += int64(size)
	}
	return s
}

// unreferencedBlobs returns the contents without a reference on disk, with
// their sizes.
func (s *ArtifactStore) unreferencedBlobs(ctx context.Context) (map[string]int, error) {
	found := map[string]int{}
	for e, err := range s.store.ReadEntries(ctx, kindBlob, "") {
		if err != nil {
			return nil, err
		}
		found[e.Key] = e.Size
	}
	for _, named := range []iter.Seq2[string, error]{
		s.recordFields(ctx, kindArtifact, "blob"), s.recordFields(ctx, string(org.KindTask), "config"),
	} {
		for hash, err := range named {
			if err != nil {
				return nil, err
			}
			delete(found, hash)
		}
	}
	return found, s.dropReferencedByEvents(ctx, found)
}

// recordFields yields the value of one field for each record of a kind.
func (s *ArtifactStore) recordFields(ctx context.Context, kind, field string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for r, err := range s.store.ReadRecords(ctx, kind, "") {
			if err == nil && !gjson.ValidBytes(r.Value) {
				err = fmt.Errorf("read %s %s: %w", kind, r.Key, journal.ErrDamaged)
			}
			if !yield(gjson.GetBytes(r.Value, field).Str, err) {
				return
			}
		}
	}
}

// hashPattern matches the hash of a content in an event.
var hashPattern = textutil.LazyPattern(`[0-9a-f]{64}`)

// dropReferencedByEvents removes from found what an event references. It reads
// the whole log, so it returns early if found is empty.
func (s *ArtifactStore) dropReferencedByEvents(ctx context.Context, found map[string]int) error {
	if len(found) == 0 {
		return nil
	}
	for e, err := range s.store.FollowEvents(ctx, 0, journal.StoredOnly) {
		if err != nil {
			return err
		}
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		for _, hash := range hashPattern().FindAll(text, -1) {
			delete(found, string(hash))
		}
	}
	return nil
}
