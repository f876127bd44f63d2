package runtime_test

import (
	"fmt"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
)

// A process may die before or after any commit between the request and the change. The next process
// goes on, and the role gains once, with one approval that was used once.
func TestOversight_DiesAtEachCommit(t *testing.T) {
	for at := int64(1); at <= 4; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d, after %v", at, after), func(t *testing.T) {
				b := newWatched(t, bySecurity, nil)
				b.shutdown(t)
				dying := &dyingStore{after: after, died: make(chan struct{})}
				dying.left.Store(at + 1) // the configuration comes first
				b.openWith(t, func(s journal.Store) journal.Store { dying.Store = s; return dying })
				_ = b.gainHelper(t)
				select {
				case <-dying.died:
				default:
					if at < 4 {
						t.Error("the process has not died")
					}
				}
				b.shutdown(t)
				b.open(t)
				if err := b.gainHelper(t); err != nil {
					t.Fatal(err)
				}
				if n := b.checkGains(t); n != 1 {
					t.Errorf("the role was created %d times\n%s", n, b.eventLog(t))
				}
			})
		}
	}
}

// gainHelper creates a role with rights as alice, with the approval of security for what waits.
func (b *bank) gainHelper(t *testing.T) error {
	spec := org.RoleSpec{Name: "helper", Use: groupSet("probe"), Grant: groupSet()}
	_, err := b.create(t, alice, spec)
	if e, ok := err.(*errcode.Error); ok && e.Code == errcode.ApprovalRequired {
		_, _ = b.DecideApprovals(t.Context(), b.approvers["security ann"], runtime.ApproverAuth{How: "test"}, []runtime.ApprovalDecision{approve(e.Details["approval"].(string))})
		_, err = b.create(t, alice, spec)
	}
	return err
}
