package runtime_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

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

	request, disconnect := context.WithCancel(t.Context())
	defer disconnect()
	limit, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	waiting := &selectedContext{Context: limit, selected: make(chan struct{})}
	waited := make(chan error, 1)
	var task org.Task
	fx = fixtureConfig{dir: dir, model: m, wrapStore: func(s journal.Store) journal.Store {
		return &hookStore{Store: s, record: func(kind, _ string) {
			if kind != "turns" || request.Err() != nil { // the task is tracked when its turns are read
				return
			}
			go func() {
				var err error
				task, err = fx.WaitTask(waiting, id)
				waited <- err
			}()
			<-waiting.selected
			disconnect()
		}}
	}}.open(t)
	if err := fx.ResumeTask(request, id); !errors.Is(err, context.Canceled) {
		t.Fatalf("the task was resumed: %v", err)
	}
	if err := <-waited; err != nil || task.ID != id || task.Status != org.Running {
		t.Errorf("got task %q, %q, %v; want the stored record", task.ID, task.Status, err)
	}
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
