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
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// A process that dies during a call leaves an intent without an outcome. The
// next process does not run the call again, whatever its effect class, and the
// state is unchanged.
func TestInvoke_CrashDoesNotRepeatCall(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Mutating, tool.Idempotent, tool.ReadOnly} {
		t.Run(effect.String(), func(t *testing.T) {
			var ran atomic.Int32
			dir := fastTempDir(t)
			poke := newTool(t, "poke", tool.Options{Effect: effect, State: "poked"}, func(context.Context, obj) (any, error) { ran.Add(1); return "ran", nil })
			cfg := fixtureConfig{dir: dir, tools: []tool.Tool{poke}, wrapStore: func(s journal.Store) journal.Store {
				return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
					if hasOutcome(b, "poke") {
						return 0, fmt.Errorf("%w: killed", journal.ErrClosed)
					}
					return s.Commit(ctx, b)
				}}
			}}
			fx := cfg.open(t)
			ann := fx.createCaller(t, "probe")
			if a, err := fx.InvokeTool(t.Context(), ann, "poke", nil); !errors.Is(err, journal.ErrClosed) || a != nil {
				t.Errorf("%v, %v", a, err)
			}
			fx.shutdown(t)
			cfg.wrapStore = nil
			fx = cfg.open(t)
			if _, state := fx.Org().ResolveView(ann); state != "" || ran.Load() != 1 {
				t.Errorf("in state %q, ran %d times", state, ran.Load())
			}
			if calls, results := bodiesOf[journal.ToolCall](t, fx), bodiesOf[journal.ToolResult](t, fx); len(calls) != 1 || len(results) != 0 {
				t.Errorf("%d calls and %d results are on record", len(calls), len(results))
			}
			fx.invoke(t, ann, "poke", obj{})
			if _, state := fx.Org().ResolveView(ann); state != "poked" || ran.Load() != 2 {
				t.Errorf("after the next call: in state %q, ran %d times", state, ran.Load())
			}
		})
	}
}

// A call whose permissions or state change between the decision and the commit
// of its intent is decided again.
func TestInvoke_SupersededCallIsDecidedAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(fx *fixture, ann identity.Principal) error
		tools  []tool.Tool
	}{
		{"the role loses the group", func(fx *fixture, ann identity.Principal) error {
			_, _, err := fx.UpdateRole(operator, ann.Role, org.RoleSpec{Use: groupSet("console")}, false)
			return err
		}, nil},
		{"the role is deleted", func(fx *fixture, ann identity.Principal) error {
			_, err := fx.DeleteRole(operator, ann.Role, false)
			return err
		}, nil},
		{"the role is suspended", func(fx *fixture, ann identity.Principal) error {
			_, _, err := fx.PauseRole(operator, ann.Role, "")
			return err
		}, nil},
		{"the group is unregistered", func(fx *fixture, _ identity.Principal) error {
			return grouptest.UnregisterGroup(fx.GroupManager(), "test", "probe")
		}, nil},
		{"the state changes", func(fx *fixture, ann identity.Principal) error {
			_, err := fx.InvokeTool(context.Background(), ann, "away", nil)
			return err
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ran atomic.Int32
			var once sync.Once
			var fx *fixture
			var ann identity.Principal
			count := func(context.Context, obj) (any, error) { ran.Add(1); return "ran", nil }
			fx = fixtureConfig{tools: []tool.Tool{
				newTool(t, "poke", tool.Options{States: []string{toolgroups.UndefinedState}}, count),
				newTool(t, "away", tool.Options{State: "away"}, func(context.Context, obj) (any, error) { return "away", nil }),
			}, wrapStore: func(s journal.Store) journal.Store {
				return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
					if hasIntent(b, "poke") {
						once.Do(func() {
							if err := c.change(fx, ann); err != nil {
								t.Error(err)
							}
						})
					}
					return s.Commit(ctx, b)
				}}
			}}.open(t)
			ann = fx.createCaller(t, "probe")
			if got := fx.invokeCode(t, ann, "poke", obj{}); got != errcode.ToolNotAvailable && got != errcode.UnknownTool {
				t.Errorf("got %q", got)
			}
			if ran.Load() != 0 {
				t.Error("it ran")
			}
		})
	}
}

// No call of a caller starts after UpdateRole has returned, with any number of
// concurrent calls.
func TestInvoke_NoCallStartsAfterRevocation(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 10
	}
	var epoch atomic.Uint64 // of the last acknowledged revocation; 0 while the role has the tool
	fx := fixtureConfig{tools: []tool.Tool{echoTool(t)}}.open(t)
	ann := fx.createCaller(t, "probe")
	stop := make(chan struct{})
	var callers sync.WaitGroup
	var allowed atomic.Int32
	for n := range 6 {
		by := identity.ByCaller(identity.UserName(fmt.Sprint("user", n%3)), ann.Role)
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				revoked := epoch.Load()
				a, err := fx.InvokeTool(context.Background(), by, "echo", nil)
				switch {
				case err != nil:
					t.Error(err)
					return
				case !a.Allowed():
				case revoked > 0 && epoch.Load() == revoked:
					t.Error("a call started after its revocation had been acknowledged")
					return
				default:
					allowed.Add(1)
				}
			}
		})
	}
	set := func(group toolgroups.GroupID) {
		t.Helper()
		if _, _, err := fx.UpdateRole(operator, ann.Role, org.RoleSpec{Use: groupSet(group)}, false); err != nil {
			t.Fatal(err)
		}
	}
	for range rounds {
		set("console")
		epoch.Store(fx.Org().CurrentEpoch())
		after := fx.store.LastSeq()
		waitEventAfter[journal.ToolError](t, fx, after)
		epoch.Store(0)
		set("probe")
		waitEventAfter[journal.ToolResult](t, fx, fx.store.LastSeq())
	}
	close(stop)
	callers.Wait()
	fx.checkRevocations(t)
	if int(allowed.Load()) < rounds {
		t.Errorf("only %d calls were allowed, which tests nothing", allowed.Load())
	}
}

// waitEventAfter waits for an event of one type after a sequence number.
func waitEventAfter[B journal.EventBody](t *testing.T, fx *fixture, after uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for e, err := range fx.store.FollowEvents(ctx, after, journal.WaitForMore) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.Body.(B); ok {
			return
		}
	}
}

// checkRevocations checks that no recorded call was allowed under permissions
// that were replaced when it was decided, by its epoch.
func (fx *fixture) checkRevocations(t *testing.T) {
	t.Helper()
	has := map[uint64]bool{} // by the epoch of the change
	var epochs []uint64
	for _, e := range fx.events(t) {
		switch b := e.Body.(type) {
		case journal.RoleChanged:
			has[b.Epoch] = slices.Contains(strings.Split(string(b.Record), `"`), "probe")
			epochs = append(epochs, b.Epoch)
		case journal.ToolCall:
			at, _ := slices.BinarySearch(epochs, b.Epoch+1)
			if b.Decision == journal.Allowed && at > 0 && !has[epochs[at-1]] {
				t.Errorf("event %d: %s started after its revocation", e.Seq, b.Tool)
			}
		}
	}
}
