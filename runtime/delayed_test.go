package runtime_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// tallied is a store that counts how often all of its delayed messages or all
// its runnable agents are read.
type tallied struct {
	journal.Store
	reads atomic.Int64
}

// Delayed implements journal.Mailbox.
func (s *tallied) Delayed(ctx context.Context) ([]journal.Message, error) {
	s.reads.Add(1)
	return s.Store.Delayed(ctx)
}

// Runnable implements journal.Mailbox.
func (s *tallied) Runnable(ctx context.Context) ([]identity.AgentID, error) {
	s.reads.Add(1)
	return s.Store.Runnable(ctx)
}

// later sends a message that is due in an hour, as the operator.
func (h *house) later(t *testing.T, to identity.AgentID, payload string) {
	t.Helper()
	if _, err := h.Send(t.Context(), called(operator), string(to), json.RawMessage(payload), time.Hour); err != nil {
		t.Error(err)
	}
}

// However many messages wait in other tasks, the end of an agent or a task
// does not read them, and leaves them where they are.
func TestAnEndDoesNotReadTheMailOfOthers(t *testing.T) {
	var store *tallied
	free := make(chan struct{})
	h := plan{
		store: func(s journal.Store) journal.Store { store = &tallied{Store: s}; return store },
		model: busyRoot(free, waits),
	}.open(t)
	other, id, cancelled := h.start(t, org.TaskSpec{}), h.start(t, org.TaskSpec{}), h.start(t, org.TaskSpec{})
	h.later(t, h.top(t, other), `"stays"`)
	agent := h.hire(t, h.top(t, id), org.RoleSpec{Name: "worker", Use: use()})
	h.later(t, agent, `"goes with the agent"`)
	h.later(t, h.top(t, cancelled), `"goes with the task"`)

	if err := h.Terminate(t.Context(), called(operator), agent, ""); err != nil {
		t.Fatal(err)
	}
	if err := h.Cancel(t.Context(), cancelled, ""); err != nil {
		t.Fatal(err)
	}
	close(free)
	h.want(t, h.wait(t, id), `"free"`, "")
	if n := store.reads.Load(); n > 0 {
		t.Errorf("the mail of all was read %d times", n)
	}
	list, err := h.store.Delayed(t.Context())
	if err != nil || len(list) != 1 || string(list[0].Payload) != `"stays"` {
		t.Errorf("left are %+v, %v; want the other task's", list, err)
	}
}

// A message whose recipient is ended before its sender hears that it was sent
// keeps no task from ending.
func TestAMessageForWhoIsGoneHoldsNothingUp(t *testing.T) {
	sent, terminated, free := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h := plan{
		store: func(s journal.Store) journal.Store {
			return &between{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
				seq, err := s.Commit(ctx, b)
				if len(b.Send) > 0 && !b.Send[0].Due.IsZero() {
					close(sent)
					<-terminated
				}
				return seq, err
			}}
		},
		model: busyRoot(free, waits),
	}.open(t)
	id := h.start(t, org.TaskSpec{})
	agent := h.hire(t, h.top(t, id), org.RoleSpec{Name: "worker", Use: use()})
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		h.later(t, agent, `"late"`)
	}()
	<-sent
	if err := h.Terminate(t.Context(), called(operator), agent, ""); err != nil {
		t.Fatal(err)
	}
	close(terminated)
	<-heard
	close(free)
	h.want(t, h.wait(t, id), `"free"`, "")
}
