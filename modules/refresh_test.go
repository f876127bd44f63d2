package modules_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
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

// waitIdle waits for background work of the loader.
func (fx *fixture) waitIdle() {
	fx.Helper()
	if err := fx.loader.WaitIdle(fx.Context()); err != nil {
		fx.Fatal(err)
	}
}

// changingModule returns a fakeModule named m and a function that changes its groups.
func changingModule(first ...toolgroups.Group) (f *fakeModule, become func(...toolgroups.Group)) {
	var now atomic.Pointer[[]toolgroups.Group]
	become = func(next ...toolgroups.Group) { now.Store(&next) }
	become(first...)
	f = newFakeModule("m")
	f.groups = func() []toolgroups.Group { return *now.Load() }
	return f, become
}

func TestLoader_ChangedReplacesGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		f, become := changingModule(group("a", textTool("t", "1")), group("b", textTool("u", "1")))
		fx.load(f)
		become(group("b", textTool("u", "2"), textTool("v", "2")), group("c", textTool("t", "2")))
		fx.loader.NotifyChanged("m")
		fx.waitIdle()
		fx.wantOffered("module:m b: u=2 v=2", "module:m c: t=2")
		fx.wantLoaded(modules.ModuleInfo{Name: "m", Groups: []toolgroups.GroupID{"b", "c"}})
		fx.loader.NotifyChanged("unknown")
		fx.waitIdle()
		wantCalls(t, f, "name provision validate groups groups")
		if err := fx.loader.UnloadModule(t.Context(), "m"); err != nil {
			t.Error(err)
		}
		fx.wantOffered()
	})
}

// A refresh keeps the handles of tools that did not change.
func TestLoader_RefreshKeepsUnchangedTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		same, other := &pointerTool{"same"}, &pointerTool{"other"}
		f, become := changingModule(group("a", same), group("b", other))
		fx.load(f)
		before, _ := fx.manager.CurrentSnapshot().LookupTool("same")
		gone, _ := fx.manager.CurrentSnapshot().LookupTool("other")
		become(group("a", same), group("b", &pointerTool{"other"}))
		for range 3 {
			fx.loader.NotifyChanged("m")
			fx.waitIdle()
		}
		after, _ := fx.manager.CurrentSnapshot().LookupTool("same")
		if before != after {
			t.Error("the unchanged tool has a new handle")
		}
		if next, _ := fx.manager.CurrentSnapshot().LookupTool("other"); next == gone {
			t.Error("the replaced tool has the old handle")
		}
	})
}

// A group that differs in any field is registered again.
func TestEqualGroup_ComparesAllFields(t *testing.T) {
	other := map[string]toolgroups.Group{
		"ID":          {ID: "b"},
		"Description": {Description: "b"},
		"Tools":       {Tools: []tool.Tool{textTool("t", "1")}},
		"Refs":        {Refs: []string{"t"}},
		"RefOwners":   {RefOwners: map[string]toolgroups.GroupOwner{"t": "b"}},
		"OwnerRefs":   {OwnerRefs: []toolgroups.OwnerRef{{Owner: "b"}}},
		"Prompts":     {Prompts: []toolgroups.Prompt{nil}},
		"Hours":       {Hours: weekly{}},
		"Open":        {Open: true},
		"Children":    {Children: []toolgroups.GroupID{"a/b"}},
		"Fallback":    {Fallback: []toolgroups.GroupID{"b"}},
		"APIs":        {APIs: map[string]string{"t": "b"}},
		"OpenAPIs":    {OpenAPIs: true},
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[toolgroups.Group]()) {
		g, ok := other[f.Name]
		if !ok || modules.EqualGroup(toolgroups.Group{}, g) || modules.EqualGroup(g, toolgroups.Group{}) {
			t.Errorf("a different %s is not noticed", f.Name)
		}
		if f.Name != "Tools" && !modules.EqualGroup(g, g) { // tools are equal only within a module
			t.Errorf("the same %s is not equal", f.Name)
		}
	}
	if modules.EqualGroup(toolgroups.Group{OwnerRefs: []toolgroups.OwnerRef{{Owner: "b"}}}, toolgroups.Group{OwnerRefs: []toolgroups.OwnerRef{{Owner: "b", Except: []string{"t"}}}}) {
		t.Error("a different exception is not noticed")
	}
	if modules.EqualGroup(toolgroups.Group{Hours: weekly{}}, toolgroups.Group{Hours: weekly{"mon 08:00-18:00"}}) {
		t.Error("different hours are not noticed")
	}
}

// weekly are hours in UTC.
type weekly []string

func (weekly) Zone() string          { return "UTC" }
func (w weekly) Spans() []string     { return w }
func (weekly) NextChange() time.Time { return time.Time{} }

// A child that a module withdraws is no longer part of its group, although the group has no tools
// of its own.
func TestLoader_RefreshWithdrawsChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		parent := func(children ...toolgroups.GroupID) toolgroups.Group {
			return toolgroups.Group{ID: "crm", Description: "crm", Children: children}
		}
		read, write := group("crm/read", textTool("look", "1")), group("crm/write", textTool("change", "1"))
		f, become := changingModule(parent("crm/read", "crm/write"), read, write)
		fx.load(f)
		fx.wantGroupTools("crm", "look", "change")
		become(parent("crm/read"), read, write)
		fx.loader.NotifyChanged("m")
		fx.waitIdle()
		fx.wantGroupTools("crm", "look")
	})
}

// wantGroupTools checks the names of the tools of a group.
func (fx *fixture) wantGroupTools(id toolgroups.GroupID, want ...string) {
	fx.Helper()
	for _, info := range fx.manager.CurrentSnapshot().ListGroups() {
		if info.ID == id && !slices.Equal(info.Tools, want) {
			fx.Errorf("group %s has %v, want %v", id, info.Tools, want)
		}
	}
}

// pointerTool is a tool whose values are distinct although they are equal.
type pointerTool struct{ name string }

func (s *pointerTool) Definition() tool.Definition { return toolFunc{name: s.name}.Definition() }

func (s *pointerTool) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{Text: s.name}, nil
}

// Any number of changes leads to at most ten refreshes a second.
func TestLoader_LimitsRefreshes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		var asked atomic.Int64
		f := newFakeModule("m")
		f.groups = func() []toolgroups.Group { asked.Add(1); return []toolgroups.Group{group("a", textTool("t", "1"))} }
		fx.load(f)
		begin := time.Now()
		for time.Since(begin) < time.Second {
			fx.loader.NotifyChanged("m")
			time.Sleep(time.Millisecond) // in synctest's time
		}
		fx.waitIdle()
		if n := asked.Load(); n < 5 || n > 12 {
			t.Errorf("%d refreshes within a second, want about 10", n)
		}
	})
}

// Of a module that changes all the time, a bounded number of changes is registered, and its last one.
// WaitIdle does not wait for it.
func TestLoader_LimitsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		var log strings.Builder
		fx.loader.Log = slog.New(slog.NewTextHandler(&log, nil))
		f, become := changingModule(group("a", &pointerTool{"t0"}))
		fx.load(f)
		registered := 0
		fx.manager.WatchGroups(func([]toolgroups.GroupID) { registered++ })
		begin := time.Now()
		for n := 1; time.Since(begin) < 10*time.Minute+30*time.Second; n++ {
			become(group("a", &pointerTool{fmt.Sprint("t", n)}))
			fx.loader.NotifyChanged("m")
			time.Sleep(time.Second) // in synctest's time
		}
		if registered < 65 || registered > 71 {
			t.Errorf("%d changes in 10 minutes and a half, want 60 and one a minute", registered)
		}
		become(group("a", &pointerTool{"last"}))
		fx.loader.NotifyChanged("m")
		before := time.Now()
		if fx.waitIdle(); time.Since(before) > time.Second {
			t.Errorf("WaitIdle has waited for %v", time.Since(before))
		}
		time.Sleep(time.Minute)
		fx.waitIdle()
		fx.wantOffered("module:m a: last=last")
		if !strings.Contains(log.String(), "module changes its groups too often") {
			t.Errorf("the log does not say so:\n%s", log.String())
		}
		for range 3 * 60 { // what changes nothing is not counted
			fx.loader.NotifyChanged("m")
			fx.waitIdle()
		}
		time.Sleep(time.Minute)
		become(group("a", &pointerTool{"after"}))
		fx.loader.NotifyChanged("m")
		fx.waitIdle()
		fx.wantOffered("module:m a: after=after")
	})
}

// A change during LoadModule is refreshed afterwards.
func TestLoader_KeepsChangeDuringLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		f, become := changingModule(group("a", textTool("t", "1")))
		first, groups := sync.OnceFunc(func() {
			become(group("a", textTool("t", "2")))
			fx.loader.NotifyChanged("m")
		}), f.groups
		f.groups = func() []toolgroups.Group { defer first(); return groups() }
		fx.load(f)
		fx.waitIdle()
		fx.wantOffered("module:m a: t=2")
	})
}

func TestLoader_FailedRefreshKeepsGroups(t *testing.T) {
	tests := map[string]func() []toolgroups.Group{
		"panic":                 func() []toolgroups.Group { panic("boom") },
		"tool of another owner": func() []toolgroups.Group { return []toolgroups.Group{group("a", textTool("other_tool", "2"))} },
		"reserved id":           func() []toolgroups.Group { return []toolgroups.Group{group("b"), group(toolgroups.Workspace)} },
		"duplicate id":          func() []toolgroups.Group { return []toolgroups.Group{group("a"), group("a")} },
		"panicking definition":  func() []toolgroups.Group { return []toolgroups.Group{group("a", panickingTool{})} },
		"too many groups":       func() []toolgroups.Group { return make([]toolgroups.Group, 10_001) },
		"too many tools":        func() []toolgroups.Group { return []toolgroups.Group{group("a", make([]tool.Tool, 10_001)...)} },
	}
	for why, broken := range tests {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fx := newFixture(t)
				var log strings.Builder
				fx.loader.Log = slog.New(slog.NewTextHandler(&log, nil))
				var now atomic.Pointer[func() []toolgroups.Group]
				working := func() []toolgroups.Group { return []toolgroups.Group{group("a", textTool("t", "1"))} }
				now.Store(&working)
				f := newFakeModule("m")
				f.groups = func() []toolgroups.Group { return (*now.Load())() }
				fx.load(f)
				now.Store(&broken)
				fx.loader.NotifyChanged("m")
				fx.waitIdle()
				fx.wantOffered("module:m a: t=1")
				fx.wantOthersUnchanged()
				if !strings.Contains(log.String(), "module groups not refreshed") {
					t.Errorf("the log has %q", log.String())
				}
				now.Store(&working)
				fx.loader.NotifyChanged("m")
				fx.waitIdle()
				fx.wantOffered("module:m a: t=1")
			})
		})
	}
}

// blockUntil returns a function that returns once release is closed.
func blockUntil(release <-chan struct{}) func(context.Context) error {
	return func(context.Context) error {
		<-release
		return nil
	}
}

func TestLoader_TimesOutHangingStep(t *testing.T) {
	for step, set := range map[modules.LoadStep]func(*fakeModule, func(context.Context) error){
		modules.StepProvision: func(f *fakeModule, hang func(context.Context) error) { f.provision = hang },
		modules.StepValidate:  func(f *fakeModule, hang func(context.Context) error) { f.validate = func() error { return hang(nil) } },
		modules.StepGroups: func(f *fakeModule, hang func(context.Context) error) {
			f.groups = func() []toolgroups.Group { return []toolgroups.Group{group("a", textTool("t", block(hang)))} }
		},
	} {
		t.Run(string(step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fx := newFixture(t)
				release := make(chan struct{})
				f := newFakeModule("m")
				set(f, blockUntil(release))
				begin := time.Now()
				wantStep(t, fx.loader.LoadModule(t.Context(), f), step, errcode.Internal)
				if took := time.Since(begin); took > 40*time.Second {
					t.Errorf("Load took %v", took)
				}
				fx.load(newFakeModule("m", group("a", textTool("t", "the next one"))))
				fx.wantOffered("module:m a: t=the next one")
				if strings.Contains(f.recorded(), "close") {
					t.Error("the module was closed while one of its methods ran")
				}
				close(release)
				if err := fx.loader.Close(t.Context()); err != nil {
					t.Errorf("Close: %v", err)
				}
				if !strings.HasSuffix(f.recorded(), "close") {
					t.Errorf("called methods: got %q, want close at the end", f.recorded())
				}
			})
		})
	}
}

func block(hang func(context.Context) error) string {
	_ = hang(nil)
	return "late"
}

// A hanging refresh delays a reload by the step timeout at most.
func TestLoader_TimesOutHangingRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		release := make(chan struct{})
		var asked atomic.Bool
		f := newFakeModule("m")
		f.groups = func() []toolgroups.Group {
			if asked.Swap(true) {
				<-release
			}
			return []toolgroups.Group{group("a", textTool("t", "1"))}
		}
		fx.load(f)
		fx.loader.NotifyChanged("m")
		synctest.Wait()
		fx.wantOffered("module:m a: t=1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		// A method of the old module still runs, so it closes later.
		wantStep(t, fx.loader.ReloadModule(ctx, newFakeModule("m", group("a", textTool("t", "2")))), modules.StepWait, errcode.Internal)
		fx.wantOffered("module:m a: t=2")
		close(release)
		if err := fx.loader.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

func TestLoader_AbandonsHangingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		release := make(chan struct{})
		f := newFakeModule("m", group("a", blockingTool("slow", "late", release), textTool("quick", "1")))
		fx.load(f)
		h, _ := fx.manager.CurrentSnapshot().LookupTool("slow")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				if _, err := h.Tool.Call(ctx, tool.Call{}); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("hanging call: %v", err)
				}
			})
		}
		all.Wait()
		next, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if got := callTool(next, h.Tool); got != string(errcode.ToolUnavailable) {
			t.Errorf("after 64 hanging calls the next returns %q", got)
		}
		close(release)
		synctest.Wait()
		if got := callTool(next, h.Tool); got != "late" {
			t.Errorf("after they have returned the next returns %q", got)
		}
		if err := fx.loader.UnloadModule(t.Context(), "m"); err != nil {
			t.Error(err)
		}
		wantCalls(t, f, "name provision validate groups close")
	})
}
