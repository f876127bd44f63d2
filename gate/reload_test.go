package gate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// clockModule is a module whose tools return the number of the instance. They fail
// once the instance is closed.
type clockModule struct {
	n      int
	more   []tool.Tool
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
	return []toolgroups.Group{{ID: "mine", Tools: append([]tool.Tool{tick, tock}, v.more...)}}
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
		s := groups.CurrentSnapshot()
		ref.PublishView(s.Compile(s.PinOwners(toolgroups.SetOf("mine"))))
	}
	groups.WatchGroups(compile)
	d := &fakeDirectory{refs: map[identity.Principal]*toolgroups.ViewRef{ann: ref}}
	g, err := gate.New(gate.Config{Groups: groups, Directory: d, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	loader := modules.NewLoader(groups)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // for a lease that is never released
		defer cancel()
		if err := loader.Close(ctx); err != nil {
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
	var all, begun sync.WaitGroup // begun: each caller was answered, or has failed
	begun.Add(callers)
	for n := range callers {
		all.Go(func() {
			begin := sync.OnceFunc(begun.Done)
			defer begin()
			requests := []gate.CallRequest{request("tick", ``), request("tock", ``), request("tock", ``)}
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
				}
				begin()
			}
		})
	}
	begun.Wait()
	for n := 1; n <= reloads; n++ {
		newest.Store(int64(n))
		if err := loader.ReloadModule(t.Context(), &clockModule{n: n}); err != nil {
			t.Errorf("reload %d: %v", n, err)
		}
		active.Store(int64(n))
	}
	close(stop)
	all.Wait()
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
	done, err := g.Call(t.Context(), ann, []gate.CallRequest{request("tick", ``)}, rec)
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
	if _, err := g.Call(t.Context(), ann, []gate.CallRequest{request("tick", ``)}, rec); !errors.Is(err, broken) {
		t.Errorf("Call: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := loader.UnloadModule(over, "clock"); err != nil {
		t.Errorf("Unload waits for a lease: %v", err)
	}
}

// A call releases its lease when it has ended, also by a panic of the tool.
func TestCall_ReleasesLeaseWhenEnded(t *testing.T) {
	g, loader := newModuleFixture(t, toolgroups.NewManager())
	panicking := &fakeTool{definition: definition("panics", tool.Mutating), run: func(context.Context, tool.Call) (tool.Result, error) { panic("boom") }}
	if err := loader.LoadModule(t.Context(), &clockModule{more: []tool.Tool{panicking}}); err != nil {
		t.Fatal(err)
	}
	requests := []gate.CallRequest{request("tick", ``), request("panics", ``), request("tock", ``), request("tock", ``)}
	if done, err := g.Call(t.Context(), ann, requests, &fakeRecorder{}); err != nil || len(done) != len(requests) {
		t.Fatalf("got %d outcomes, %v", len(done), err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := loader.UnloadModule(over, "clock"); err != nil {
		t.Errorf("Unload waits for a lease: %v", err)
	}
}

// A tool can stay registered although its module has ended, because the change of the
// registry failed. Its call is then tool_unavailable; the gate does not decide forever.
func TestCall_ToolOfEndedModuleIsUnavailable(t *testing.T) {
	groups := toolgroups.NewManager()
	g, loader := newModuleFixture(t, groups)
	if err := loader.LoadModule(t.Context(), &clockModule{}); err != nil {
		t.Fatal(err)
	}
	groups.SetCommit(func(toolgroups.Change) error { return errors.New("no") })
	if err := loader.UnloadModule(t.Context(), "clock"); err == nil {
		t.Error("UnloadModule does not return the error of the registry")
	}
	rec := &fakeRecorder{}
	done, err := g.Call(t.Context(), ann, []gate.CallRequest{request("tick", ``)}, rec)
	if err != nil || done[0].Code() != errcode.ToolUnavailable || len(rec.lines) != 2 {
		t.Errorf("%v, %v, %q; want tool_unavailable after one decision on record", done, err, rec.lines)
	}
}

// A tool that is being registered is in the registry before the Views have it. A call
// of it waits for the change and is decided again.
func TestCall_WaitsForRegistryChange(t *testing.T) {
	for range 50 {
		f := newFixture(t)
		registered, asked := make(chan struct{}), make(chan struct{})
		f.groups.WatchGroups(func([]toolgroups.GroupID) {
			close(registered)
			<-asked
			f.grant("new")
		})
		f.directory.resolving = sync.OnceFunc(func() { close(asked) })
		changed := make(chan error)
		go func() {
			_, err := grouptest.RegisterGroup(f.groups, "test", toolgroups.Group{ID: "new", Tools: []tool.Tool{&fakeTool{definition: definition("late", tool.Mutating)}}})
			changed <- err
		}()
		<-registered
		if a := f.call("late", ``); !a.Allowed() {
			t.Errorf("got %v, want the call to wait for its permission", a.Err)
		}
		if err := <-changed; err != nil {
			t.Fatal(err)
		}
	}
}

// A tool that was replaced again while a call of it waited for the first change is
// decided once more.
func TestCall_WaitsForNextRegistryChange(t *testing.T) {
	f := newFixture(t)
	replace := func() { f.register("later", &fakeTool{definition: definition("late", tool.Mutating)}) }
	replace()
	resolved := 0
	f.directory.resolving = func() {
		switch resolved++; resolved {
		case 2:
			replace() // the View does not have it yet
		case 3:
			f.grant("later")
		}
	}
	if a := f.call("late", ``); !a.Allowed() || resolved != 3 {
		t.Errorf("got %v after the principal was resolved %d times, want the permission after 3", a.Err, resolved)
	}
}

// A tool that is replaced without end is denied in the end.
func TestCall_DeniesToolThatKeepsChanging(t *testing.T) {
	f := newFixture(t)
	f.directory.resolving = func() {
		f.register("later", &fakeTool{definition: definition("late", tool.Mutating), run: mustNotRun(t)})
	}
	if a := f.call("late", ``); a.Code() != errcode.ToolNotAvailable {
		t.Errorf("got %q, want tool_not_available", a.Code())
	}
}

// A call of a tool that is newer than the View and stays denied is decided once more,
// not forever.
func TestCall_DeniesUngrantedNewTool(t *testing.T) {
	f := newFixture(t)
	f.register("later", &fakeTool{definition: definition("late", tool.Mutating), run: mustNotRun(t)})
	resolved := 0
	f.directory.resolving = func() { resolved++ }
	if a := f.call("late", ``); a.Code() != errcode.ToolNotAvailable || resolved != 2 {
		t.Errorf("got %q after the principal was resolved %d times, want tool_not_available after 2", a.Code(), resolved)
	}
	resolved = 0
	f.grant("mine") // a View that is newer than the tool
	if a := f.call("late", ``); a.Code() != errcode.ToolNotAvailable || resolved != 1 {
		t.Errorf("with a newer View: got %q after the principal was resolved %d times, want tool_not_available after 1", a.Code(), resolved)
	}
}
