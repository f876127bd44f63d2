package gateway_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestCreateRole_DefaultsToAllGroups(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	for body, want := range map[string]string{
		`{"name":"a"}`:                          "*",
		`{"name":"b","toolGroups":[]}`:          "-",
		`{"name":"c","toolGroups":["console"]}`: "console",
	} {
		role := gatewaytest.GetJSON[wire.Role](t, f, "POST /api/v1/roles", body)
		if got := role.Use.String(); got != want || role.ID == "" || role.CreatedBy != org.CreatorOperator {
			t.Errorf("%s: got %s %+v, want %s", body, got, role, want)
		}
	}
	if status, _ := f.SendText(t, "POST /api/v1/roles", `{"name":"d"}`); status != http.StatusCreated {
		t.Errorf("status %d, want 201", status)
	}
}

func TestRoles_DryRunChangesNothing(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddRole(t, "clerk", "artifact")
	none := toolgroups.SetOf()
	plan, err := f.LocalClient().CreateRole(t.Context(), wire.RoleRequest{Name: "new"}, true)
	if err != nil || plan.Name != "new" || plan.ID != "" {
		t.Errorf("planned %+v, %v", plan, err)
	}
	change, err := f.LocalClient().UpdateRole(t.Context(), "clerk", wire.RoleRequest{Use: &none}, true)
	if err != nil || change.Role.Use.Has("artifact") || change.Role.Revision != 2 {
		t.Errorf("update would be %+v, %v", change, err)
	}
	change, err = f.LocalClient().DeleteRole(t.Context(), "clerk", true)
	if err != nil || change.Role.Status != org.Deleted {
		t.Errorf("delete would be %+v, %v", change, err)
	}
	roles := gatewaytest.CollectAll(t, f.LocalClient().ListRoles(t.Context()))
	if len(roles) != 1 || roles[0].Revision != 1 || !roles[0].Use.Has("artifact") {
		t.Errorf("after the dry runs: %+v", roles)
	}
}

func TestUpdateRole_ReturnsDiff(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.RunTask(t, "go")
	clerk, err := f.LocalClient().FindAgent(t.Context(), "clerk")
	if err != nil {
		t.Fatal(err)
	}
	use := toolgroups.SetOf("artifact", "console")
	change, err := f.LocalClient().UpdateRole(t.Context(), "clerk", wire.RoleRequest{Use: &use}, false)
	if err != nil {
		t.Fatal(err)
	}
	want := org.PermissionDiff{{
		Agent: clerk.ID, Role: "clerk", Gains: f.ToolNames("console"),
		Loses: f.ToolNames("workspace"),
	}}
	if diff := cmp.Diff(want, change.Diff); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
	if change, err = f.LocalClient().DeleteRole(t.Context(), string(change.Role.ID), false); err != nil {
		t.Fatal(err)
	}
	if len(change.Diff) != 1 || !slices.Equal(change.Diff[0].Loses, f.ToolNames("artifact", "console")) {
		t.Errorf("deleting it means %+v, want the loss of its tools", change.Diff)
	}
	if _, err := f.LocalClient().FindRole(t.Context(), "clerk"); errcode.CodeOf(err) != errcode.RoleNotFound {
		t.Errorf("the deleted role is %v, want role_not_found", err)
	}
	if clerk, err = f.LocalClient().FindAgent(t.Context(), string(clerk.ID)); err != nil || len(clerk.Tools) != 0 || clerk.Role != "clerk" {
		t.Errorf("its agent: %+v, %v", clerk, err)
	}
}

func TestRole_DanglingGroups(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddRole(t, "clerk", "phones", "artifact")
	want := []toolgroups.GroupID{"phones"}
	role := gatewaytest.GetJSON[wire.Role](t, f, "/api/v1/roles/clerk", "")
	if diff := cmp.Diff(want, role.Dangling); diff != "" {
		t.Errorf("before it is registered (-want +got):\n%s", diff)
	}
	f.AddTool(t, "phones", "ring")
	role = gatewaytest.GetJSON[wire.Role](t, f, "/api/v1/roles/clerk", "")
	if diff := cmp.Diff(want, role.Dangling); diff != "" {
		t.Errorf("the newcomer's group is not what was meant (-want +got):\n%s", diff)
	}
	use := toolgroups.SetOf("phones", "artifact")
	change, err := f.LocalClient().UpdateRole(t.Context(), "clerk", wire.RoleRequest{Use: &use}, false)
	if err != nil || change.Role.Dangling != nil {
		t.Errorf("after an update: %+v, %v", change.Role, err)
	}
}

func TestRole_FoundByUnusualNames(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	for _, name := range []string{"..", ".", "a/b", "a b", "ä?#%2F", "{id}"} {
		made := f.AddRole(t, name)
		if got, err := f.LocalClient().FindRole(t.Context(), name); err != nil || got.ID != made.ID {
			t.Errorf("%q: got %v, %v", name, got.ID, err)
		}
	}
}
