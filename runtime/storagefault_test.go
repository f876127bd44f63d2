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

// When a commit fails, a call of another agent whose intent has just come on
// record does not begin any more: the next process decides about it. Who waits
// is told, Fatal is called once, and Close returns.
func TestWhenTheStoreStopsNothingMoreBegins(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Mutating, tool.Idempotent, tool.ReadOnly} {
		t.Run(effect.String(), func(t *testing.T) {
			f := &fallen{recorded: make(chan struct{}), stopped: make(chan struct{})}
			var ran atomic.Int32
			poke := probe(t, "poke", tool.Options{Effect: effect}, func(context.Context, obj) (any, error) { ran.Add(1); return "ran", nil })
			h := plan{tools: []tool.Tool{poke}, model: once(do("poke", obj{})), store: f.around, config: f.config}.open(t)
			id := h.start(t, h.bound(t, ""))
			<-f.recorded
			f.dead.Store(true)
			if _, err := h.CreateRole(t.Context(), called(operator), org.RoleSpec{Name: "other"}); !errors.Is(err, errKilled) {
				t.Errorf("a role was made: %v", err)
			}
			if task, err := h.Wait(t.Context(), id); !errors.Is(err, errKilled) {
				t.Errorf("who waits is told %q, %v, want what the store says", task.Status, err)
			}
			h.Close()
			if len(happened[journal.ToolCall](t, h)) != 1 || ran.Load() != 0 {
				t.Errorf("the tool ran %d times after the store had stopped\n%s", ran.Load(), h.story(t))
			}
			if len(f.fatal) != 1 || !errors.Is(f.fatal[0], errKilled) {
				t.Errorf("Fatal was called with %v, want once with what the store says", f.fatal)
			}
		})
	}
}

// fallen is a store that fails when it is told to, and lets an agent know of
// its recorded intent only then.
type fallen struct {
	journal.Store
	dead              atomic.Bool
	recorded, stopped chan struct{} // the intent is on record; Fatal was called
	fatal             []error
}

func (f *fallen) around(s journal.Store) journal.Store {
	f.Store = s
	return f
}

func (f *fallen) config(c *runtime.Config) {
	c.Fatal = func(err error) {
		f.fatal = append(f.fatal, err)
		close(f.stopped)
	}
}

// Commit implements journal.Log.
func (f *fallen) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	if f.dead.Load() {
		return 0, errKilled
	}
	seq, err := f.Store.Commit(ctx, b)
	if intends(b, "poke") {
		close(f.recorded)
		<-f.stopped
	}
	return seq, err
}
