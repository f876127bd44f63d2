package runtime_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// When a commit fails, a call of another agent whose intent was just committed
// does not start: the next process decides about it. Wait returns the error,
// Fatal is called once, and Close returns.
func TestRuntime_StoppedStoreStartsNoCall(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Mutating, tool.Idempotent, tool.ReadOnly} {
		t.Run(effect.String(), func(t *testing.T) {
			f := &failingStore{recorded: make(chan struct{}), stopped: make(chan struct{})}
			var ran atomic.Int32
			poke := newTool(t, "poke", tool.Options{Effect: effect}, func(context.Context, obj) (any, error) { ran.Add(1); return "ran", nil })
			fx := fixtureConfig{tools: []tool.Tool{poke}, model: answerOnce(callTools("poke", obj{})), wrapStore: f.wrap, configure: f.config}.open(t)
			id := fx.start(t, fx.workerTask(t, ""))
			<-f.recorded
			f.failed.Store(true)
			if _, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "other"}); !errors.Is(err, errKilled) {
				t.Errorf("a role was created: %v", err)
			}
			if task, err := fx.WaitTask(t.Context(), id); !errors.Is(err, errKilled) {
				t.Errorf("Wait returned %q, %v, want the error of the store", task.Status, err)
			}
			fx.Close()
			if len(eventsOf[journal.ToolCall](t, fx)) != 1 || ran.Load() != 0 {
				t.Errorf("the tool ran %d times after the store had stopped\n%s", ran.Load(), fx.eventLog(t))
			}
			if len(f.fatal) != 1 || !errors.Is(f.fatal[0], errKilled) {
				t.Errorf("Fatal was called with %v, want one call with the error of the store", f.fatal)
			}
		})
	}
}

// failingStore is a store that fails on demand. It delays the return of the
// commit of an intent until then.
type failingStore struct {
	journal.Store
	failed            atomic.Bool
	recorded, stopped chan struct{} // the intent is committed; Fatal was called
	fatal             []error
}

func (f *failingStore) wrap(s journal.Store) journal.Store {
	f.Store = s
	return f
}

func (f *failingStore) config(c *runtime.Config) {
	c.Fatal = func(err error) {
		f.fatal = append(f.fatal, err)
		close(f.stopped)
	}
}

// Commit implements journal.Log.
func (f *failingStore) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	if f.failed.Load() {
		return 0, errKilled
	}
	seq, err := f.Store.Commit(ctx, b)
	if hasIntent(b, "poke") {
		close(f.recorded)
		<-f.stopped
	}
	return seq, err
}
