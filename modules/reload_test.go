package modules_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestLoader_ReloadReplacesGroups(t *testing.T) {
	tests := []struct {
		why  string
		old  []toolgroups.Group
		next []toolgroups.Group
		want []string
	}{
		{"same group",
			[]toolgroups.Group{group("a", textTool("t", "old"))},
			[]toolgroups.Group{group("a", textTool("t", "new"))},
			[]string{"module:m a: t=new"}},
		{"one group removed, one added",
			[]toolgroups.Group{group("a", textTool("t", "old")), group("b", textTool("u", "old"))},
			[]toolgroups.Group{group("b", textTool("u", "new")), group("c", textTool("v", "new"))},
			[]string{"module:m b: u=new", "module:m c: v=new"}},
		{"group renamed",
			[]toolgroups.Group{group("a", textTool("t", "old"))},
			[]toolgroups.Group{group("b", textTool("t", "new"))},
			[]string{"module:m b: t=new"}},
		{"tool moved to an earlier group",
			[]toolgroups.Group{group("a", textTool("t", "old")), group("b", textTool("u", "old"), textTool("v", "old"))},
			[]toolgroups.Group{group("a", textTool("t", "new"), textTool("u", "new")), group("b", textTool("v", "new"))},
			[]string{"module:m a: t=new u=new", "module:m b: v=new"}},
		{"tools swapped between groups",
			[]toolgroups.Group{group("a", textTool("t", "old")), group("b", textTool("u", "old"))},
			[]toolgroups.Group{group("a", textTool("u", "new")), group("b", textTool("t", "new"))},
			[]string{"module:m a: u=new", "module:m b: t=new"}},
		{"all groups removed", []toolgroups.Group{group("a", textTool("t", "old"))}, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			fx := newFixture(t)
			old, next := newFakeModule("m", tt.old...), newFakeModule("m", tt.next...)
			fx.load(old)
			if err := fx.loader.ReloadModule(t.Context(), next); err != nil {
				t.Fatalf("Reload: %v", err)
			}
			fx.wantOffered(tt.want...)
			wantCalls(t, old, "name provision validate groups close")
			wantCalls(t, next, "name provision validate groups")
		})
		t.Run(tt.why+", with a registry error", func(t *testing.T) { reloadWithFaults(t, tt.old, tt.next) })
	}
}

// A reload whose commit fails leaves every group as it was. If the change was published
// nevertheless, no tool of the module is available: a fault adds no permission.
func reloadWithFaults(t *testing.T, old, next []toolgroups.Group) {
	for _, published := range []bool{false, true} {
		fx := newFixture(t)
		first, second := newFakeModule("m", old...), newFakeModule("m", next...)
		fx.load(first)
		before := fx.offered()
		failCommits(fx.manager, published)
		err := fx.loader.ReloadModule(t.Context(), second)
		wantStep(t, err, modules.StepRegister, errcode.Internal)
		if !published {
			fx.wantOffered(before...)
		} else if got := strings.Join(fx.offered(), " "); strings.Count(got, "=") != strings.Count(got, "=tool_unavailable") {
			t.Errorf("after a failed commit the tools are %q", got)
		}
		wantCalls(t, first, "name provision validate groups")
		wantCalls(t, second, "name provision validate groups close")
	}
}

var errFault = errors.New("injected fault")

// failCommits makes every change of m return errFault, published or not.
func failCommits(m *toolgroups.Manager, published bool) {
	m.SetCommit(func(c toolgroups.Change) error {
		if published {
			c.Publish()
		}
		return errFault
	})
}

func TestLoader_UnloadsWhenRegistryFails(t *testing.T) {
	fx := newFixture(t)
	f := newFakeModule("m", group("a", textTool("t", "1")), group("b", textTool("u", "1")))
	fx.load(f)
	failCommits(fx.manager, false)
	wantStep(t, fx.loader.UnloadModule(t.Context(), "m"), modules.StepUnregister, errcode.Internal)
	wantCalls(t, f, "name provision validate groups close")
	fx.wantOffered("module:m a: t=tool_unavailable", "module:m b: u=tool_unavailable")
	fx.manager.SetCommit(func(c toolgroups.Change) error { c.Publish(); return nil })
	fx.load(newFakeModule("m", group("b", textTool("u", "2"))))
	fx.wantOffered("module:m a: t=tool_unavailable", "module:m b: u=2")
}

func TestLoader_FailedReloadKeepsOldModule(t *testing.T) {
	for _, b := range failures {
		t.Run(string(b.step), func(t *testing.T) {
			fx := newFixture(t)
			old, next := newFakeModule("m", group("a", textTool("t", "old"))), newFakeModule("m", group("a", textTool("t", "new")))
			fx.load(old)
			b.set(next, func() error {
				fx.wantOffered("module:m a: t=old") // the old module is in service meanwhile
				panic("boom")
			})
			wantStep(t, fx.loader.ReloadModule(t.Context(), next), b.step, errcode.Internal)
			wantCalls(t, next, b.log)
			wantCalls(t, old, "name provision validate groups")
			fx.wantOffered("module:m a: t=old")
		})
	}
}

// loadWithCallInFlight loads a module "m" and calls its tool "slow". The call ends with
// release, at the latest with the test; got receives its result.
func loadWithCallInFlight(fx *fixture) (f *fakeModule, release func(), got chan string) {
	released, got := make(chan struct{}), make(chan string, 1)
	release = sync.OnceFunc(func() { close(released) })
	fx.Cleanup(release)
	f = newFakeModule("m", group("a", blockingTool("slow", "old", released)))
	fx.load(f)
	h, _ := fx.manager.CurrentSnapshot().LookupTool("slow")
	go func() { got <- callTool(fx.Context(), h.Tool) }()
	synctest.Wait()
	return f, release, got
}

// callOrBlock returns what callTool returns, "blocked" if the tool does not return. It
// is for a synctest bubble.
func callOrBlock(t *testing.T, h tool.Tool) string {
	got := make(chan string, 1)
	go func() { got <- callTool(t.Context(), h) }()
	synctest.Wait()
	select {
	case text := <-got:
		return text
	default:
		return "blocked"
	}
}

func TestLoader_ReloadDrainsOldModule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		old, release, got := loadWithCallInFlight(fx)
		before, _ := fx.manager.CurrentSnapshot().LookupTool("slow")
		done := make(chan error, 1)
		go func() {
			done <- fx.loader.ReloadModule(t.Context(), newFakeModule("m", group("a", textTool("slow", "new"))))
		}()
		synctest.Wait()

		fx.wantOffered("module:m a: slow=new")
		if got := callOrBlock(t, before.Tool); got != "tool_unavailable" {
			t.Errorf("a new call of the old tool returns %q, want tool_unavailable", got)
		}
		wantCalls(t, old, "name provision validate groups")

		release()
		if err := <-done; err != nil {
			t.Errorf("Reload: %v", err)
		}
		if got := <-got; got != "old" {
			t.Errorf("the call in progress returns %q, want old", got)
		}
		wantCalls(t, old, "name provision validate groups close")
	})
}

func TestLoader_UnloadWaitsForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		f, release, got := loadWithCallInFlight(fx)
		late, _ := fx.manager.CurrentSnapshot().LookupTool("slow")
		done := make(chan error, 1)
		go func() { done <- fx.loader.UnloadModule(t.Context(), "m") }()
		synctest.Wait()

		fx.wantOffered()
		if got := callOrBlock(t, late.Tool); got != "tool_unavailable" {
			t.Errorf("a new call returns %q, want tool_unavailable", got)
		}
		wantCalls(t, f, "name provision validate groups")
		select {
		case err := <-done:
			t.Fatalf("Unload returned %v during a call", err)
		default:
		}
		release()
		if err := <-done; err != nil {
			t.Errorf("Unload: %v", err)
		}
		if got := <-got; got != "old" {
			t.Errorf("the call in progress returns %q, want old", got)
		}
		wantCalls(t, f, "name provision validate groups close")
	})
}

// synctest fails the test if a goroutine is left.
func TestLoader_ClosesAfterLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		f, release, got := loadWithCallInFlight(fx)
		notClosed := errors.New("not closed")
		f.close = func() error { return notClosed }
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		err := fx.loader.UnloadModule(ended, "m")
		wantStep(t, err, modules.StepWait, errcode.Internal)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Unload: %v, want context.Canceled", err)
		}
		fx.wantLoaded()
		fx.load(newFakeModule("m", group("a", textTool("slow", "new")))) // the name is free again
		wantStep(t, fx.loader.Close(ended), modules.StepWait, errcode.Internal)
		synctest.Wait()
		wantCalls(t, f, "name provision validate groups")

		release()
		synctest.Wait()
		wantCalls(t, f, "name provision validate groups close")
		if got := <-got; got != "old" {
			t.Errorf("the call in progress returns %q, want old", got)
		}
		if err := fx.loader.Close(t.Context()); !errors.Is(err, notClosed) {
			t.Errorf("Close: %v, want the error of the draining module", err)
		}
		if err := fx.loader.Close(t.Context()); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

func TestLoader_CloseReportsDrainingErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		causes := []error{errors.New("the first"), nil, errors.New("the third")}
		for _, cause := range causes {
			f, release, _ := loadWithCallInFlight(fx)
			f.close = func() error { return cause }
			wantStep(t, fx.loader.UnloadModule(ended, "m"), modules.StepWait, errcode.Internal)
			release()
			synctest.Wait()
		}
		err := fx.loader.Close(t.Context())
		if !errors.Is(err, causes[0]) || !errors.Is(err, causes[2]) {
			t.Errorf("Close: %v, want the first and the third", err)
		}
	})
}

func TestLoader_ReloadReplacesWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		old, release, _ := loadWithCallInFlight(fx)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		err := fx.loader.ReloadModule(ended, newFakeModule("m", group("a", textTool("slow", "new"))))
		wantStep(t, err, modules.StepWait, errcode.Internal)
		fx.wantOffered("module:m a: slow=new")
		synctest.Wait()
		wantCalls(t, old, "name provision validate groups")
		release()
		if err := fx.loader.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		wantCalls(t, old, "name provision validate groups close")
	})
}

func TestLoader_ClosesIdleModuleAfterContextEnds(t *testing.T) {
	fx := newFixture(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	f := newFakeModule("m")
	f.provision = func(ctx context.Context) error { return ctx.Err() }
	wantStep(t, fx.loader.LoadModule(ended, f), modules.StepProvision, errcode.Internal)
	wantCalls(t, f, "name provision close")
}

func TestLoader_ToolUnloadsOwnModule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		f := newFakeModule("m", group("a", toolFunc{"unload_self", func(context.Context) (tool.Result, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 1)
			defer cancel()
			return tool.Result{Text: "unloaded"}, fx.loader.UnloadModule(ctx, "m")
		}}))
		fx.load(f)
		if got := fx.call("unload_self"); got != string(errcode.Internal) {
			t.Errorf("the tool returns %q, want the error of its wait", got)
		}
		if err := fx.loader.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		wantCalls(t, f, "name provision validate groups close")
	})
}

func TestLoader_PanickingCallReleasesLease(t *testing.T) {
	fx := newFixture(t)
	f := newFakeModule("m", group("a", toolFunc{"panics", func(context.Context) (tool.Result, error) { panic("boom") }}))
	fx.load(f)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach the caller")
			}
		}()
		fx.call("panics")
	}()
	if err := fx.loader.UnloadModule(t.Context(), "m"); err != nil {
		t.Errorf("Unload: %v", err)
	}
	wantCalls(t, f, "name provision validate groups close")
}

// Property: however calls and reloads interleave, no call runs in a closed module, every
// module is closed exactly once, and the registry always has the tool.
func TestLoader_NoCallInClosedModule(t *testing.T) {
	fx := newFixture(t)
	var made, ended atomic.Int64
	newModule := func() *fakeModule {
		made.Add(1)
		var closed atomic.Bool
		f := newFakeModule("m", group("a", toolFunc{"t", func(context.Context) (tool.Result, error) {
			if closed.Load() {
				return tool.Result{Text: "called after Close"}, nil
			}
			return tool.Result{Text: "ok"}, nil
		}}))
		f.close = func() error {
			if closed.Swap(true) {
				return errors.New("closed twice")
			}
			ended.Add(1)
			return nil
		}
		return f
	}
	fx.load(newModule())
	var callers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				h, ok := fx.manager.CurrentSnapshot().LookupTool("t")
				if !ok {
					t.Error("the tool is not registered during a reload")
					return
				}
				if got := callTool(t.Context(), h.Tool); got != "ok" && got != "tool_unavailable" {
					t.Errorf("a call returns %q", got)
					return
				}
			}
		})
	}
	rounds := 300
	if testing.Short() {
		rounds = 20
	}
	for n := range rounds {
		if err := fx.loader.ReloadModule(t.Context(), newModule()); err != nil {
			t.Errorf("reload %d: %v", n, err)
		}
	}
	close(stop)
	callers.Wait()
	if err := fx.loader.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if made.Load() != ended.Load() {
		t.Errorf("%d modules were made, %d closed", made.Load(), ended.Load())
	}
}

func TestLoader_ChangesModulesConcurrently(t *testing.T) {
	fx := newFixture(t)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			name := fmt.Sprintf("m%d", n)
			mine := func() *fakeModule {
				return newFakeModule(name, group(toolgroups.GroupID(name), textTool("t_"+name, "1")))
			}
			for range 20 {
				err := errors.Join(fx.loader.LoadModule(t.Context(), mine()), fx.loader.ReloadModule(t.Context(), mine()), fx.loader.UnloadModule(t.Context(), name))
				if err != nil {
					t.Error(err)
				}
				fx.loader.ListModules()
			}
		})
	}
	all.Wait()
	fx.wantOffered()
}
