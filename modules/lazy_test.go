package modules_test

import (
	"context"
	"errors"
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

// drowsy is a fake that knows its groups before it is provisioned.
type drowsy struct {
	*fake
	known []toolgroups.Group
}

// CachedGroups implements modules.Lazy.
func (d drowsy) CachedGroups() ([]toolgroups.Group, bool) { return d.known, d.known != nil }

func TestALazyModuleIsProvisionedByItsFirstCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		f := newFake("m", group("a", says("t", "new")), group("b", says("u", "new")))
		started := make(chan struct{})
		f.provision = func(context.Context) error { <-started; return nil }
		k.load(drowsy{f, []toolgroups.Group{group("a", says("t", "known"))}})
		wantLog(t, f, "name")
		h, _ := k.manager.Snapshot().Lookup("t")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if got := answer(t.Context(), h.Tool); got != "known" {
					t.Errorf("a first call answers %q", got)
				}
			})
		}
		hurried, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := answer(hurried, h.Tool); got != string(errcode.ToolUnavailable) {
			t.Errorf("a call that does not wait answers %q", got)
		}
		close(started)
		all.Wait()
		k.settled()
		wantLog(t, f, "name provision validate groups")
		k.wantOffered("module:m a: t=new", "module:m b: u=new")
		if err := k.loader.Provision(t.Context(), "m"); err != nil {
			t.Errorf("Provision of what is provisioned: %v", err)
		}
		if err := k.loader.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wantLog(t, f, "name provision validate groups close")
	})
}

func TestALazyModuleThatKnowsNothingIsProvisionedWhenLoaded(t *testing.T) {
	k := newKit(t)
	f := newFake("m", group("a", says("t", "1")))
	k.load(drowsy{fake: f})
	wantLog(t, f, "name provision validate groups")
	k.wantOffered("module:m a: t=1")
}

// What replaces a module is provisioned beside it, lazy or not: else it could
// not be said that the old one stays when the new one fails.
func TestALazyModuleIsProvisionedWhenItReplacesOne(t *testing.T) {
	k := newKit(t)
	k.load(newFake("m", group("a", says("t", "old"))))
	f := newFake("m", group("a", says("t", "new")))
	f.provision = func(context.Context) error { return errors.New("no") }
	lazy := drowsy{f, []toolgroups.Group{group("a", says("t", "known"))}}
	wantStep(t, k.loader.Reload(t.Context(), lazy), modules.StepProvision, errcode.Internal)
	k.wantOffered("module:m a: t=old")
}

// A Provision that fails is tried again, by calls that come after a pause: of a
// second, then twice as long each time, a minute at most.
func TestAProvisionThatFailsIsTriedAgainAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		f := newFake("m", group("a", says("t", "new")))
		down := errcode.New(errcode.ToolUnavailable, "the server is down")
		tries := 0
		f.provision = func(context.Context) error {
			if tries++; tries == 3 {
				panic("boom")
			}
			return down
		}
		k.load(drowsy{f, []toolgroups.Group{group("a", says("t", "known"))}})
		h, _ := k.manager.Snapshot().Lookup("t")
		pause := time.Second
		for n := 1; n <= 8; n++ {
			for range 3 { // the first tries, the others hear of it
				_, err := h.Tool.Call(t.Context(), tool.Call{})
				if errcode.Of(err) != errcode.ToolUnavailable || n != 3 && !strings.Contains(errcode.Message(err), "the server is down") {
					t.Errorf("try %d: %v", n, err)
				}
			}
			if tries != n {
				t.Errorf("provisioned %d times, want %d", tries, n)
			}
			time.Sleep(pause) // of the bubble
			pause = min(2*pause, time.Minute)
		}
		f.provision = func(context.Context) error { return nil }
		if got := answer(t.Context(), h.Tool); got != "known" {
			t.Errorf("when the server is up it answers %q", got)
		}
		k.settled()
		k.wantOffered("module:m a: t=new")
		if err := k.loader.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatALazyModuleKnowsChangesWhileItSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		f := newFake("m")
		lazy := &drowsy{f, []toolgroups.Group{group("a", says("t", "1"))}}
		k.load(lazy)
		lazy.known = append(lazy.known, group("b", says("u", "1")))
		k.loader.Changed("m")
		k.settled()
		k.wantLoaded(modules.Info{Name: "m", Groups: []toolgroups.GroupID{"a", "b"}})
		wantLog(t, f, "name")
	})
}

// ctx bounds the wait, not the work.
func TestProvisionGoesOnWithoutWhoAskedForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		release := make(chan struct{})
		f := newFake("m", group("a", says("t", "new")))
		f.provision = hang(release)
		k.load(drowsy{f, []toolgroups.Group{group("a", says("t", "known"))}})
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := k.loader.Provision(over, "m"); errcode.Of(err) != errcode.ToolUnavailable {
			t.Errorf("Provision: %v", err)
		}
		close(release)
		k.settled()
		k.wantOffered("module:m a: t=new")
		wantLog(t, f, "name provision validate groups")
		wantStep(t, k.loader.Provision(t.Context(), "n"), modules.StepCheck, errcode.Conflict)
	})
}

// A module that never comes up and is unloaded meanwhile is closed when its
// Provision has returned.
func TestAModuleThatIsWokenWhileItIsUnloadedIsClosedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		release := make(chan struct{})
		f := newFake("m", group("a", says("t", "new")))
		f.provision = hang(release)
		k.load(drowsy{f, []toolgroups.Group{group("a", says("t", "known"))}})
		h, _ := k.manager.Snapshot().Lookup("t")
		got := make(chan string, 1)
		go func() { got <- answer(t.Context(), h.Tool) }()
		synctest.Wait()
		done := make(chan error, 1)
		go func() { done <- k.loader.Unload(t.Context(), "m") }()
		synctest.Wait()
		close(release)
		if err := <-done; err != nil {
			t.Errorf("Unload: %v", err)
		}
		if got := <-got; got != "known" {
			t.Errorf("the call that had entered answers %q", got)
		}
		k.settled()
		wantLog(t, f, "name provision validate close")
	})
}
