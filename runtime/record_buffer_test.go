package runtime_test

import (
	"context"
	"errors"
	"fmt"
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

// watched is a house that counts its commits.
func watched(t *testing.T, tools ...tool.Tool) (h *house, commits *atomic.Int32) {
	commits = new(atomic.Int32)
	h = plan{tools: tools, store: func(s journal.Store) journal.Store {
		return &between{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
			commits.Add(1)
			return s.Commit(ctx, b)
		}}
	}}.open(t)
	return h, commits
}

// Calls that only read, and refusals, wait for no disk: they are committed
// together after ten milliseconds.
func TestCallsThatChangeNothingShareACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, commits := watched(t, echo(t))
		ann := h.visitor(t, "probe")
		h.invoke(t, ann, "echo", obj{})
		before := commits.Load()
		for range 100 {
			h.invoke(t, ann, "echo", obj{})
			h.code(t, ann, "no_such", obj{})
		}
		if got := commits.Load(); got != before {
			t.Errorf("%d commits before any time passed", got-before)
		}
		time.Sleep(10 * time.Millisecond) // of the bubble
		synctest.Wait()
		if got := commits.Load() - before; got != 1 {
			t.Errorf("%d commits, want 1", got)
		}
		if calls, results := said[journal.ToolCall](t, h), said[journal.ToolResult](t, h); len(calls) != 201 || len(results) != 101 {
			t.Errorf("%d calls and %d results are on record", len(calls), len(results))
		}
	})
}

// What waits is bounded, in number and in bytes.
func TestWhatWaitsForACommitIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		calls int
		args  obj
	}{
		"many":  {300, obj{}},
		"large": {10, obj{"text": string(make([]byte, 100<<10))}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, commits := watched(t, echo(t))
				ann := h.visitor(t, "probe")
				before := commits.Load()
				for range c.calls {
					h.invoke(t, ann, "echo", c.args)
				}
				if commits.Load() == before {
					t.Error("nothing is on disk, and no time passed")
				}
			})
		})
	}
}

// A call that changes something finds on disk what was called before it,
// whoever called.
func TestReadsAreOnRecordBeforeALaterWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *house
		var seen []string
		write := probe(t, "write", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
			for e, err := range h.store.Follow(ctx, 0, false) {
				if err != nil {
					return nil, err
				}
				if c, ok := e.Body.(journal.ToolCall); ok {
					seen = append(seen, c.Tool+" "+string(c.Decision))
				}
			}
			return "written", nil
		})
		h = plan{tools: []tool.Tool{echo(t), write}}.open(t)
		ann := h.visitor(t, "probe")
		h.invoke(t, ann, "echo", obj{})
		h.code(t, identity.ByCaller("bob", ann.Role), "no_such", obj{})
		h.invoke(t, ann, "write", obj{})
		if got, want := fmt.Sprint(seen), "[echo allowed no_such denied write allowed]"; got != want {
			t.Errorf("the tool saw %s on record, want %s", got, want)
		}
	})
}

// What Close returns from is on disk.
func TestCloseKeepsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plan{dir: scratch(t), tools: []tool.Tool{echo(t)}}
		h := p.open(t)
		ann := h.visitor(t, "probe")
		h.invoke(t, ann, "echo", obj{})
		h.leave(t)
		if n := len(said[journal.ToolResult](t, p.open(t))); n != 1 {
			t.Errorf("%d results are on record after Close", n)
		}
	})
}

// A commit that fails stops everything, also when nobody waited for it.
func TestAFailedCommitOfReadsStopsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		var told atomic.Int32
		h := plan{tools: []tool.Tool{echo(t)}, config: func(c *runtime.Config) { c.Fatal = func(error) { told.Add(1) } },
			store: func(s journal.Store) journal.Store {
				return &between{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
					if broken.Load() {
						return 0, fmt.Errorf("%w: the disk is gone", journal.ErrClosed)
					}
					return s.Commit(ctx, b)
				}}
			}}.open(t)
		ann := h.visitor(t, "probe")
		h.invoke(t, ann, "echo", obj{}) // the first of a process moves the epoch, on disk
		if err := h.Flush(); err != nil {
			t.Fatal(err)
		}
		broken.Store(true)
		h.invoke(t, ann, "echo", obj{})
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if _, err := h.Invoke(t.Context(), ann, "echo", nil); !errors.Is(err, journal.ErrClosed) || told.Load() != 1 {
			t.Errorf("the next call: %v; told %d times", err, told.Load())
		}
	})
}

// A read is decided anew when its right was taken back after the decision and
// before it starts, as every call is.
func TestAReadThatIsSupersededIsDecidedAgain(t *testing.T) {
	var h *house
	var ann identity.Principal
	var ran atomic.Int32
	read := probe(t, "read", tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { ran.Add(1); return "read", nil })
	h = plan{tools: []tool.Tool{atDoor{read, func() {
		if _, _, err := h.UpdateRole(operator, ann.Role, org.RoleSpec{Use: use("console")}, false); err != nil {
			t.Error(err)
		}
	}}}}.open(t)
	ann = h.visitor(t, "probe")
	if got := h.code(t, ann, "read", obj{}); got != errcode.ToolNotAvailable || ran.Load() != 0 {
		t.Errorf("got %q, ran %d times", got, ran.Load())
	}
	var stood bool
	for _, c := range said[journal.ToolCall](t, h) {
		stood = stood || c.Decision == journal.Allowed
	}
	if stood {
		t.Errorf("an allowance is on record that was not in force\n%s", h.story(t))
	}
}

// atDoor is a tool that does something when a call enters it: after the
// decision, before the call is on record.
type atDoor struct {
	tool.Tool
	do func()
}

func (d atDoor) Lease() (tool.Lease, bool) { d.do(); return d, true }
func (d atDoor) Release()                  {}
