package modules_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestReloadReplacesTheGroups(t *testing.T) {
	tests := []struct {
		why  string
		old  []toolgroups.Group
		next []toolgroups.Group
		want []string
	}{
		{"the same ones",
			[]toolgroups.Group{group("a", says("t", "old"))},
			[]toolgroups.Group{group("a", says("t", "new"))},
			[]string{"module:m a: t=new"}},
		{"one goes and one comes",
			[]toolgroups.Group{group("a", says("t", "old")), group("b", says("u", "old"))},
			[]toolgroups.Group{group("b", says("u", "new")), group("c", says("v", "new"))},
			[]string{"module:m b: u=new", "module:m c: v=new"}},
		{"a group has a new name",
			[]toolgroups.Group{group("a", says("t", "old"))},
			[]toolgroups.Group{group("b", says("t", "new"))},
			[]string{"module:m b: t=new"}},
		{"a tool moves to an earlier group",
			[]toolgroups.Group{group("a", says("t", "old")), group("b", says("u", "old"), says("v", "old"))},
			[]toolgroups.Group{group("a", says("t", "new"), says("u", "new")), group("b", says("v", "new"))},
			[]string{"module:m a: t=new u=new", "module:m b: v=new"}},
		{"two groups swap their tools",
			[]toolgroups.Group{group("a", says("t", "old")), group("b", says("u", "old"))},
			[]toolgroups.Group{group("a", says("u", "new")), group("b", says("t", "new"))},
			[]string{"module:m a: u=new", "module:m b: t=new"}},
		{"all go", []toolgroups.Group{group("a", says("t", "old"))}, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			k := newKit(t)
			old, next := newFake("m", tt.old...), newFake("m", tt.next...)
			k.load(old)
			if err := k.loader.Reload(t.Context(), next); err != nil {
				t.Fatalf("Reload: %v", err)
			}
			k.wantOffered(tt.want...)
			wantLog(t, old, "name provision validate groups close")
			wantLog(t, next, "name provision validate groups")
		})
		t.Run(tt.why+", with a fault", func(t *testing.T) { reloadWithFaults(t, tt.old, tt.next, tt.want) })
	}
}

// Property: whichever change of the registry reports a fault, whether it was
// made or not, a failed reload leaves every old group as it was.
func reloadWithFaults(t *testing.T, old, next []toolgroups.Group, want []string) {
	for at := 1; ; at++ {
		for _, made := range []bool{false, true} {
			k := newKit(t)
			faulty := &faultyGroups{Manager: k.manager, made: made}
			k.loader = modules.NewLoader(faulty)
			first, second := newFake("m", old...), newFake("m", next...)
			k.load(first)
			before := k.offered()
			faulty.left = at
			err := k.loader.Reload(t.Context(), second)
			if faulty.left > 0 { // there are fewer changes than that
				k.wantOffered(want...)
				return
			}
			wantStep(t, err, modules.StepRegister, errcode.Internal)
			k.wantOffered(before...)
			wantLog(t, first, "name provision validate groups")
			wantLog(t, second, "name provision validate groups close")
		}
	}
}

var errFault = errors.New("injected fault")

// faultyGroups reports a fault once, when left comes to 0.
type faultyGroups struct {
	*toolgroups.Manager
	left int
	made bool // the change is made nevertheless
}

func (f *faultyGroups) Register(owner toolgroups.Owner, g toolgroups.Group) (w toolgroups.Warning, err error) {
	return w, f.maybe(func() error { w, err = f.Manager.Register(owner, g); return err })
}

func (f *faultyGroups) Unregister(owner toolgroups.Owner, id toolgroups.GroupID) error {
	return f.maybe(func() error { return f.Manager.Unregister(owner, id) })
}

func (f *faultyGroups) maybe(change func() error) error {
	f.left--
	if f.left != 0 {
		return change()
	}
	if f.made {
		return errors.Join(change(), errFault)
	}
	return errFault
}

func TestUnloadGoesOnWhenTheRegistryFails(t *testing.T) {
	k := newKit(t)
	faulty := &faultyGroups{Manager: k.manager}
	k.loader = modules.NewLoader(faulty)
	f := newFake("m", group("a", says("t", "1")), group("b", says("u", "1")))
	k.load(f)
	faulty.left = 1
	wantStep(t, k.loader.Unload(t.Context(), "m"), modules.StepUnregister, errcode.Internal)
	wantLog(t, f, "name provision validate groups close")
	k.wantOffered("module:m b: u=tool_unavailable")
	k.load(newFake("m", group("b", says("u", "2"))))
	k.wantOffered("module:m b: u=2")
}

func TestAFailedReloadLeavesTheOldOneInService(t *testing.T) {
	for _, b := range breakages {
		t.Run(string(b.step), func(t *testing.T) {
			k := newKit(t)
			old, next := newFake("m", group("a", says("t", "old"))), newFake("m", group("a", says("t", "new")))
			k.load(old)
			b.set(next, func() error {
				k.wantOffered("module:m a: t=old") // beside the running one
				panic("boom")
			})
			wantStep(t, k.loader.Reload(t.Context(), next), b.step, errcode.Internal)
			wantLog(t, next, b.log)
			wantLog(t, old, "name provision validate groups")
			k.wantOffered("module:m a: t=old")
		})
	}
}

// inFlight has a module "m" whose tool "slow" is being called; the call ends
// with release, and its answer comes from got.
func inFlight(k *kit) (f *fake, release chan struct{}, got chan string) {
	release, got = make(chan struct{}), make(chan string, 1)
	f = newFake("m", group("a", holds("slow", "old", release)))
	k.load(f)
	h, _ := k.manager.Snapshot().Lookup("slow")
	go func() { got <- answer(k.Context(), h.Tool) }()
	synctest.Wait()
	return f, release, got
}

func TestReloadClosesTheOldOneWhenItsCallsHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		old, release, got := inFlight(k)
		before, _ := k.manager.Snapshot().Lookup("slow")
		done := make(chan error, 1)
		go func() { done <- k.loader.Reload(t.Context(), newFake("m", group("a", says("slow", "new")))) }()
		synctest.Wait()

		k.wantOffered("module:m a: slow=new")
		if got := answer(t.Context(), before.Tool); got != "tool_unavailable" {
			t.Errorf("a late call of the old tool answers %q, want tool_unavailable", got)
		}
		wantLog(t, old, "name provision validate groups")

		close(release)
		if err := <-done; err != nil {
			t.Errorf("Reload: %v", err)
		}
		if got := <-got; got != "old" {
			t.Errorf("the call in flight answers %q, want old", got)
		}
		wantLog(t, old, "name provision validate groups close")
	})
}

func TestUnloadWaitsForTheCallsThatEntered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		f, release, got := inFlight(k)
		late, _ := k.manager.Snapshot().Lookup("slow")
		done := make(chan error, 1)
		go func() { done <- k.loader.Unload(t.Context(), "m") }()
		synctest.Wait()

		k.wantOffered()
		if got := answer(t.Context(), late.Tool); got != "tool_unavailable" {
			t.Errorf("a late call answers %q, want tool_unavailable", got)
		}
		select {
		case err := <-done:
			t.Errorf("Unload returned %v while a call was in the module", err)
		default:
		}
		close(release)
		if err := <-done; err != nil {
			t.Errorf("Unload: %v", err)
		}
		if got := <-got; got != "old" {
			t.Errorf("the call in flight answers %q, want old", got)
		}
		wantLog(t, f, "name provision validate groups close")
	})
}

// The bubble of synctest fails the test if a goroutine stays.
func TestAModuleThatOutlivesItsUnloadClosesWithItsLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		f, release, got := inFlight(k)
		notClosed := errors.New("not closed")
		f.close = func() error { return notClosed }
		over, cancel := context.WithCancel(t.Context())
		cancel()
		err := k.loader.Unload(over, "m")
		wantStep(t, err, modules.StepWait, errcode.Internal)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Unload: %v, want context.Canceled", err)
		}
		k.wantLoaded()
		k.load(newFake("m", group("a", says("slow", "new")))) // the name is free
		wantStep(t, k.loader.Close(over), modules.StepWait, errcode.Internal)

		close(release)
		synctest.Wait()
		wantLog(t, f, "name provision validate groups close")
		if got := <-got; got != "old" {
			t.Errorf("the call in flight answers %q, want old", got)
		}
		if err := k.loader.Close(t.Context()); !errors.Is(err, notClosed) {
			t.Errorf("Close: %v, want the error of the late module", err)
		}
		if err := k.loader.Close(t.Context()); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

func TestCloseTellsOfEveryLateModuleThatDidNotClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		causes := []error{errors.New("the first"), nil, errors.New("the third")}
		for _, cause := range causes {
			f, release, _ := inFlight(k)
			f.close = func() error { return cause }
			wantStep(t, k.loader.Unload(over, "m"), modules.StepWait, errcode.Internal)
			close(release)
			synctest.Wait()
		}
		err := k.loader.Close(t.Context())
		if !errors.Is(err, causes[0]) || !errors.Is(err, causes[2]) {
			t.Errorf("Close: %v, want the first and the third", err)
		}
	})
}

func TestAReloadThatCannotWaitHasReplacedTheModule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		old, release, _ := inFlight(k)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		err := k.loader.Reload(over, newFake("m", group("a", says("slow", "new"))))
		wantStep(t, err, modules.StepWait, errcode.Internal)
		k.wantOffered("module:m a: slow=new")
		close(release)
		if err := k.loader.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		wantLog(t, old, "name provision validate groups close")
	})
}

func TestAQuietModuleClosesAtOnceHoweverLateItIs(t *testing.T) {
	k := newKit(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	f := newFake("m")
	f.provision = func(ctx context.Context) error { return ctx.Err() }
	wantStep(t, k.loader.Load(over, f), modules.StepProvision, errcode.Internal)
	wantLog(t, f, "name provision close")
}

func TestAToolThatUnloadsItsOwnModuleWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		f := newFake("m", group("a", toolFunc{"leave", func(context.Context) (tool.Result, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 1)
			defer cancel()
			return tool.Result{Text: "left"}, k.loader.Unload(ctx, "m")
		}}))
		k.load(f)
		if got := k.call("leave"); got != string(errcode.Internal) {
			t.Errorf("the tool answers %q, want the error of its wait", got)
		}
		if err := k.loader.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		wantLog(t, f, "name provision validate groups close")
	})
}

func TestACallThatPanicsHasLeft(t *testing.T) {
	k := newKit(t)
	f := newFake("m", group("a", toolFunc{"fall", func(context.Context) (tool.Result, error) { panic("boom") }}))
	k.load(f)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach the gate, which logs it")
			}
		}()
		k.call("fall")
	}()
	if err := k.loader.Unload(t.Context(), "m"); err != nil {
		t.Errorf("Unload: %v", err)
	}
	wantLog(t, f, "name provision validate groups close")
}

// Property (design §7): however calls and changes interleave, no call is in a
// module that is closed, every module is closed exactly once, and at every
// moment of reloads alone a call through the registry finds its tool.
func TestNoCallIsInAClosedModule(t *testing.T) {
	k := newKit(t)
	var made, ended atomic.Int64
	fresh := func() *fake {
		made.Add(1)
		var closed atomic.Bool
		f := newFake("m", group("a", toolFunc{"t", func(context.Context) (tool.Result, error) {
			if closed.Load() {
				return tool.Result{Text: "in a closed module"}, nil
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
	k.load(fresh())
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
				h, ok := k.manager.Snapshot().Lookup("t")
				if !ok {
					t.Error("the tool is gone during a reload")
					return
				}
				if got := answer(t.Context(), h.Tool); got != "ok" && got != "tool_unavailable" {
					t.Errorf("a call answers %q", got)
					return
				}
			}
		})
	}
	for n := range short.N(60, 300) {
		if err := k.loader.Reload(t.Context(), fresh()); err != nil {
			t.Errorf("reload %d: %v", n, err)
		}
	}
	close(stop)
	callers.Wait()
	if err := k.loader.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if made.Load() != ended.Load() {
		t.Errorf("%d modules were made, %d closed", made.Load(), ended.Load())
	}
}

func TestModulesChangeSideBySide(t *testing.T) {
	k := newKit(t)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			name := fmt.Sprintf("m%d", n)
			mine := func() *fake { return newFake(name, group(toolgroups.GroupID(name), says("t_"+name, "1"))) }
			for range 20 {
				err := errors.Join(k.loader.Load(t.Context(), mine()), k.loader.Reload(t.Context(), mine()), k.loader.Unload(t.Context(), name))
				if err != nil {
					t.Error(err)
				}
				k.loader.Modules()
			}
		})
	}
	all.Wait()
	k.wantOffered()
}
