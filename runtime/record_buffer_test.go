package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// countingFixture opens a fixture that counts its commits.
func countingFixture(t *testing.T, tools ...tool.Tool) (fx *fixture, commits *atomic.Int32) {
	commits = new(atomic.Int32)
	fx = fixtureConfig{tools: tools, wrapStore: func(s journal.Store) journal.Store {
		return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
			commits.Add(1)
			return s.Commit(ctx, b)
		}}
	}}.open(t)
	return fx, commits
}

// Read-only and denied calls do not wait for the disk. They are committed
// together after ten milliseconds.
func TestRecordBuffer_SharesCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx, commits := countingFixture(t, echoTool(t))
		ann := fx.createCaller(t, "probe")
		fx.invoke(t, ann, "echo", obj{})
		before := commits.Load()
		for range 100 {
			fx.invoke(t, ann, "echo", obj{})
			fx.invokeCode(t, ann, "no_such", obj{})
		}
		if got := commits.Load(); got != before {
			t.Errorf("%d commits before any time passed", got-before)
		}
		time.Sleep(10 * time.Millisecond) // of fake time
		synctest.Wait()
		if got := commits.Load() - before; got != 1 {
			t.Errorf("%d commits, want 1", got)
		}
		if calls, results := bodiesOf[journal.ToolCall](t, fx), bodiesOf[journal.ToolResult](t, fx); len(calls) != 201 || len(results) != 101 {
			t.Errorf("%d calls and %d results are recorded", len(calls), len(results))
		}
	})
}

// The number and the bytes of buffered events are bounded.
func TestRecordBuffer_IsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		calls int
		args  obj
	}{
		"many":  {300, obj{}},
		"large": {10, obj{"text": string(make([]byte, 100<<10))}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fx, commits := countingFixture(t, echoTool(t))
				ann := fx.createCaller(t, "probe")
				before := commits.Load()
				for range c.calls {
					fx.invoke(t, ann, "echo", c.args)
				}
				if commits.Load() == before {
					t.Error("nothing was committed before the timer")
				}
			})
		})
	}
}

// While a commit hangs, the calls that are answered without a record are bounded. The
// others wait.
func TestRecordBuffer_BoundedWhileDiskHangs(t *testing.T) {
	const calls, most = 2000, 520 // calls of two events: 512 events wait, and up to 512 are in the commit
	var hang sync.Once
	hanging, exceeded, answered := atomic.Bool{}, make(chan struct{}), 0
	fx := fixtureConfig{tools: []tool.Tool{echoTool(t)}, wrapStore: func(s journal.Store) journal.Store {
		return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
			if hanging.Load() {
				hang.Do(func() {
					select {
					case <-exceeded:
					case <-time.After(300 * time.Millisecond): // the calls wait
					}
					hanging.Store(false)
				})
			}
			return s.Commit(ctx, b)
		}}
	}}.open(t)
	ann := fx.createCaller(t, "probe")
	fx.invoke(t, ann, "echo", obj{})
	if err := fx.Flush(); err != nil {
		t.Fatal(err)
	}
	hanging.Store(true)
	for ; answered < calls; answered++ {
		fx.invoke(t, ann, "echo", obj{})
		if answered == most && hanging.Load() {
			close(exceeded)
			t.Errorf("%d calls were answered while their records wait", answered)
		}
	}
	if hanging.Load() {
		t.Error("no commit was made")
	}
}

// Calls of any caller before a call with effects are on disk when that call
// runs.
func TestRecordBuffer_FlushesBeforeLaterWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fx *fixture
		var seen []string
		write := newTool(t, "write", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
			for e, err := range fx.store.FollowEvents(ctx, 0, journal.StoredOnly) {
				if err != nil {
					return nil, err
				}
				if c, ok := e.Body.(journal.ToolCall); ok {
					seen = append(seen, c.Tool+" "+string(c.Decision))
				}
			}
			return "written", nil
		})
		fx = fixtureConfig{tools: []tool.Tool{echoTool(t), write}}.open(t)
		ann := fx.createCaller(t, "probe")
		fx.invoke(t, ann, "echo", obj{})
		fx.invokeCode(t, identity.ByCaller("bob", ann.Role), "no_such", obj{})
		fx.invoke(t, ann, "write", obj{})
		if got, want := fmt.Sprint(seen), "[echo allowed no_such denied write allowed]"; got != want {
			t.Errorf("the tool found %s recorded, want %s", got, want)
		}
	})
}

// Close commits the buffered events.
func TestRecordBuffer_CloseFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixtureConfig{dir: fastTempDir(t), tools: []tool.Tool{echoTool(t)}}
		fx := cfg.open(t)
		ann := fx.createCaller(t, "probe")
		fx.invoke(t, ann, "echo", obj{})
		fx.shutdown(t)
		if n := len(bodiesOf[journal.ToolResult](t, cfg.open(t))); n != 1 {
			t.Errorf("%d results are recorded after Close", n)
		}
	})
}

// A failed commit of buffered events stops the runtime, although no call waited
// for it.
func TestRecordBuffer_FailedCommitStopsRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		var fatalCalls atomic.Int32
		fx := fixtureConfig{tools: []tool.Tool{echoTool(t)}, configure: func(c *runtime.Config) { c.Fatal = func(error) { fatalCalls.Add(1) } },
			wrapStore: func(s journal.Store) journal.Store {
				return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
					if broken.Load() {
						return 0, fmt.Errorf("%w: the disk is gone", journal.ErrClosed)
					}
					return s.Commit(ctx, b)
				}}
			}}.open(t)
		ann := fx.createCaller(t, "probe")
		fx.invoke(t, ann, "echo", obj{}) // the first call of a process advances the epoch, on disk
		if err := fx.Flush(); err != nil {
			t.Fatal(err)
		}
		broken.Store(true)
		fx.invoke(t, ann, "echo", obj{})
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if _, err := fx.InvokeTool(t.Context(), ann, "echo", nil); !errors.Is(err, journal.ErrClosed) || fatalCalls.Load() != 1 {
			t.Errorf("the next call: %v; Fatal was called %d times", err, fatalCalls.Load())
		}
	})
}

// A read-only call whose permission is revoked between the decision and its
// start is decided again, like every call.
func TestRecordBuffer_SupersededReadIsDecidedAgain(t *testing.T) {
	var fx *fixture
	var ann identity.Principal
	var ran atomic.Int32
	read := newTool(t, "read", tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { ran.Add(1); return "read", nil })
	fx = fixtureConfig{tools: []tool.Tool{leaseHookTool{read, func() {
		if _, _, err := fx.UpdateRole(operator, ann.Role, org.RoleSpec{Use: groupSet("console")}, false); err != nil {
			t.Error(err)
		}
	}}}}.open(t)
	ann = fx.createCaller(t, "probe")
	if got := fx.invokeCode(t, ann, "read", obj{}); got != errcode.ToolNotAvailable || ran.Load() != 0 {
		t.Errorf("got %q, ran %d times", got, ran.Load())
	}
	var allowed bool
	for _, c := range bodiesOf[journal.ToolCall](t, fx) {
		allowed = allowed || c.Decision == journal.Allowed
	}
	if allowed {
		t.Errorf("a revoked call is recorded as allowed\n%s", fx.eventLog(t))
	}
}

// leaseHookTool is a tool with a hook that runs when the gate takes a lease:
// after the decision, before the call is recorded.
type leaseHookTool struct {
	tool.Tool
	onLease func()
}

func (d leaseHookTool) AcquireLease() (tool.Lease, bool) { d.onLease(); return d, true }
func (d leaseHookTool) Release()                         {}
