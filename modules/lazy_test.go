package modules_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// lazyModule is a fakeModule with cached groups; nil is none.
type lazyModule struct {
	*fakeModule
	cached []toolgroups.Group
}

// CachedGroups implements modules.LazyModule.
func (m lazyModule) CachedGroups() ([]toolgroups.Group, bool) { return m.cached, m.cached != nil }

func TestLazy_ProvisionedByFirstCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		f := newFakeModule("m", group("a", textTool("t", "new")), group("b", textTool("u", "new")))
		started := make(chan struct{})
		f.provision = func(context.Context) error { <-started; return nil }
		fx.load(lazyModule{f, []toolgroups.Group{group("a", textTool("t", "known"))}})
		wantCalls(t, f, "name")
		h, _ := fx.manager.CurrentSnapshot().LookupTool("t")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if got := callTool(t.Context(), h.Tool); got != "known" {
					t.Errorf("a first call returns %q", got)
				}
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := callTool(ctx, h.Tool); got != string(errcode.ToolUnavailable) {
			t.Errorf("a call whose context ends first returns %q", got)
		}
		close(started)
		all.Wait()
		fx.waitIdle()
		wantCalls(t, f, "name provision validate groups")
		fx.wantOffered("module:m a: t=new", "module:m b: u=new")
		if err := fx.loader.ProvisionModule(t.Context(), "m"); err != nil {
			t.Errorf("Provision of a provisioned module: %v", err)
		}
		if err := fx.loader.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wantCalls(t, f, "name provision validate groups close")
	})
}

func TestLazy_ProvisionedOnLoadWithoutCache(t *testing.T) {
	fx := newFixture(t)
	f := newFakeModule("m", group("a", textTool("t", "1")))
	fx.load(lazyModule{fakeModule: f})
	wantCalls(t, f, "name provision validate groups")
	fx.wantOffered("module:m a: t=1")
}

// A module that replaces another is provisioned first, lazy or not: otherwise the old
// one could not stay in service when the new one fails.
func TestLazy_ProvisionedOnReload(t *testing.T) {
	fx := newFixture(t)
	fx.load(newFakeModule("m", group("a", textTool("t", "old"))))
	f := newFakeModule("m", group("a", textTool("t", "new")))
	f.provision = func(context.Context) error { return errors.New("no") }
	lazy := lazyModule{f, []toolgroups.Group{group("a", textTool("t", "known"))}}
	wantStep(t, fx.loader.ReloadModule(t.Context(), lazy), modules.StepProvision, errcode.Internal)
	fx.wantOffered("module:m a: t=old")
}

// After a failed Provision a call retries it once the delay has passed: one second, then
// twice as long after each failure, up to one minute.
func TestLazy_RetriesProvisionAfterBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		f := newFakeModule("m", group("a", textTool("t", "new")))
		down := errcode.New(errcode.ToolUnavailable, "the server is down")
		attempts := 0
		f.provision = func(context.Context) error {
			if attempts++; attempts == 3 {
				panic("boom")
			}
			return down
		}
		fx.load(lazyModule{f, []toolgroups.Group{group("a", textTool("t", "known"))}})
		h, _ := fx.manager.CurrentSnapshot().LookupTool("t")
		delay := time.Second
		for n := 1; n <= 8; n++ {
			for range 3 { // the first provisions, the others get its error
				_, err := h.Tool.Call(t.Context(), tool.Call{})
				if errcode.CodeOf(err) != errcode.ToolUnavailable || n != 3 && !strings.Contains(errcode.Message(err), "the server is down") {
					t.Errorf("attempt %d: %v", n, err)
				}
			}
			if failed := fx.loader.FailedModules(); attempts != n || !slices.Equal(failed, []string{"m"}) {
				t.Errorf("provisioned %d times, want %d; failed: %q", attempts, n, failed)
			}
			time.Sleep(delay) // in synctest's time
			delay = min(2*delay, time.Minute)
		}
		f.provision = func(context.Context) error { return nil }
		if got := callTool(t.Context(), h.Tool); got != "known" {
			t.Errorf("when the server is up the tool returns %q", got)
		}
		if failed := fx.loader.FailedModules(); failed != nil {
			t.Errorf("when the server is up, failed: %q", failed)
		}
		fx.waitIdle()
		fx.wantOffered("module:m a: t=new")
		if err := fx.loader.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestLazy_RefreshesCachedGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		f := newFakeModule("m")
		lazy := &lazyModule{f, []toolgroups.Group{group("a", textTool("t", "1"))}}
		fx.load(lazy)
		lazy.cached = append(lazy.cached, group("b", textTool("u", "1")))
		fx.loader.NotifyChanged("m")
		fx.waitIdle()
		fx.wantLoaded(modules.ModuleInfo{Name: "m", Groups: []toolgroups.GroupID{"a", "b"}})
		wantCalls(t, f, "name")
	})
}

// ctx bounds the wait for Provision, not the attempt.
// The error of a call names the module and the cause once, for each caller.
func TestLazy_ErrorSaysCauseOnce(t *testing.T) {
	for cause, want := range map[string]string{
		"the server is down":      `t did not start: module "m" could not be provisioned: the server is down; a later call retries`,
		`server "m" is down`:      `t did not start: server "m" is down; a later call retries`,
		`server "m2" is starting`: `t did not start: module "m" could not be provisioned: server "m2" is starting; a later call retries`,
	} {
		fx := newFixture(t)
		f := newFakeModule("m")
		f.provision = func(context.Context) error { return errcode.New(errcode.ToolUnavailable, "%s", cause) }
		fx.load(lazyModule{f, []toolgroups.Group{group("a", textTool("t", "1"))}})
		h, _ := fx.manager.CurrentSnapshot().LookupTool("t")
		_, err := h.Tool.Call(t.Context(), tool.Call{})
		if got := errcode.Message(err); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if n := strings.Count(err.Error(), cause); n != 1 {
			t.Errorf("the log says the cause %d times: %v", n, err)
		}
		fx.waitIdle()
	}
}

func TestLoader_ProvisionOutlivesContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		release := make(chan struct{})
		f := newFakeModule("m", group("a", textTool("t", "new")))
		f.provision = blockUntil(release)
		fx.load(lazyModule{f, []toolgroups.Group{group("a", textTool("t", "known"))}})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := fx.loader.ProvisionModule(ctx, "m"); errcode.CodeOf(err) != errcode.ToolUnavailable {
			t.Errorf("Provision: %v", err)
		}
		close(release)
		fx.waitIdle()
		fx.wantOffered("module:m a: t=new")
		wantCalls(t, f, "name provision validate groups")
		wantStep(t, fx.loader.ProvisionModule(t.Context(), "n"), modules.StepCheck, errcode.Conflict)
	})
}

// A module that is unloaded during Provision is closed once Provision has returned.
func TestLazy_UnloadDuringProvisionClosesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		release := make(chan struct{})
		f := newFakeModule("m", group("a", textTool("t", "new")))
		f.provision = blockUntil(release)
		fx.load(lazyModule{f, []toolgroups.Group{group("a", textTool("t", "known"))}})
		h, _ := fx.manager.CurrentSnapshot().LookupTool("t")
		got := make(chan string, 1)
		go func() { got <- callTool(t.Context(), h.Tool) }()
		synctest.Wait()
		done := make(chan error, 1)
		go func() { done <- fx.loader.UnloadModule(t.Context(), "m") }()
		synctest.Wait()
		close(release)
		if err := <-done; err != nil {
			t.Errorf("Unload: %v", err)
		}
		if got := <-got; got != "known" {
			t.Errorf("the call in progress returns %q", got)
		}
		fx.waitIdle()
		wantCalls(t, f, "name provision validate close")
	})
}
