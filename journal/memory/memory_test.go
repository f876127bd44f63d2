package memory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/journaltest"
	"github.com/rolecall/rolecall/journal/memory"
)

func Example() {
	store, ctx := memory.New(), context.Background()
	seq, err := store.Commit(ctx, &journal.Batch{
		Stream: "ann",
		Events: []journal.Event{{Agent: "ann", Body: journal.ContextCompressed{Summary: "so far", Items: 2}}},
		Put:    []journal.Record{{Kind: "note", Key: "n1", Value: []byte(`"hello"`)}},
	})
	fmt.Println(seq, err)
	for e, err := range store.Read(ctx, "ann", 0) {
		fmt.Println(e.Seq, e.Body.EventType(), err)
	}
	// Output:
	// 1 <nil>
	// 1 context_compressed <nil>
}

func TestStore_PassesSuite(t *testing.T) {
	journaltest.Run(t, func(testing.TB) (journal.Store, func() journal.Store) {
		s := memory.New()
		return s, func() journal.Store { return s }
	})
}

// callAll calls all methods with a context and returns their errors.
func callAll(s *memory.Store, ctx context.Context) map[string]error {
	errs := map[string]error{"Read": nil, "Follow": nil, "Records": nil, "Entries": nil}
	_, errs["Commit"] = s.Commit(ctx, &journal.Batch{})
	_, errs["Inbox"] = s.ReadInbox(ctx, "a")
	_, errs["Delayed"] = s.DelayedMessages(ctx)
	_, errs["Runnable"] = s.RunnableAgents(ctx)
	_, errs["Record"] = s.ReadRecord(ctx, "k", "a")
	for _, err := range s.Read(ctx, "a", 0) {
		errs["Read"] = err
	}
	for _, err := range s.FollowEvents(ctx, 0, journal.StoredOnly) {
		errs["Follow"] = err
	}
	for _, err := range s.ReadRecords(ctx, "k", "") {
		errs["Records"] = err
	}
	for _, err := range s.ReadEntries(ctx, "k", "") {
		errs["Entries"] = err
	}
	return errs
}

func TestStore_RejectsClosedOrCancelled(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	closed := memory.New()
	for range 2 {
		if err := closed.Close(); err != nil {
			t.Error(err)
		}
	}
	tests := []struct {
		name  string
		store *memory.Store
		ctx   context.Context
		want  error
	}{
		{"cancelled context", memory.New(), ended, context.Canceled},
		{"closed store", closed, t.Context(), journal.ErrClosed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, err := range callAll(tt.store, tt.ctx) {
				if !errors.Is(err, tt.want) {
					t.Errorf("%s: got %v, want %v", name, err, tt.want)
				}
			}
		})
	}
}

func TestStore_CloseEndsFollow(t *testing.T) {
	s := memory.New()
	ended, waiting := make(chan error), make(chan struct{})
	go func() {
		for _, err := range s.FollowEvents(context.Background(), 0, journal.WaitForMore) {
			if err != nil {
				ended <- err
				return
			}
			close(waiting)
		}
	}()
	if _, err := s.Commit(t.Context(), &journal.Batch{Events: []journal.Event{{Body: journal.TurnFailed{}}}}); err != nil {
		t.Fatal(err)
	}
	<-waiting
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, journal.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

// An event without a body is rejected. If Prepare has run, its changes cannot
// be undone, so the store closes.
func TestStore_RejectsEventWithoutBody(t *testing.T) {
	for _, prepared := range []bool{false, true} {
		t.Run(fmt.Sprint("with Prepare: ", prepared), func(t *testing.T) {
			s := memory.New()
			b := &journal.Batch{Events: make([]journal.Event, 1)}
			if prepared {
				b.Prepare = func(*journal.Batch) error { return nil }
			}
			if _, err := s.Commit(t.Context(), b); err == nil || errors.Is(err, journal.ErrClosed) != prepared {
				t.Errorf("got %v", err)
			}
			if _, err := s.Commit(t.Context(), &journal.Batch{}); errors.Is(err, journal.ErrClosed) != prepared {
				t.Errorf("the next batch: got %v", err)
			}
		})
	}
}
