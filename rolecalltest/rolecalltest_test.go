package rolecalltest_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/textstats"
	"github.com/rolecall/rolecall/rolecalltest"
)

// desk is a module with a workflow.
type desk struct{ groups []rolecall.ToolGroup }

func (d desk) Name() string                     { return "desk" }
func (d desk) ToolGroups() []rolecall.ToolGroup { return d.groups }

type note struct {
	Text string `json:"text" jsonschema:"what to write"`
}

// newDesk returns a module whose tools count their calls.
func newDesk(t *testing.T, calls *atomic.Int32) desk {
	t.Helper()
	make := func(name string, o *rolecall.ToolOptions) rolecall.Tool {
		made, err := rolecall.NewTool(name, "Work with notes.", func(_ context.Context, n note) (string, error) {
			calls.Add(1)
			if n.Text == "" {
				return "", errcode.New(errcode.InvalidURL, "there is no text")
			}
			return name + " " + n.Text, nil
		}, o)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	return desk{[]rolecall.ToolGroup{
		{ID: "desk", Description: "Notes", Tools: []rolecall.Tool{
			make("read_note", &rolecall.ToolOptions{Effect: rolecall.ReadOnly}),
			make("open_note", &rolecall.ToolOptions{State: "open"}),
			make("edit_note", &rolecall.ToolOptions{States: []string{"open"}}),
		}},
	}}
}

func TestCheckProperties_Holds(t *testing.T) {
	var calls atomic.Int32
	stats, err := textstats.New(modules.Config{Name: "stats"})
	if err != nil {
		t.Fatal(err)
	}
	rolecalltest.CheckProperties(t, newDesk(t, &calls), stats)
	if n := calls.Load(); n != 0 {
		t.Errorf("the functions of the module were called %d times", n)
	}
}

// A group may name tools of another group of its module, which is registered after it.
func TestCheckProperties_HoldsForReferences(t *testing.T) {
	var calls atomic.Int32
	m := newDesk(t, &calls)
	m.groups = append(m.groups,
		rolecall.ToolGroup{ID: "reading", Description: "Read notes", Refs: []string{"read_note"}},
		rolecall.ToolGroup{ID: "a", Refs: []string{"edit_note", "open_note"}})
	rolecalltest.CheckProperties(t, m)
}

func TestCheckProperties_HoldsForServerGroups(t *testing.T) {
	var calls atomic.Int32
	groups, err := modules.ServerGroups("desk", "Notes", newDesk(t, &calls).groups[0].Tools)
	if err != nil {
		t.Fatal(err)
	}
	rolecalltest.CheckProperties(t, desk{groups})
}

func TestGate_CallsAsRole(t *testing.T) {
	var calls atomic.Int32
	gate := rolecalltest.NewGate(t, newDesk(t, &calls))
	clerk, guest := gate.Caller("desk"), gate.Caller()
	if tools := clerk.Tools(); !slices.Equal(tools, []string{"open_note", "read_note"}) && !slices.Equal(tools, []string{"read_note", "open_note"}) {
		t.Errorf("the clerk sees %v", tools)
	}
	if tools := guest.Tools(); len(tools) != 0 {
		t.Errorf("the guest sees %v", tools)
	}
	invoke := func(c *rolecalltest.Caller, name string, args any, want string, code errcode.Code) {
		t.Helper()
		got, err := c.Invoke(t.Context(), name, args)
		if string(got) != want || errcode.CodeOf(err) != code {
			t.Errorf("%s returned %s, %v; want %s, code %q", name, got, err, want, code)
		}
	}
	invoke(guest, "read_note", note{"a"}, "", errcode.ToolNotAvailable)
	invoke(clerk, "edit_note", note{"a"}, "", errcode.ToolNotAvailable)
	invoke(clerk, "run_command", nil, "", errcode.ToolNotAvailable)
	invoke(clerk, "nothing", nil, "", errcode.UnknownTool)
	invoke(clerk, "read_note", nil, "", errcode.InvalidArguments)
	invoke(clerk, "read_note", make(chan int), "", errcode.InvalidArguments)
	if n := calls.Load(); n != 0 {
		t.Errorf("%d denied calls ran", n)
	}
	invoke(clerk, "read_note", note{}, "", errcode.InvalidURL)
	invoke(clerk, "read_note", note{"a"}, `"read_note a"`, "")
	invoke(clerk, "open_note", note{"a"}, `"open_note a"`, "")
	invoke(clerk, "edit_note", note{"a"}, `"edit_note a"`, "")
}

func TestScript_AnswersByRole(t *testing.T) {
	var calls atomic.Int32
	script := rolecalltest.Script{
		"clerk": {rolecalltest.Call("read_note", note{"a"}), rolecalltest.End("done")},
		"idle":  {},
	}
	org, err := rolecall.Open(t.Context(), rolecall.Options{Model: script, Modules: []rolecall.Module{newDesk(t, &calls)}})
	if err != nil {
		t.Fatal(err)
	}
	defer org.Close()
	for _, role := range []string{"clerk", "idle"} {
		if _, err := org.CreateRole(t.Context(), rolecall.RoleSpec{Name: role, ToolGroups: []rolecall.GroupID{"desk"}}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := rolecall.Run[string](t.Context(), org, rolecall.TaskSpec{As: rolecall.Operator("me"), Role: "clerk"})
	if got != "done" || err != nil || calls.Load() != 1 {
		t.Errorf("the clerk answered %q, %v after %d calls", got, err, calls.Load())
	}
	_, err = rolecall.Run[string](t.Context(), org, rolecall.TaskSpec{As: rolecall.Operator("me"), Role: "idle"})
	if errcode.CodeOf(err) != errcode.LLMCallFailed {
		t.Errorf("an agent without an answer: %v", err)
	}
}
