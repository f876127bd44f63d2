package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// A call in a suspended role is denied on every route, and the reason says so. It is the
// same whether the tool is the role's, another's or unknown.
func TestSuspendRole_DeniesEveryCall(t *testing.T) {
	f := newCallFixture(t)
	reader, _ := f.Runtime.Org().RoleByName("reader")
	caller := f.WithCaller(t, reader.ID)
	answers := func() (list []string) {
		for _, tool := range []string{"double", "erase", "no_such"} {
			for _, at := range []struct {
				sender     *gatewaytest.Fixture
				path, body string
			}{
				{caller, "POST /api/tool/TOOL/invoke", `{"n":2}`},
				{caller, "POST /api/v1/can", `{"tool":"TOOL"}`},
				{f, "POST /api/v1/tools/TOOL/call", `{"role":"reader","args":{"n":2}}`},
			} {
				_, body := at.sender.SendText(t, strings.Replace(at.path, "TOOL", tool, 1), strings.Replace(at.body, "TOOL", tool, 1))
				list = append(list, strings.ReplaceAll(body, tool, "TOOL"))
			}
		}
		return list
	}
	before := answers()
	changed := gatewaytest.GetJSON[wire.PauseChange](t, f, "POST /api/v1/pause", `{"role":"reader"}`).Role
	if !changed.Role.Suspended() || changed.Role.Revision != 1 || changed.Diff.Counts.Roles != 1 {
		t.Errorf("got %+v", changed)
	}
	for i, got := range answers() {
		if !strings.Contains(got, "tool TOOL is not available: role reader is paused") || !strings.Contains(got, "tool_not_available") || i%3 != 2 && got != answers()[i%3] {
			t.Errorf("answer %d: %s", i, got)
		}
	}
	for _, path := range []string{"/api/v1/tools", "/api/toolset"} {
		if _, body := caller.SendText(t, path, ""); strings.Contains(body, "double") {
			t.Errorf("%s shows %s", path, body)
		}
	}
	if got := gatewaytest.GetJSON[wire.Verdict](t, f, "POST /api/v1/can", `{"role":"reader","tool":"double","why":true}`); got.Rule != "role reader is paused" || got.Limits[0].Kind != org.LimitUse || !got.Limits[0].Decides {
		t.Errorf("can says %+v", got)
	}
	gatewaytest.GetJSON[wire.PauseChange](t, f, "POST /api/v1/resume", `{"role":"reader"}`)
	for i, got := range answers() {
		if i%3 == 0 && got != before[i] {
			t.Errorf("answer %d after it was resumed: %s, before it was paused: %s", i, got, before[i])
		}
	}
	var changes []string
	for e, err := range f.Runtime.JournalStore().Read(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(journal.RoleChanged); ok && b.RoleID == reader.ID && b.Change != "created" {
			changes = append(changes, b.Change+" by "+b.By)
		}
	}
	if got := strings.Join(changes, ", "); got != "paused by operator, resumed by operator" {
		t.Errorf("on record: %s", got)
	}
}

// Only the operator suspends, and never root. Nothing starts in a suspended role, and a task
// shows which of its roles are suspended.
func TestSuspendRole_Tasks(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	desk := f.AddRole(t, "desk", "artifact")
	caller := f.WithCaller(t, desk.ID)
	for _, path := range []string{"POST /api/v1/pause", "POST /api/v1/resume"} {
		if status, body := caller.SendText(t, path, `{"role":"desk"}`); status != http.StatusForbidden {
			t.Errorf("%s by a caller: %d %s", path, status, body)
		}
		if status, body := f.SendText(t, path, `{"role":"root"}`); status != http.StatusConflict || !strings.Contains(body, "root cannot be paused") {
			t.Errorf("of root: %d %s", status, body)
		}
		if status, body := f.SendText(t, path, `{"role":"dusk"}`); status != http.StatusNotFound || !strings.Contains(body, `did you mean \"desk\"`) {
			t.Errorf("of an unknown role: %d %s", status, body)
		}
	}
	id, err := f.Runtime.StartTask(t.Context(), org.TaskSpec{Text: "go", Caller: identity.ByCaller("ann", desk.ID), Open: true})
	if err != nil {
		t.Fatal(err)
	}
	gatewaytest.GetJSON[wire.PauseChange](t, f, "POST /api/v1/pause", `{"role":"desk"}`)
	if got := gatewaytest.GetJSON[wire.Task](t, f, "/api/v1/tasks/"+string(id), ""); len(got.Suspended) != 1 || got.Suspended[0] != "desk" {
		t.Errorf("the task shows %v", got.Suspended)
	}
	for _, sender := range []*gatewaytest.Fixture{f, caller} {
		status, body := sender.SendText(t, "POST /api/v1/tasks", `{"text":"go","role":"desk"}`)
		if status != http.StatusForbidden || !strings.Contains(body, string(errcode.InsufficientPermissions)) || !strings.Contains(body, "paused") {
			t.Errorf("a task with the role: %d %s", status, body)
		}
	}
	use := toolgroups.SetOf("workspace")
	if change, err := f.LocalClient().UpdateRole(t.Context(), "desk", wire.RoleRequest{Use: &use}, false); err != nil || !change.Role.Suspended() || change.Diff.Counts != (org.DiffCounts{}) {
		t.Errorf("updated: %+v, %v", change, err)
	}
}
