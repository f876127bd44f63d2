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

// mailboxCounter is a store that counts the reads of all delayed messages or
// all runnable agents.
type mailboxCounter struct {
	journal.Store
	reads atomic.Int64
}

// DelayedMessages implements journal.Mailbox.
func (s *mailboxCounter) DelayedMessages(ctx context.Context) ([]journal.Message, error) {
	s.reads.Add(1)
	return s.Store.DelayedMessages(ctx)
}

// RunnableAgents implements journal.Mailbox.
func (s *mailboxCounter) RunnableAgents(ctx context.Context) ([]identity.AgentID, error) {
	s.reads.Add(1)
	return s.Store.RunnableAgents(ctx)
}

// sendDelayed sends a message that is due in an hour, as the operator.
func (fx *fixture) sendDelayed(t *testing.T, to identity.AgentID, payload string) {
	t.Helper()
	if _, err := fx.SendMessage(t.Context(), newCall(operator), string(to), json.RawMessage(payload), time.Hour); err != nil {
		t.Error(err)
	}
}

// The end of an agent or a task does not read the delayed messages of other
// tasks, and leaves them as they are.
func TestTerminate_ReadsNoOtherDelayedMessages(t *testing.T) {
	var store *mailboxCounter
	free := make(chan struct{})
	fx := fixtureConfig{
		wrapStore: func(s journal.Store) journal.Store { store = &mailboxCounter{Store: s}; return store },
		model:     blockingRoot(free, alwaysWait),
	}.open(t)
	opened := store.reads.Load()
	other, id, cancelled := fx.start(t, org.TaskSpec{}), fx.start(t, org.TaskSpec{}), fx.start(t, org.TaskSpec{})
	fx.sendDelayed(t, fx.topAgent(t, other), `"stays"`)
	agent := fx.spawnAgent(t, fx.topAgent(t, id), org.RoleSpec{Name: "worker", Use: groupSet()})
	fx.sendDelayed(t, agent, `"goes with the agent"`)
	fx.sendDelayed(t, fx.topAgent(t, cancelled), `"kept for a retry"`)

	if err := fx.TerminateAgent(t.Context(), newCall(operator), agent, ""); err != nil {
		t.Fatal(err)
	}
	if err := fx.CancelTask(t.Context(), cancelled, ""); err != nil {
		t.Fatal(err)
	}
	close(free)
	fx.wantResult(t, fx.wait(t, id), `"free"`, "")
	if n := store.reads.Load() - opened; n > 0 {
		t.Errorf("all delayed messages were read %d times", n)
	}
	list, err := fx.store.DelayedMessages(t.Context())
	if err != nil || len(list) != 2 || string(list[0].Payload) != `"stays"` || string(list[1].Payload) != `"kept for a retry"` {
		t.Errorf("remaining: %+v, %v; want that of the other task and of the cancelled one", list, err)
	}
}

// A delayed message does not keep a task running if its recipient is terminated
// before the send returns.
func TestSend_DelayedToTerminatedAgentDoesNotBlockTask(t *testing.T) {
	sent, terminated, free := make(chan struct{}), make(chan struct{}), make(chan struct{})
	fx := fixtureConfig{
		wrapStore: func(s journal.Store) journal.Store {
			return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
				seq, err := s.Commit(ctx, b)
				if len(b.Send) > 0 && !b.Send[0].Due.IsZero() {
					close(sent)
					<-terminated
				}
				return seq, err
			}}
		},
		model: blockingRoot(free, alwaysWait),
	}.open(t)
	id := fx.start(t, org.TaskSpec{})
	agent := fx.spawnAgent(t, fx.topAgent(t, id), org.RoleSpec{Name: "worker", Use: groupSet()})
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		fx.sendDelayed(t, agent, `"late"`)
	}()
	<-sent
	if err := fx.TerminateAgent(t.Context(), newCall(operator), agent, ""); err != nil {
		t.Fatal(err)
	}
	close(terminated)
	<-heard
	close(free)
	fx.wantResult(t, fx.wait(t, id), `"free"`, "")
}
