package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// A process that ends in the middle of a call leaves an intent without an
// outcome. The next one does not run it again, whatever its effect class, and
// the state is where it was.
func TestACallThatACrashCutIsNotRunAgain(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Mutating, tool.Idempotent, tool.ReadOnly} {
		t.Run(effect.String(), func(t *testing.T) {
			var ran atomic.Int32
			dir := scratch(t)
			poke := probe(t, "poke", tool.Options{Effect: effect, State: "poked"}, func(context.Context, obj) (any, error) { ran.Add(1); return "ran", nil })
			p := plan{dir: dir, tools: []tool.Tool{poke}, store: func(s journal.Store) journal.Store {
				return &between{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
					if outcomeOf(b, "poke") {
						return 0, fmt.Errorf("%w: killed", journal.ErrClosed)
					}
					return s.Commit(ctx, b)
				}}
			}}
			h := p.open(t)
			ann := h.visitor(t, "probe")
			if a, err := h.Invoke(t.Context(), ann, "poke", nil); !errors.Is(err, journal.ErrClosed) || a != nil {
				t.Errorf("%v, %v", a, err)
			}
			h.leave(t)
			p.store = nil
			h = p.open(t)
			if _, state := h.Org().Resolve(ann); state != "" || ran.Load() != 1 {
				t.Errorf("in state %q, ran %d times", state, ran.Load())
			}
			if calls, results := said[journal.ToolCall](t, h), said[journal.ToolResult](t, h); len(calls) != 1 || len(results) != 0 {
				t.Errorf("%d calls and %d results are on record", len(calls), len(results))
			}
			h.invoke(t, ann, "poke", obj{})
			if _, state := h.Org().Resolve(ann); state != "poked" || ran.Load() != 2 {
				t.Errorf("after the next call: in state %q, ran %d times", state, ran.Load())
			}
		})
	}
}

// A decision is good for what was in force when its intent commits: one that
// was taken back in between is made again, and so is one for another state.
func TestACallThatIsSupersededIsDecidedAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		harm  func(h *house, ann identity.Principal) error
		tools []tool.Tool
	}{
		{"the role lost it", func(h *house, ann identity.Principal) error {
			_, _, err := h.UpdateRole(operator, ann.Role, org.RoleSpec{Use: use("console")}, false)
			return err
		}, nil},
		{"the role is gone", func(h *house, ann identity.Principal) error {
			_, err := h.DeleteRole(operator, ann.Role, false)
			return err
		}, nil},
		{"the group is gone", func(h *house, _ identity.Principal) error { return h.Unregister("test", "probe") }, nil},
		{"the state has moved", func(h *house, ann identity.Principal) error {
			_, err := h.Invoke(context.Background(), ann, "away", nil)
			return err
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ran atomic.Int32
			var once sync.Once
			var h *house
			var ann identity.Principal
			count := func(context.Context, obj) (any, error) { ran.Add(1); return "ran", nil }
			h = plan{tools: []tool.Tool{
				probe(t, "poke", tool.Options{States: []string{toolgroups.Undefined}}, count),
				probe(t, "away", tool.Options{State: "away"}, func(context.Context, obj) (any, error) { return "away", nil }),
			}, store: func(s journal.Store) journal.Store {
				return &between{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
					if intends(b, "poke") {
						once.Do(func() {
							if err := c.harm(h, ann); err != nil {
								t.Error(err)
							}
						})
					}
					return s.Commit(ctx, b)
				}}
			}}.open(t)
			ann = h.visitor(t, "probe")
			if got := h.code(t, ann, "poke", obj{}); got != errcode.ToolNotAvailable && got != errcode.UnknownTool {
				t.Errorf("got %q", got)
			}
			if ran.Load() != 0 {
				t.Error("it ran")
			}
		})
	}
}

// Revocation: no call of a caller starts after UpdateRole has returned,
// however many are on their way.
func TestNoCallFromOutsideStartsAfterItsRevocation(t *testing.T) {
	const rounds = 30
	var epoch atomic.Uint64 // of the last revocation that was acknowledged; 0 while the tool is the role's
	h := plan{tools: []tool.Tool{echo(t)}}.open(t)
	ann := h.visitor(t, "probe")
	stop := make(chan struct{})
	var callers sync.WaitGroup
	var let atomic.Int32
	for n := range 6 {
		by := identity.ByCaller(identity.User(fmt.Sprint("user", n%3)), ann.Role)
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				revoked := epoch.Load()
				a, err := h.Invoke(context.Background(), by, "echo", nil)
				switch {
				case err != nil:
					t.Error(err)
					return
				case !a.Allowed():
				case revoked > 0 && epoch.Load() == revoked:
					t.Error("a call started after its revocation had been acknowledged")
					return
				default:
					let.Add(1)
				}
			}
		})
	}
	set := func(group toolgroups.GroupID) {
		t.Helper()
		if _, _, err := h.UpdateRole(operator, ann.Role, org.RoleSpec{Use: use(group)}, false); err != nil {
			t.Fatal(err)
		}
	}
	for range rounds {
		set("console")
		epoch.Store(h.Org().Epoch())
		after := h.store.Seq()
		follow[journal.ToolError](t, h, after)
		epoch.Store(0)
		set("probe")
		follow[journal.ToolResult](t, h, h.store.Seq())
	}
	close(stop)
	callers.Wait()
	h.inOrder(t)
	if let.Load() < rounds {
		t.Errorf("%d calls were let through; this says nothing", let.Load())
	}
}

// follow waits for an event of one type after a place in the log.
func follow[B journal.Body](t *testing.T, h *house, after uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for e, err := range h.store.Follow(ctx, after, true) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.Body.(B); ok {
			return
		}
	}
}

// inOrder holds what is on record: no call was allowed by what a revocation had
// replaced when the call was decided, by its epoch.
func (h *house) inOrder(t *testing.T) {
	t.Helper()
	has := map[uint64]bool{} // by the epoch of the change
	var epochs []uint64
	for _, e := range h.events(t) {
		switch b := e.Body.(type) {
		case journal.RoleChanged:
			has[b.Epoch] = slices.Contains(strings.Split(string(b.Record), `"`), "probe")
			epochs = append(epochs, b.Epoch)
		case journal.ToolCall:
			at, _ := slices.BinarySearch(epochs, b.Epoch+1)
			if b.Decision == journal.Allowed && at > 0 && !has[epochs[at-1]] {
				t.Errorf("event %d: %s started, which had been taken away", e.Seq, b.Tool)
			}
		}
	}
}
