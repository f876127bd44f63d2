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

// clockModule is a module whose tools return the number of the instance. They fail
// once the instance is closed.
type clockModule struct {
	n      int
	closed atomic.Bool
}

func (v *clockModule) Name() string { return "clock" }

func (v *clockModule) ToolGroups() []toolgroups.Group {
	tick := &fakeTool{definition: definition("tick", tool.Mutating), run: func(context.Context, tool.Call) (tool.Result, error) {
		if v.closed.Load() {
			return tool.Result{}, errors.New("called after it was closed")
		}
		return tool.Result{Text: fmt.Sprint(v.n)}, nil
	}}
	tock := &fakeTool{definition: definition("tock", tool.ReadOnly), run: tick.run}
	return []toolgroups.Group{{ID: "mine", Tools: []tool.Tool{tick, tock}}}
}

func (v *clockModule) Close() error {
	v.closed.Store(true)
	return nil
}

// newModuleFixture returns a gate and a module loader. The principal ann may use the
// group "mine"; her View is compiled again with every change, as package org does.
func newModuleFixture(t *testing.T, groups *toolgroups.Manager) (*gate.Gate, *modules.Loader) {
	t.Helper()
	ref := new(toolgroups.ViewRef)
	compile := func([]toolgroups.GroupID) {
		s := groups.Snapshot()
		ref.PublishView(s.Compile(s.BindSet(toolgroups.Of("mine"))))
	}
	groups.Watch(compile)
	d := &fakeDirectory{refs: map[identity.Principal]*toolgroups.ViewRef{ann: ref}}
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

// Property: no call is lost while a module is reloaded. Each is answered by an
// instance that was active at some time between the start and the end of the call.
func TestCall_AnswersEveryCallDuringReload(t *testing.T) {
	const callers, reloads = 16, 200
	g, loader := newModuleFixture(t, toolgroups.NewManager())
	var newest, active atomic.Int64 // the newest instance that may answer; the oldest that may answer a new call
	if err := loader.LoadModule(t.Context(), &clockModule{}); err != nil {
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
				oldest := active.Load()
				done, err := g.Call(t.Context(), ann, requests[c%2:], &fakeRecorder{})
				if err != nil {
					t.Error(err)
					return
				}
				for _, a := range done {
					var v int64
					if _, err := fmt.Sscan(a.Result.Text, &v); err != nil || v < oldest || v > newest.Load() {
						t.Errorf("%s, want an instance between %d and %d: %s %s", a.Request.Name, oldest, newest.Load(), a.Code(), a.Result.JSON())
						return
					}
					answered.Add(1)
				}
			}
		})
	}
	for n := 1; n <= reloads; n++ {
		newest.Store(int64(n))
		if err := loader.ReloadModule(t.Context(), &clockModule{n: n}); err != nil {
			t.Errorf("reload %d: %v", n, err)
		}
		active.Store(int64(n))
	}
	close(stop)
	all.Wait()
	if answered.Load() < callers {
		t.Errorf("only %d calls were answered", answered.Load())
	}
}

// If a module is replaced between the decision and its record, the call is decided
// again. The call that is recorded as started is the one that runs.
func TestCall_DecidesAgainWhenModuleEnds(t *testing.T) {
	groups := toolgroups.NewManager()
	g, loader := newModuleFixture(t, groups)
	if err := loader.LoadModule(t.Context(), &clockModule{}); err != nil {
		t.Fatal(err)
	}
	once := sync.OnceFunc(func() {
		if err := loader.ReloadModule(t.Context(), &clockModule{n: 1}); err != nil {
			t.Error(err)
		}
	})
	gate.AtSteps(t, func(step string, after bool) {
		if step == "check retry" && after {
			once()
		}
	})
	rec := &fakeRecorder{}
	done, err := g.Call(t.Context(), ann, []gate.Request{request("tick", ``)}, rec)
	if err != nil || done[0].Result.Text != "1" {
		t.Errorf("%v, %v; want the answer of the successor", done, err)
	}
	if diff := cmp.Diff([]string{"start tick:allowed", "finish tick:ok"}, rec.lines); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

// If a Recorder fails, or returns ErrSuperseded, no call keeps its lease: the module
// can be closed.
func TestCall_ReleasesLeaseWhenNotStarted(t *testing.T) {
	g, loader := newModuleFixture(t, toolgroups.NewManager())
	if err := loader.LoadModule(t.Context(), &clockModule{}); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the disk is gone")
	tries := 0
	rec := &fakeRecorder{started: func([]*gate.Admission) error {
		if tries++; tries < 3 {
			return gate.ErrSuperseded
		}
		return broken
	}}
	if _, err := g.Call(t.Context(), ann, []gate.Request{request("tick", ``)}, rec); !errors.Is(err, broken) {
		t.Errorf("Call: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := loader.UnloadModule(over, "clock"); err != nil {
		t.Errorf("Unload waits for a lease: %v", err)
	}
}

// A tool can stay registered although its module has ended, because unregistering
// failed. Its call is then tool_unavailable; the gate does not decide forever.
func TestCall_ToolOfEndedModuleIsUnavailable(t *testing.T) {
	groups := toolgroups.NewManager()
	g, _ := newModuleFixture(t, groups)
	loader := modules.NewLoader(noUnregister{groups})
	if err := loader.LoadModule(t.Context(), &clockModule{}); err != nil {
		t.Fatal(err)
	}
	if err := loader.UnloadModule(t.Context(), "clock"); err == nil {
		t.Error("Unload does not return the error of the registry")
	}
	rec := &fakeRecorder{}
	done, err := g.Call(t.Context(), ann, []gate.Request{request("tick", ``)}, rec)
	if err != nil || done[0].Code() != errcode.ToolUnavailable || len(rec.lines) != 2 {
		t.Errorf("%v, %v, %q; want tool_unavailable after one decision on record", done, err, rec.lines)
	}
}

// noUnregister is a registry whose Unregister fails.
type noUnregister struct{ *toolgroups.Manager }

func (noUnregister) UnregisterGroup(toolgroups.Owner, toolgroups.GroupID) error {
	return errors.New("no")
}
