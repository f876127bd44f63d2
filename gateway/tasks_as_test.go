package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// newTasksFixture returns a fixture with the roles ops and clerk. Ops bounds the tasks of
// callers in clerk, which has no tool.
func newTasksFixture(t *testing.T) (f *gatewaytest.Fixture, ops, clerk org.Role) {
	t.Helper()
	f = newFixture(t, echoTask)
	ops = f.AddRole(t, "ops", "console")
	clerk = gatewaytest.GetJSON[wire.Role](t, f, "POST /api/v1/roles", `{"name":"clerk","toolGroups":[],"tasks":{"as":"ops"}}`).Role
	return f, ops, clerk
}

// The operator writes tasks.as by a name and reads the id, the name and the status of the
// role. A change without the field keeps it, null removes it.
func TestRole_TasksAs(t *testing.T) {
	f, ops, clerk := newTasksFixture(t)
	if clerk.Tasks.As != ops.ID {
		t.Errorf("created with tasks %+v, want as %s", clerk.Tasks, ops.ID)
	}
	for _, step := range []struct {
		request, body string
		want          *wire.BoundingRole
	}{
		{"PATCH /api/v1/roles/clerk", `{"rolePrompt":"p"}`, &wire.BoundingRole{Name: "ops", Status: org.Active}},
		{"PATCH /api/v1/roles/ops", `{"name":"opera"}`, nil},
		{"PATCH /api/v1/roles/clerk", `{"rolePrompt":"q"}`, &wire.BoundingRole{Name: "opera", Status: org.Active}},
		{"PATCH /api/v1/roles/clerk?dryRun=1", `{"tasks":{"as":"clerk"}}`, &wire.BoundingRole{Name: "clerk", Status: org.Active}},
		{"DELETE /api/v1/roles/opera", "", nil},
		{"PATCH /api/v1/roles/clerk", `{"rolePrompt":"p"}`, &wire.BoundingRole{Name: "opera", Status: org.Deleted}},
		{"PATCH /api/v1/roles/clerk", `{"tasks":null}`, nil},
	} {
		change := gatewaytest.GetJSON[wire.RoleChange](t, f, step.request, step.body)
		if diff := cmp.Diff(step.want, change.Role.TasksAs); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", step.request, step.body, diff)
		}
	}
	if got := gatewaytest.GetJSON[wire.Role](t, f, "/api/v1/roles/clerk", ""); got.Tasks != (org.RoleTasks{}) {
		t.Errorf("after null: %+v", got.Tasks)
	}
}

func TestRole_TasksAsRejected(t *testing.T) {
	f, _, clerk := newTasksFixture(t)
	made, err := f.Runtime.CreateRole(t.Context(), tool.Call{ID: "made", By: identity.ByCaller("ann", clerk.ID)}, org.RoleSpec{Name: "made"})
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		`{"tasks":{"as":"opps"}}`:        `did you mean \"ops\"`,
		`{"tasks":{"as":"root"}}`:        `there is no role \"root\"`,
		`{"tasks":{"as":""}}`:            "null removes it",
		`{"tasks":{}}`:                   "null removes it",
		`{"tasks":{"as":["ops"]}}`:       "tasks",
		`{"tasks":{"as":"ops","x":"y"}}`: "x",
		`{"tasks":"ops"}`:                "tasks",
	} {
		if status, text := f.SendText(t, "PATCH /api/v1/roles/clerk", body); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %s", body, status, text, want)
		}
	}
	if status, text := f.SendText(t, "PATCH /api/v1/roles/"+string(made.ID), `{"tasks":{"as":"ops"}}`); status != http.StatusBadRequest || !strings.Contains(text, string(errcode.InvalidRole)) {
		t.Errorf("the role of an agent: %d %s", status, text)
	}
}

// A caller whose role has tasks.as starts tasks without a tool of org_management, while the
// role that it names exists. The operator reads that role with the task and in its first
// event; the caller does not.
func TestStartTask_TasksAs(t *testing.T) {
	f, ops, clerk := newTasksFixture(t)
	ann := f.WithCaller(t, clerk.ID).LocalClient()
	task, err := ann.StartTask(t.Context(), client.TaskRequest{Text: "go", Role: "ops"}, "")
	if err != nil {
		t.Fatal(err)
	}
	waitEnd(t, ann, string(task.ID))
	hers, err := ann.FindTask(t.Context(), string(task.ID))
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range append(gatewaytest.CollectAll(t, ann.ListTasks(t.Context(), "")), task, hers) {
		if got.As != "" || got.AsID != "" {
			t.Errorf("the caller reads as %q %q", got.As, got.AsID)
		}
	}
	his, err := f.LocalClient().FindTask(t.Context(), string(task.ID))
	if err != nil || his.As != "ops" || his.AsID != ops.ID {
		t.Errorf("the operator reads as %q %q, %v; want ops", his.As, his.AsID, err)
	}
	for name, c := range map[string]*client.Client{"ops": f.LocalClient(), "": ann} {
		events := gatewaytest.CollectAll(t, c.TaskEvents(t.Context(), string(task.ID), 0, false))
		started, ok := events[0].Body.(journal.TaskStarted)
		if !ok || started.As != name || (started.AsID != "") != (name != "") {
			t.Errorf("the first event is %+v, want as %q", events[0].Body, name)
		}
	}
	if _, err := f.LocalClient().DeleteRole(t.Context(), "ops", false); err != nil {
		t.Fatal(err)
	}
	if _, err := ann.StartTask(t.Context(), client.TaskRequest{Text: "go"}, ""); errcode.CodeOf(err) != errcode.InsufficientPermissions || strings.Contains(err.Error(), "ops") {
		t.Errorf("after the role was deleted: %v", err)
	}
}

// Who names the roles whose tasks may use a tool, and the role that bounds them.
func TestWho_NamesTasks(t *testing.T) {
	f, _, clerk := newTasksFixture(t)
	who := func(f *gatewaytest.Fixture) wire.Holders {
		return gatewaytest.GetJSON[wire.Holders](t, f, "POST /api/v1/can", `{"who":"console_print"}`)
	}
	want := []wire.TasksHolder{{RoleHolder: wire.RoleHolder{ID: clerk.ID, Name: "clerk", Group: "console"}, As: "ops"}}
	if diff := cmp.Diff(want, who(f).Tasks); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := who(f.WithCaller(t, clerk.ID)); len(got.Tasks)+len(got.Roles) != 0 {
		t.Errorf("a caller reads %+v", got)
	}
	gatewaytest.GetJSON[wire.RoleChange](t, f, "PATCH /api/v1/roles/ops", `{"toolGroups":[]}`)
	if got := who(f).Tasks; len(got) != 0 {
		t.Errorf("after ops has lost the tool: %+v", got)
	}
}
