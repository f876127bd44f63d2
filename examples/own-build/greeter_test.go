package main

import (
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/rolecalltest"
)

func newTestGreeter(t *testing.T) modules.Module {
	t.Helper()
	g, err := newGreeter(modules.Config{Name: "greeter"})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// rolecall handles the groups of the module as it handles all others.
func TestGreeter_Properties(t *testing.T) {
	rolecalltest.CheckProperties(t, newTestGreeter(t))
}

// A role with the group greets. Others may not.
func TestGreeter_GreetsForItsRole(t *testing.T) {
	gate := rolecalltest.NewGate(t, newTestGreeter(t))
	text, err := gate.Caller("greeter").Invoke(t.Context(), "greet", guest{Name: "Ada"})
	if err != nil || string(text) != `"Hello, Ada"` {
		t.Errorf("greeted with %s, %v", text, err)
	}
	if _, err := gate.Caller("console").Invoke(t.Context(), "greet", guest{Name: "Ada"}); errcode.CodeOf(err) != errcode.ToolNotAvailable {
		t.Errorf("another role: %v", err)
	}
}

// An agent calls the tool, and ends with a text.
func TestGreeter_WorksForAgents(t *testing.T) {
	script := rolecalltest.Script{"host": {rolecalltest.Call("greet", guest{Name: "Ada"}), rolecalltest.End("greeted")}}
	org, err := rolecall.Open(t.Context(), rolecall.Options{Model: script, Modules: []rolecall.Module{newTestGreeter(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer org.Close()
	if _, err := org.CreateRole(t.Context(), rolecall.RoleSpec{Name: "host", ToolGroups: []rolecall.GroupID{"greeter"}}); err != nil {
		t.Fatal(err)
	}
	answer, err := rolecall.Run[string](t.Context(), org, rolecall.TaskSpec{As: rolecall.Operator("test"), Role: "host"})
	if err != nil || answer != "greeted" {
		t.Errorf("answered %q, %v", answer, err)
	}
}
