package gate_test

import (
	"slices"
	"testing"

	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// stateTools returns the tool open, which leads from the state shut to open, and the
// tool enter, which is visible in the state open.
func stateTools() []tool.Tool {
	open, enter := definition("open", tool.Mutating), definition("enter", tool.ReadOnly)
	open.State, open.States, enter.States = "open", []string{"shut"}, []string{"open"}
	return []tool.Tool{&fakeTool{definition: open}, &fakeTool{definition: enter}}
}

// AfterCall follows the states of visible tools only and does not change its
// receiver.
func TestSubject_AfterCall(t *testing.T) {
	finish := definition("finish", tool.Mutating)
	finish.State, finish.States = "done", []string{"open"}
	f := newFixture(t, append(stateTools(), &fakeTool{definition: finish})...)
	f.directory.setState("shut")
	for _, c := range []struct {
		name  string
		calls []string
		state string
		sees  []string
	}{
		{"no call", nil, "shut", []string{"open"}},
		{"tool with a state", []string{"open"}, "open", []string{"enter"}},
		{"tool without a state", []string{"open", "enter"}, "open", []string{"enter"}},
		{"tool of another state", []string{"enter"}, "shut", []string{"open"}},
		{"tool of another state that leads on", []string{"finish"}, "shut", []string{"open"}},
		{"two tools with states", []string{"open", "finish"}, "done", nil},
		{"unknown tool", []string{"no_such"}, "shut", []string{"open"}},
		{"same tool twice", []string{"open", "open"}, "open", []string{"enter"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := f.Subject(ann)
			subject := first
			for _, name := range c.calls {
				subject = subject.AfterCall(name)
			}
			got := slices.DeleteFunc(slices.Clone(subject.ToolNames()), func(s string) bool { return s != "open" && s != "enter" })
			if subject.State != c.state || !slices.Equal(got, c.sees) || first.State != "shut" {
				t.Errorf("in state %q: sees %v, want state %q and %v", subject.State, got, c.state, c.sees)
			}
			for _, name := range []string{"open", "enter"} {
				if may := subject.AuthorizeTool(name).Allowed(); may != slices.Contains(c.sees, name) {
					t.Errorf("%s: allowed %t", name, may)
				}
			}
		})
	}
}

// ListTools lists the tools that AuthorizeTool allows, and nothing for a zero Subject.
func TestSubject_ToolsMatchAuthorize(t *testing.T) {
	f := newFixture(t, stateTools()...)
	for _, state := range []string{"shut", "open", "elsewhere"} {
		f.directory.setState(state)
		subject := f.Subject(ann)
		tools := subject.ListTools()
		if !slices.Equal(tools.Names, subject.ToolNames()) || string(tools.JSON) != string(subject.ToolJSON()) || tools.Gating != toolgroups.NotGated {
			t.Errorf("in state %s: Tools has %v, ToolNames %v", state, tools.Names, subject.ToolNames())
		}
		for _, name := range []string{"open", "enter", "no_such"} {
			if subject.AuthorizeTool(name).Allowed() != slices.Contains(tools.Names, name) {
				t.Errorf("in state %s: %s is listed or allowed, not both", state, name)
			}
		}
	}
	for name, subject := range map[string]*gate.Subject{"zero Subject": {}, "zero View": f.PreviewSubject(new(toolgroups.View), "")} {
		if tools := subject.ListTools(); len(tools.Names) > 0 || subject.AfterCall("open").AuthorizeTool("open").Allowed() {
			t.Errorf("%s: got %v", name, tools.Names)
		}
	}
}

// Listable lists the tools that are visible in at least one state, in order, and
// returns the same list each time.
func TestSubject_Listable(t *testing.T) {
	nowhere := definition("nowhere", tool.Mutating)
	nowhere.States = []string{}
	f := newFixture(t, append(stateTools(), &fakeTool{definition: nowhere})...)
	for _, state := range []string{"shut", "open", "elsewhere"} {
		f.directory.setState(state)
		subject := f.Subject(ann)
		var names []string
		for _, d := range subject.ListableTools() {
			names = append(names, d.Name)
		}
		if slices.Contains(names, "nowhere") || !slices.Contains(names, "open") || !slices.Contains(names, "enter") {
			t.Errorf("in state %s: got %v", state, names)
		}
		if &subject.ListableTools()[0] != &f.Subject(ann).ListableTools()[0] {
			t.Error("the list is built again")
		}
	}
	for name, subject := range map[string]*gate.Subject{"zero Subject": {}, "zero View": f.PreviewSubject(new(toolgroups.View), "")} {
		if list := subject.ListableTools(); len(list) > 0 {
			t.Errorf("%s: got %v", name, list)
		}
	}
}

// ListPrompts lists the prompts of the groups that the principal may use.
func TestSubject_ListPrompts(t *testing.T) {
	f := newFixture(t)
	for _, id := range []toolgroups.GroupID{"one", "two", "other"} {
		if _, err := grouptest.RegisterGroup(f.groups, "test", toolgroups.Group{ID: id, Prompts: []toolgroups.Prompt{fakePrompt("of " + string(id))}}); err != nil {
			t.Fatal(err)
		}
	}
	f.grant("two", "one")
	for within, want := range map[toolgroups.GroupID][]string{"": {"of one", "of two"}, "two": {"of two"}, "other": nil, "nowhere": nil} {
		var got []string
		for _, p := range f.Subject(ann).ListPrompts(within) {
			got = append(got, p.Name())
		}
		if !slices.Equal(got, want) {
			t.Errorf("within %q: got %q, want %q", within, got, want)
		}
	}
	if list := new(gate.Subject).ListPrompts(""); len(list) > 0 {
		t.Errorf("zero Subject: got %d prompts", len(list))
	}
}

// fakePrompt is a prompt with this name.
type fakePrompt string

func (p fakePrompt) Name() string                           { return string(p) }
func (p fakePrompt) Description() string                    { return "" }
func (p fakePrompt) Arguments() []toolgroups.PromptArgument { return nil }
func (p fakePrompt) Fingerprint() string                    { return string(p) }
func (p fakePrompt) Messages(map[string]string) ([]toolgroups.PromptMessage, error) {
	return nil, nil
}
