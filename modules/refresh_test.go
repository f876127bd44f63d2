package modules_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func (k *kit) settled() {
	k.Helper()
	if err := k.loader.WaitIdle(k.Context()); err != nil {
		k.Fatal(err)
	}
}

// shifting is a fake whose groups can be others.
func shifting(first ...toolgroups.Group) (f *fake, become func(...toolgroups.Group)) {
	var now atomic.Pointer[[]toolgroups.Group]
	become = func(next ...toolgroups.Group) { now.Store(&next) }
	become(first...)
	f = newFake("m")
	f.groups = func() []toolgroups.Group { return *now.Load() }
	return f, become
}

func TestChangedGroupsTakeThePlaceOfThoseBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		f, become := shifting(group("a", says("t", "1")), group("b", says("u", "1")))
		k.load(f)
		become(group("b", says("u", "2"), says("v", "2")), group("c", says("t", "2")))
		k.loader.Changed("m")
		k.settled()
		k.wantOffered("module:m b: u=2 v=2", "module:m c: t=2")
		k.wantLoaded(modules.Info{Name: "m", Groups: []toolgroups.GroupID{"b", "c"}})
		k.loader.Changed("nobody")
		k.settled()
		wantLog(t, f, "name provision validate groups groups")
		if err := k.loader.Unload(t.Context(), "m"); err != nil {
			t.Error(err)
		}
		k.wantOffered()
	})
}

// What is the same stays the same: who holds a tool holds it after a refresh.
func TestToolsThatDidNotChangeStayWhatTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		same, other := &staying{"same"}, &staying{"other"}
		f, become := shifting(group("a", same), group("b", other))
		k.load(f)
		before, _ := k.manager.Snapshot().Lookup("same")
		gone, _ := k.manager.Snapshot().Lookup("other")
		become(group("a", same), group("b", &staying{"other"}))
		for range 3 {
			k.loader.Changed("m")
			k.settled()
		}
		after, _ := k.manager.Snapshot().Lookup("same")
		if before != after {
			t.Error("the tool that did not change has another handle")
		}
		if next, _ := k.manager.Snapshot().Lookup("other"); next == gone {
			t.Error("the tool that is another value has the handle of the one before")
		}
	})
}

type staying struct{ name string }

func (s *staying) Definition() tool.Definition { return toolFunc{name: s.name}.Definition() }

func (s *staying) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{Text: s.name}, nil
}

// A flood of changes costs no more than ten refreshes a second.
func TestAFloodOfChangesIsFewRefreshes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		var asked atomic.Int64
		f := newFake("m")
		f.groups = func() []toolgroups.Group { asked.Add(1); return []toolgroups.Group{group("a", says("t", "1"))} }
		k.load(f)
		begin := time.Now()
		for time.Since(begin) < time.Second {
			k.loader.Changed("m")
			time.Sleep(time.Millisecond) // of the bubble
		}
		k.settled()
		if n := asked.Load(); n < 5 || n > 12 {
			t.Errorf("asked %d times within a second, want about 10", n)
		}
	})
}

// A change that comes while the module is being loaded is not forgotten.
func TestAChangeDuringLoadIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		f, become := shifting(group("a", says("t", "1")))
		first, groups := sync.OnceFunc(func() {
			become(group("a", says("t", "2")))
			k.loader.Changed("m")
		}), f.groups
		f.groups = func() []toolgroups.Group { defer first(); return groups() }
		k.load(f)
		k.settled()
		k.wantOffered("module:m a: t=2")
	})
}

func TestWhatGoesWrongInARefreshLeavesTheGroupsAsTheyWere(t *testing.T) {
	tests := map[string]func() []toolgroups.Group{
		"a panic":                 func() []toolgroups.Group { panic("boom") },
		"another's tool":          func() []toolgroups.Group { return []toolgroups.Group{group("a", says("knock", "2"))} },
		"a reserved id":           func() []toolgroups.Group { return []toolgroups.Group{group("b"), group(toolgroups.Workspace)} },
		"an id twice":             func() []toolgroups.Group { return []toolgroups.Group{group("a"), group("a")} },
		"no definition":           func() []toolgroups.Group { return []toolgroups.Group{group("a", panicky{})} },
		"more groups than can be": func() []toolgroups.Group { return make([]toolgroups.Group, 10_001) },
		"more tools than can be":  func() []toolgroups.Group { return []toolgroups.Group{group("a", make([]tool.Tool, 10_001)...)} },
	}
	for why, broken := range tests {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t)
				var log strings.Builder
				k.loader.Log = slog.New(slog.NewTextHandler(&log, nil))
				var now atomic.Pointer[func() []toolgroups.Group]
				right := func() []toolgroups.Group { return []toolgroups.Group{group("a", says("t", "1"))} }
				now.Store(&right)
				f := newFake("m")
				f.groups = func() []toolgroups.Group { return (*now.Load())() }
				k.load(f)
				now.Store(&broken)
				k.loader.Changed("m")
				k.settled()
				k.wantOffered("module:m a: t=1")
				k.wantNeighbours()
				if !strings.Contains(log.String(), "stay as they were") {
					t.Errorf("the log has %q", log.String())
				}
				now.Store(&right)
				k.loader.Changed("m")
				k.settled()
				k.wantOffered("module:m a: t=1")
			})
		})
	}
}

// hang is a function that does not return before release is closed.
func hang(release <-chan struct{}) func(context.Context) error {
	return func(context.Context) error {
		<-release
		return nil
	}
}

func TestAModuleThatHangsHasFailedThatStepOnly(t *testing.T) {
	for step, set := range map[modules.Step]func(*fake, func(context.Context) error){
		modules.StepProvision: func(f *fake, hang func(context.Context) error) { f.provision = hang },
		modules.StepValidate:  func(f *fake, hang func(context.Context) error) { f.validate = func() error { return hang(nil) } },
		modules.StepGroups: func(f *fake, hang func(context.Context) error) {
			f.groups = func() []toolgroups.Group { return []toolgroups.Group{group("a", says("t", hangs(hang)))} }
		},
	} {
		t.Run(string(step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t)
				release := make(chan struct{})
				f := newFake("m")
				set(f, hang(release))
				begin := time.Now()
				wantStep(t, k.loader.Load(t.Context(), f), step, errcode.Internal)
				if took := time.Since(begin); took > 40*time.Second {
					t.Errorf("it took %v", took)
				}
				k.load(newFake("m", group("a", says("t", "the next one"))))
				k.wantOffered("module:m a: t=the next one")
				if strings.Contains(f.noted(), "close") {
					t.Error("it was closed while it was being asked")
				}
				close(release)
				if err := k.loader.Close(t.Context()); err != nil {
					t.Errorf("Close: %v", err)
				}
				if !strings.HasSuffix(f.noted(), "close") {
					t.Errorf("it saw %q, want close at the end", f.noted())
				}
			})
		})
	}
}

func hangs(hang func(context.Context) error) string {
	_ = hang(nil)
	return "late"
}

// A refresh that hangs does not keep a module from being replaced for longer
// than it has.
func TestARefreshThatHangsGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		release := make(chan struct{})
		var asked atomic.Bool
		f := newFake("m")
		f.groups = func() []toolgroups.Group {
			if asked.Swap(true) {
				<-release
			}
			return []toolgroups.Group{group("a", says("t", "1"))}
		}
		k.load(f)
		k.loader.Changed("m")
		synctest.Wait()
		k.wantOffered("module:m a: t=1")
		over, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		// The old one is still being asked: it closes later.
		wantStep(t, k.loader.Reload(over, newFake("m", group("a", says("t", "2")))), modules.StepWait, errcode.Internal)
		k.wantOffered("module:m a: t=2")
		close(release)
		if err := k.loader.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

func TestACallThatDoesNotStopIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		release := make(chan struct{})
		f := newFake("m", group("a", holds("slow", "late", release), says("quick", "1")))
		k.load(f)
		h, _ := k.manager.Snapshot().Lookup("slow")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				if _, err := h.Tool.Call(ctx, tool.Call{}); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a call that hangs: %v", err)
				}
			})
		}
		all.Wait()
		next, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if got := answer(next, h.Tool); got != string(errcode.ToolUnavailable) {
			t.Errorf("after 64 that hang the next answers %q", got)
		}
		close(release)
		synctest.Wait()
		if got := answer(next, h.Tool); got != "late" {
			t.Errorf("when they have returned it answers %q", got)
		}
		if err := k.loader.Unload(t.Context(), "m"); err != nil {
			t.Error(err)
		}
		wantLog(t, f, "name provision validate groups close")
	})
}
