package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// dyingStore is the store of a process that dies before or after its n-th commit.
type dyingStore struct {
	journal.Store
	left  atomic.Int64
	after bool
	died  chan struct{}
	once  sync.Once
}

var errDied = errors.New("the process died")

// Commit implements journal.Log.
func (s *dyingStore) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	n := s.left.Add(-1)
	if n < 0 || n == 0 && !s.after {
		s.once.Do(func() { close(s.died) })
		return 0, fmt.Errorf("%w: %w", journal.ErrClosed, errDied)
	}
	seq, err := s.Store.Commit(ctx, b)
	if n == 0 {
		s.once.Do(func() { close(s.died) })
		return 0, fmt.Errorf("%w: %w", journal.ErrClosed, errDied)
	}
	return seq, err
}

// A process may die before or after any commit between a request and the end of its task. The
// next process goes on, and money is transferred at most once, after both people have approved.
func TestApproval_DiesAtEachCommit(t *testing.T) {
	for at := int64(1); at <= 12; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d, after %v", at, after), func(t *testing.T) { dieAt(t, at, after) })
		}
	}
}

func dieAt(t *testing.T, at int64, after bool) {
	b := &bank{dir: fastTempDir(t), paid: new(atomic.Int64), rule: approval.Rule{Tools: []string{"transfer"}, From: bothRoles}, model: clerkModel}
	b.open(t)
	task := b.begin(t)
	b.waiting(t, 1)
	b.shutdown(t)
	dying := &dyingStore{after: after, died: make(chan struct{})}
	dying.left.Store(at + 2) // the configuration and the epoch come first
	b.openWith(t, func(s journal.Store) journal.Store { dying.Store = s; return dying })
	_ = b.ResumeTask(t.Context(), task)
	b.approveAll(t)
	ended, wait := make(chan struct{}), b.WaitTask // of this process: b changes with the next one
	go func() { defer close(ended); _, _ = wait(t.Context(), task) }()
	select {
	case <-dying.died:
	case <-ended:
	}
	b.shutdown(t)
	before := b.paid.Load()
	b.open(t)
	b.resume(t, task)
	b.approveAll(t)
	result := string(b.wait(t, task).Result)
	paid := b.paid.Load()
	if paid > 1 || strings.Contains(result, "5") != (paid == 1) && !strings.Contains(result, string(errcode.ToolInterrupted)) {
		t.Errorf("%d transfers before, %d after: %s\n%s", before, paid, result, b.eventLog(t))
	}
	b.checkApproved(t)
}

// approveAll approves each request that waits, by one person of each role.
func (b *bank) approveAll(t *testing.T) {
	for _, a := range b.ListApprovals(operator) {
		for _, name := range []string{"finance ann", "security bob"} {
			_, _ = b.DecideApprovals(t.Context(), b.approvers[name], runtime.ApproverAuth{How: "test"}, []runtime.ApprovalDecision{approve(a.ID)})
		}
	}
}

// checkApproved requires of each transfer in the record that both roles have approved its request
// before it began, and that no other transfer has used the request.
func (b *bank) checkApproved(t *testing.T) {
	t.Helper()
	votes, used := map[string][]string{}, map[string]bool{}
	for _, e := range b.events(t) {
		switch body := e.Body.(type) {
		case journal.ApprovalDecided:
			if body.Outcome == journal.ApprovalVoted || body.Outcome == journal.ApprovalGiven {
				votes[body.Approval] = append(votes[body.Approval], body.As)
			}
		case journal.ToolCall:
			if body.Tool != "transfer" || body.Decision != journal.Allowed {
				continue
			}
			got := slices.Compact(slices.Sorted(slices.Values(votes[body.Approval])))
			if !slices.Equal(got, []string{"finance", "security"}) || used[body.Approval] {
				t.Errorf("a transfer with the approvals of %v, used before: %v", got, used[body.Approval])
			}
			used[body.Approval] = true
		}
	}
}

// In many concurrent histories of calls and decisions, by right and wrong people, each effect has
// its own approval of both roles before it.
func TestApproval_ConcurrentHistories(t *testing.T) {
	b := newBank(t, approval.Rule{From: bothRoles})
	people := []identity.Principal{operator}
	for _, p := range b.approvers {
		people = append(people, p)
	}
	callers := short.Count(300, 10_000)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			for i := worker; i < callers; i += 8 {
				b.history(t, random, people, i)
			}
		})
	}
	wg.Wait()
	calls := bodiesOf[journal.ToolCall](t, b.fixture)
	allowed := slices.DeleteFunc(calls, func(c journal.ToolCall) bool { return c.Decision != journal.Allowed })
	if len(allowed) == 0 || int64(len(allowed)) != b.paid.Load() {
		t.Errorf("%d transfers, %d on record", b.paid.Load(), len(allowed))
	}
	b.checkApproved(t)
}

// history makes one call three times while two people decide about it at once.
func (b *bank) history(t *testing.T, random *rand.Rand, people []identity.Principal, n int) {
	caller := identity.ByCaller(identity.UserName(fmt.Sprint("caller", n)), b.clerk.ID)
	a, err := b.InvokeTool(t.Context(), caller, "transfer", mustJSON(obj{"amount": n}))
	if err != nil {
		t.Error(err)
		return
	}
	decided := make([]runtime.ApprovalDecision, 4)
	for i := range decided {
		decided[i] = runtime.ApprovalDecision{ID: a.Approval(), Approve: random.IntN(10) > 0, Reason: "r"}
	}
	var wg sync.WaitGroup
	for _, d := range decided {
		by := people[random.IntN(len(people))]
		wg.Go(func() {
			_, _ = b.DecideApprovals(t.Context(), by, runtime.ApproverAuth{How: "test"}, []runtime.ApprovalDecision{d})
		})
	}
	for range 2 {
		wg.Go(func() { _, _ = b.InvokeTool(t.Context(), caller, "transfer", mustJSON(obj{"amount": n})) })
	}
	wg.Wait()
	_, _ = b.InvokeTool(t.Context(), caller, "transfer", mustJSON(obj{"amount": n}))
}
