package runtime_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// Who waits for a task that cannot be resumed gets its stored record.
func TestResume_FailureEndsWait(t *testing.T) {
	dir := fastTempDir(t)
	m := modelFunc(func(ctx context.Context, _ model.Request) (model.Answer, error) {
		<-ctx.Done()
		return model.Answer{}, context.Cause(ctx)
	})
	fx := openFixture(t, dir, m)
	id := fx.start(t, org.TaskSpec{})
	fx.shutdown(t)

	broken := errors.New("the list of agents is broken")
	resuming := false
	limit, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	waiting := &selectedContext{Context: limit, selected: make(chan struct{})}
	waited := make(chan error, 1)
	var task org.Task
	fx = fixtureConfig{dir: dir, model: m, wrapStore: func(s journal.Store) journal.Store {
		return &listingStore{s, func() error { // the task is tracked then
			if !resuming {
				return nil
			}
			go func() {
				var err error
				task, err = fx.WaitTask(waiting, id)
				waited <- err
			}()
			<-waiting.selected
			return broken
		}}
	}}.open(t)
	resuming = true
	if err := fx.ResumeTask(t.Context(), id); !errors.Is(err, broken) {
		t.Fatalf("the task was resumed: %v", err)
	}
	if err := <-waited; err != nil || task.ID != id || task.Status != org.Running {
		t.Errorf("got task %q, %q, %v; want the stored record", task.ID, task.Status, err)
	}
}

// listingStore is a store whose list of agents with work fails with the error of list, if there is one.
type listingStore struct {
	journal.Store
	list func() error
}

// RunnableAgents implements journal.Store.
func (s *listingStore) RunnableAgents(ctx context.Context) ([]identity.AgentID, error) {
	if err := s.list(); err != nil {
		return nil, err
	}
	return s.Store.RunnableAgents(ctx)
}

// selectedContext closes selected when Done is called first.
type selectedContext struct {
	context.Context
	once     sync.Once
	selected chan struct{}
}

// Done implements context.Context.
func (c *selectedContext) Done() <-chan struct{} {
	c.once.Do(func() { close(c.selected) })
	return c.Context.Done()
}
