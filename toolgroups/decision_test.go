package toolgroups_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Every tool gets the Evaluation of the one rule that applies to it.
func TestStateView_EvaluateTool(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "mine", Tools: []tool.Tool{stubs("a")[0], toolInStates("draft", "draft"), toolInStates("never")}})
	register(t, m, "o", toolgroups.Group{ID: "theirs", Tools: stubs("b")})
	register(t, m, "o", toolgroups.Group{ID: "plain", Tools: stubs("c")})
	s := m.CurrentSnapshot()
	view := s.Compile(s.PinOwners(toolgroups.SetOf("mine")))
	view.SetEpoch(7)
	plain := s.Compile(s.PinOwners(toolgroups.SetOf("plain")))
	const granted, wrongState, notGranted = toolgroups.Granted, toolgroups.WrongState, toolgroups.NotGranted
	for _, tt := range []struct {
		view        *toolgroups.View
		state, tool string
		want        toolgroups.DecisionRule
	}{
		{view, "", "a", granted}, {view, "draft", "a", granted}, {view, "draft", "draft", granted},
		{view, "", "draft", wrongState}, {view, "draft", "never", wrongState},
		{view, "", "b", notGranted}, {view, "draft", "b", notGranted},
		{plain, "", "c", granted}, {plain, "draft", "a", notGranted},
		{new(toolgroups.View), "", "a", notGranted}, {new(toolgroups.ViewRef).CurrentView(), "draft", "draft", notGranted},
	} {
		sv := tt.view.ForState(tt.state)
		if got := sv.EvaluateTool(lookup(t, s, tt.tool)); got.Rule != tt.want || tt.view == view && (got != view.RuleEvaluation(tt.want) || got.Epoch != 7) {
			t.Errorf("%s in state %q: got %+v, want rule %s", tt.tool, tt.state, got, tt.want)
		}
		if got := sv.EvaluateTool(nil).Rule; got != toolgroups.NoSuchTool {
			t.Errorf("no tool, in state %q: got %s", tt.state, got)
		}
	}
	if sv := view.ForState("draft"); sv.BaseView() != view || view.ForState("").BaseView() != view {
		t.Error("a StateView is part of another View")
	}
}

func TestDecisionRule_String(t *testing.T) {
	var got []string
	for rule := range toolgroups.Granted + 2 {
		got = append(got, rule.String())
	}
	if text := strings.Join(got, ", "); text != "not granted, no such tool, wrong state, granted, granted" {
		t.Errorf("got %s", text)
	}
}

// A View predates a tool that was registered after it was compiled, also one that was
// registered again.
func TestView_PredatesTool(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("a")})
	s := m.CurrentSnapshot()
	view, old := s.Compile(s.PinOwners(toolgroups.AllGroups())), lookup(t, s, "a")
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("a")})
	if again := lookup(t, m.CurrentSnapshot(), "a"); view.PredatesTool(old) || !view.PredatesTool(again) {
		t.Errorf("predates the first registration: %v, the second: %v", view.PredatesTool(old), view.PredatesTool(again))
	}
}

// WaitIdle returns when the watchers of a change in progress have returned.
func TestManager_WaitIdleWaitsForWatchers(t *testing.T) {
	for range 100 {
		m := toolgroups.NewManager()
		called, release := make(chan struct{}), make(chan struct{})
		var watched atomic.Bool
		m.WatchGroups(func([]toolgroups.GroupID) {
			close(called)
			<-release
			watched.Store(true)
		})
		registered := make(chan error)
		go func() {
			_, err := grouptest.RegisterGroup(m, "o", toolgroups.Group{ID: "g"})
			registered <- err
		}()
		<-called
		go close(release)
		if m.WaitIdle(); !watched.Load() {
			t.Error("WaitIdle returned before the watcher")
		}
		if err := <-registered; err != nil {
			t.Fatal(err)
		}
	}
}

func TestSetOfNames(t *testing.T) {
	for want, names := range map[string][]string{"-": nil, "b,a": {"b", "a", "b"}, "*": {"a", "*"}} {
		if got := toolgroups.SetOfNames(names...); got.String() != want {
			t.Errorf("%q: got %s, want %s", names, got, want)
		}
	}
}

func TestRegister_RejectsInvalidEffect(t *testing.T) {
	m := toolgroups.NewManager()
	_, err := grouptest.RegisterGroup(m, "o", toolgroups.Group{ID: "g", Tools: []tool.Tool{&stub{tool.Definition{Name: "a", Input: json.RawMessage(anyObject), Effect: 200}}}})
	wantCode(t, err, errcode.InvalidGroupDef, `effect 200 of "a"`)
}

// A definition that is not JSON, which no registry accepts, is not shown in part.
func TestStateView_PanicsOnInvalidSchema(t *testing.T) {
	sv := toolgroups.NewStateView(tool.Definition{Name: "a", Input: json.RawMessage(anyObject)}, tool.Definition{Name: "b", Input: json.RawMessage(`{`)})
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "marshal definitions") {
			t.Errorf("recovered %s", text)
		}
	}()
	t.Errorf("got %s", sv.ToolJSON())
}
