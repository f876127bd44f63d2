package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	goruntime "runtime"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/runtime"
)

// manyRequests is a store with many requests for approval of different people, each like one.
type manyRequests struct {
	journal.Store
	one runtime.Approval
	n   int
}

// ReadRecords implements journal.Store.
func (s *manyRequests) ReadRecords(ctx context.Context, kind, after string) iter.Seq2[journal.Record, error] {
	if kind != "approval" {
		return s.Store.ReadRecords(ctx, kind, after)
	}
	return func(yield func(journal.Record, error) bool) {
		for i := range s.n {
			a := s.one
			a.ID, a.Agent, a.Call, a.Task = identity.NewID(), identity.AgentID(identity.NewID()), identity.CallID(identity.NewID()), identity.TaskID(identity.NewID())
			a.Starter, a.Key = fmt.Sprint("user", i/100), runtime.ApprovalHash([]byte(fmt.Sprintf("%032d", i)))
			text, err := json.Marshal(a)
			if !yield(journal.Record{Kind: kind, Key: a.ID, Value: text}, err) {
				return
			}
		}
	}
}

// 100,000 calls that wait, each with its id, its reason and its digests, take at most 100 MB.
func TestApproval_MemoryOfWaitingCalls(t *testing.T) {
	b := newBank(t, financeRule)
	b.begin(t)
	one := b.waiting(t, 1)[0]
	b.shutdown(t)
	n := short.Count(10_000, 100_000)
	before := heapBytes()
	b.openWith(t, func(s journal.Store) journal.Store { return &manyRequests{s, one, n} })
	if got := len(b.ListApprovals(operator)); got != n {
		t.Fatalf("%d requests", got)
	}
	each := float64(int64(heapBytes())-int64(before)) / float64(n)
	t.Logf("%d requests, %.0f bytes each, %.1f MB for 100,000", n, each, each/10)
	if each > 1000 {
		t.Errorf("%.0f bytes for each request, want at most 1000", each)
	}
	goruntime.KeepAlive(b)
}
