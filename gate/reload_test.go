package gate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// version is a module whose tool says which of its successors it is, and that
// answers nobody when it is closed.
type version struct {
	n      int
	closed atomic.Bool
}

func (v *version) Name() string { return "clock" }

func (v *version) Groups() []toolgroups.Group {
	tick := &fake{d: definition("tick", tool.Mutating), run: func(context.Context, tool.Call) (tool.Result, error) {
		if v.closed.Load() {
			return tool.Result{}, errors.New("called after it was closed")
		}
		return tool.Result{Text: fmt.Sprint(v.n)}, nil
	}}
	tock := &fake{d: definition("tock", tool.ReadOnly), run: tick.run}
	return []toolgroups.Group{{ID: "mine", Tools: []tool.Tool{tick, tock}}}
}

func (v *version) Close() error {
	v.closed.Store(true)
	return nil
}

// moduleHouse is a gate to the tools of modules, for ann, who may use the group
// "mine". Her view is compiled anew with every change, as org does.
func moduleHouse(t *testing.T, groups *toolgroups.Manager) (*gate.Gate, *modules.Loader) {
	t.Helper()
	slot := new(toolgroups.ViewRef)
	compile := func([]toolgroups.GroupID) {
		s := groups.Snapshot()
		slot.Publish(s.Compile(s.Bind(toolgroups.Of("mine"))))
	}
	groups.Watch(compile)
	d := &desk{seats: map[identity.Principal]*toolgroups.ViewRef{ann: slot}}
	g, err := gate.New(gate.Config{Groups: groups, Directory: d, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	loader := modules.NewLoader(groups)
	t.Cleanup(func() {
		if err := loader.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g, loader
}

// Property (design §4, Names and owners): while a module is reloaded no call of
// its tools is lost: each is answered, rightly, by one that was in force at some
// time between its beginning and its end.
func TestNoCallIsLostWhileItsModuleIsReloaded(t *testing.T) {
	const callers, reloads = 16, 200
	g, loader := moduleHouse(t, toolgroups.NewManager())
	var stagedNow, inForce atomic.Int64 // the newest that may answer; the oldest that may answer a new call
	if err := loader.Load(t.Context(), &version{}); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	var answered atomic.Int64
	for n := range callers {
		all.Go(func() {
			requests := []gate.Request{request("tick", ``), request("tock", ``), request("tock", ``)}
			for c := n; ; c++ {
				select {
				case <-stop:
					return
				default:
				}
				oldest := inForce.Load()
				done, err := g.Call(t.Context(), ann, requests[c%2:], &book{})
				if err != nil {
					t.Error(err)
					return
				}
				for _, a := range done {
					var v int64
					if _, err := fmt.Sscan(a.Result.Text, &v); err != nil || v < oldest || v > stagedNow.Load() {
						t.Errorf("%s of a module between %d and %d: %s %s", a.Request.Name, oldest, stagedNow.Load(), a.Code(), a.Result.JSON())
						return
					}
					answered.Add(1)
				}
			}
		})
	}
	for n := 1; n <= reloads; n++ {
		stagedNow.Store(int64(n))
		if err := loader.Reload(t.Context(), &version{n: n}); err != nil {
			t.Errorf("reload %d: %v", n, err)
		}
		inForce.Store(int64(n))
	}
	close(stop)
	all.Wait()
	if answered.Load() < callers {
		t.Errorf("only %d calls were answered", answered.Load())
	}
}

// A module that ends between the decision and the record: the call is decided
// once more, and what the record says started is what ran.
func TestACallWhoseModuleEndedIsDecidedAnew(t *testing.T) {
	groups := toolgroups.NewManager()
	g, loader := moduleHouse(t, groups)
	if err := loader.Load(t.Context(), &version{}); err != nil {
		t.Fatal(err)
	}
	once := sync.OnceFunc(func() {
		if err := loader.Reload(t.Context(), &version{n: 1}); err != nil {
			t.Error(err)
		}
	})
	gate.AtSteps(t, func(step string, after bool) {
		if step == "repeat" && after {
			once()
		}
	})
	b := &book{}
	done, err := g.Call(t.Context(), ann, []gate.Request{request("tick", ``)}, b)
	if err != nil || done[0].Result.Text != "1" {
		t.Errorf("%v, %v; want the answer of the successor", done, err)
	}
	if diff := cmp.Diff([]string{"start tick:allowed", "finish tick:ok"}, b.lines); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

// A recorder that fails, and one that says superseded, leave nobody in the
// module: it can be closed.
func TestACallThatDoesNotStartHasLeftItsModule(t *testing.T) {
	g, loader := moduleHouse(t, toolgroups.NewManager())
	if err := loader.Load(t.Context(), &version{}); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the disk is gone")
	tries := 0
	b := &book{started: func([]*gate.Admission) error {
		if tries++; tries < 3 {
			return gate.ErrSuperseded
		}
		return broken
	}}
	if _, err := g.Call(t.Context(), ann, []gate.Request{request("tick", ``)}, b); !errors.Is(err, broken) {
		t.Errorf("Call: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := loader.Unload(over, "clock"); err != nil {
		t.Errorf("Unload waits for somebody: %v", err)
	}
}

// What the registry goes on offering though its module has ended, because the
// registry failed, is unavailable: not decided for ever.
func TestAToolThatStaysBehindItsModuleIsUnavailable(t *testing.T) {
	groups := toolgroups.NewManager()
	g, _ := moduleHouse(t, groups)
	loader := modules.NewLoader(stubborn{groups})
	if err := loader.Load(t.Context(), &version{}); err != nil {
		t.Fatal(err)
	}
	if err := loader.Unload(t.Context(), "clock"); err == nil {
		t.Error("Unload tells nothing of the registry's fault")
	}
	b := &book{}
	done, err := g.Call(t.Context(), ann, []gate.Request{request("tick", ``)}, b)
	if err != nil || done[0].Code() != errcode.ToolUnavailable || len(b.lines) != 2 {
		t.Errorf("%v, %v, %q; want tool_unavailable after one decision on record", done, err, b.lines)
	}
}

// stubborn is a registry that unregisters nothing.
type stubborn struct{ *toolgroups.Manager }

func (stubborn) Unregister(toolgroups.Owner, toolgroups.GroupID) error { return errors.New("no") }
