package rolecall_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

func ensure(t *testing.T, org *rolecall.Organization, s rolecall.RoleSpec) rolecall.Role {
	t.Helper()
	role, err := org.EnsureRole(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return role
}

// A program creates its roles at each start. A role that it specifies otherwise than before
// has nothing left of the former specification.
func TestEnsureRole_AtEachStart(t *testing.T) {
	o := rolecall.Options{Data: t.TempDir()}
	org := open(t, o)
	full := rolecall.RoleSpec{Name: "clerk", Description: "writes", Prompt: "Write.", ToolGroups: []rolecall.GroupID{"console"},
		Grant: []rolecall.GroupID{"console"}, Model: "big", Result: json.RawMessage(`{"type":"string"}`)}
	first := ensure(t, org, full)
	org = restart(t, org, o)
	if again := ensure(t, org, full); again != first {
		t.Errorf("got %+v, then %+v", first, again)
	}
	if again, err := org.CreateRole(t.Context(), full); again != first || err != nil {
		t.Errorf("CreateRole with the same specification: %+v, %v", again, err)
	}
	_, err := org.CreateRole(t.Context(), rolecall.RoleSpec{Name: "clerk"})
	wantCode(t, "CreateRole with another specification", err, errcode.RoleExists)
	if next := ensure(t, org, rolecall.RoleSpec{Name: "clerk", ToolGroups: []rolecall.GroupID{"artifact"}}); next != first {
		t.Errorf("the changed role is %+v, want %+v", next, first)
	}
	tools, err := org.Tools(rolecall.Subject{Role: "clerk"})
	if err != nil || !slices.Contains(tools, "put_artifact") || slices.Contains(tools, "console_print") {
		t.Errorf("the tools are %v, %v", tools, err)
	}
	if got := lastRole(t, org); got["description"] != nil || got["llmServiceId"] != nil || got["result"] != nil || got["rolePrompt"] == "Write." {
		t.Errorf("the role is %v", got)
	}
}

// A role that a task created is there for later tasks of the same principal, also after a
// restart. CreateRole returns it if the specification is the same.
func TestTask_CreateRoleAgain(t *testing.T) {
	o := rolecall.Options{Data: t.TempDir()}
	org := open(t, o)
	spec := rolecall.RoleSpec{Name: "clerk", Prompt: "Write.", ToolGroups: []rolecall.GroupID{"console"}}
	first, err := begin(t, org, me).CreateRole(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	org = restart(t, org, o)
	task := begin(t, org, me)
	if again, err := task.CreateRole(t.Context(), spec); again != first || err != nil {
		t.Errorf("got %+v, %v; want %+v", again, err, first)
	}
	spec.ToolGroups = nil
	_, err = task.CreateRole(t.Context(), spec)
	wantCode(t, "CreateRole with another specification", err, errcode.RoleExists)
}

// The fields that a specification leaves out are always listed in the same order.
func TestRoleSpec_UnsetFieldsInOrder(t *testing.T) {
	want := []org.RoleField{org.DescriptionField, org.PromptField, org.ModelField, org.ResultField}
	for range 20 { // the order of a map would differ once
		if got := rolecall.UnsetFields(rolecall.RoleSpec{Name: "clerk"}); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	if got := rolecall.UnsetFields(rolecall.RoleSpec{Prompt: "Work.", Result: json.RawMessage(`{}`)}); !slices.Equal(got, []org.RoleField{org.DescriptionField, org.ModelField}) {
		t.Errorf("got %v", got)
	}
}

// lastRole returns the record of the role that was changed last.
func lastRole(t *testing.T, org *rolecall.Organization) map[string]any {
	t.Helper()
	if err := org.Register(t.Context(), rolecall.ToolGroup{ID: "mark"}); err != nil {
		t.Fatal(err)
	}
	var role map[string]any
	for e, err := range org.Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(journal.GroupRegistered); ok && b.Group == "mark" {
			break
		}
		if b, ok := e.Body.(journal.RoleChanged); ok {
			role = nil
			if err := json.Unmarshal(b.Record, &role); err != nil {
				t.Fatal(err)
			}
		}
	}
	return role
}

// EnsureRole changes no role that an agent has created.
func TestEnsureRole_LeavesRolesOfAgents(t *testing.T) {
	org := open(t, rolecall.Options{})
	task := begin(t, org, me)
	hire(t, task)
	_, err := org.EnsureRole(t.Context(), rolecall.RoleSpec{Name: "clerk", ToolGroups: []rolecall.GroupID{"command"}})
	wantCode(t, "a role of an agent", err, errcode.RoleExists)
	if tools, err := org.Tools(rolecall.Subject{Role: "clerk"}); err != nil || len(tools) != 0 {
		t.Errorf("the role has %v, %v", tools, err)
	}
}
