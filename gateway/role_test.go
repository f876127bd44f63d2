package gateway_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
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
	effect := org.AccessChange{Gains: f.ToolNames("console"), Loses: f.ToolNames("workspace")}
	want := org.PermissionDiff{
		Agents: []org.AgentDiff{}, // its task has ended
		Roles:  []org.RoleDiff{{ID: clerk.RoleID, Name: "clerk", AccessChange: effect}}, Callers: []org.CallerDiff{}, Tasks: []org.TasksDiff{}, Counts: org.DiffCounts{Roles: 1},
	}
	if diff := cmp.Diff(want, change.Diff); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
	if change, err = f.LocalClient().DeleteRole(t.Context(), string(change.Role.ID), false); err != nil {
		t.Fatal(err)
	}
	if len(change.Diff.Roles) != 1 || !slices.Equal(change.Diff.Roles[0].Loses, f.ToolNames("artifact", "console")) {
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
	if status, body := f.SendText(t, "POST /api/v1/roles", `{"name":"clerk","toolGroups":["phones","artefact"]}`); status != http.StatusNotFound || !strings.Contains(body, "did you mean \\\"artifact\\\"") {
		t.Errorf("unknown groups: %d %s", status, body)
	}
	gatewaytest.GetJSON[wire.Role](t, f, "POST /api/v1/roles", `{"name":"clerk","toolGroups":["phones","artifact"],"allowUnknown":true}`)
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

// The operator sees the roles of all callers, page by page. A name that several callers use
// is a conflict that lists the ids.
func TestRole_SameNameOfSeveralCallers(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	guest := f.AddRole(t, "guest", toolgroups.OrgManagement)
	want := []identity.RoleID{guest.ID}
	for _, user := range []identity.UserName{"ann", "bob", "eve"} {
		call := tool.Call{ID: identity.CallID(identity.NewID()), By: identity.ByCaller(user, guest.ID)}
		role, err := f.Runtime.CreateRole(t.Context(), call, org.RoleSpec{Name: "helper"})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, role.ID)
	}
	status, body := f.SendText(t, "/api/v1/roles/helper", "")
	if status != http.StatusConflict || slices.ContainsFunc(want[1:], func(id identity.RoleID) bool { return !strings.Contains(body, string(id)) }) {
		t.Errorf("the name is %d %s", status, body)
	}
	var got []identity.RoleID
	for next := ""; next != "" || got == nil; {
		page := gatewaytest.GetJSON[wire.Page[wire.Role]](t, f, "/api/v1/roles?limit=1&cursor="+next, "")
		for _, role := range page.Items {
			got = append(got, role.ID)
		}
		next = page.Next
	}
	slices.Sort(want[1:])
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("pages of one role, got before want:\n%s", diff)
	}
	verdict := gatewaytest.GetJSON[wire.Verdict](t, f, "POST /api/v1/can", `{"role":"helper","tool":"read_file"}`)
	if verdict.Allowed || verdict.Code != errcode.Conflict {
		t.Errorf("can by the name: %+v", verdict)
	}
	if role := f.AddRole(t, "helper"); gatewaytest.GetJSON[wire.Role](t, f, "/api/v1/roles/helper", "").ID != role.ID {
		t.Error("the name does not mean the declared role")
	}
}

// A field that is null gets its default. Other fields of a role are set as in a
// configuration.
func TestUpdateRole_SetsFieldsAndDefaults(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "phones", "ring")
	role := gatewaytest.GetJSON[wire.Role](t, f, "POST /api/v1/roles", `{"name":"clerk","toolGroups":["phones"],"grant":["phones"],"description":"Calls.","rolePrompt":"p","llmServiceId":"m","pattern":"plan","toolGated":true,"limits":{"rounds":7},"server":"far","allowUnknown":true,"result":{"schema":{"type": "integer"}}}`)
	if role.Result == nil || string(role.Result.Schema) != `{"type":"integer"}` {
		t.Errorf("created with the result %+v", role.Result)
	}
	if role.Description != "Calls." || role.Pattern != org.Plan || role.ToolGated != toolgroups.Gated || role.Limits.Rounds != 7 || role.Server != "far" {
		t.Errorf("created %+v", role)
	}
	change := gatewaytest.GetJSON[wire.RoleChange](t, f, "PATCH /api/v1/roles/clerk", `{"toolGroups":null,"pattern":"react","toolGated":false,"server":"","limits":{"rounds":9},"result":{"schema":{"type":"string"}}}`)
	if r := change.Role; string(r.Result.Schema) != `{"type":"string"}` || !r.Use.IsAll() || !r.Grant.Has("phones") || r.Grant.IsAll() || r.Pattern != org.React || r.ToolGated != toolgroups.NotGated || r.Server != "" || r.Limits.Rounds != 9 || r.Prompt != "p" || r.Description != "Calls." {
		t.Errorf("changed to %+v", r)
	}
	change, err := f.LocalClient().UpdateRole(t.Context(), "clerk", wire.RoleRequest{Defaults: []org.RoleField{org.GrantField, org.DescriptionField, org.PromptField, org.ModelField, org.LimitsField, org.PatternField, org.ResultField}}, false)
	if r := change.Role; err != nil || r.Result != nil || !r.Grant.IsAll() || r.Description != "" || r.Prompt != "" || r.Model != "" || r.Limits.Rounds != 0 || r.Pattern != "" {
		t.Errorf("%v, changed to %+v", err, r)
	}
	fresh, err := f.LocalClient().CreateRole(t.Context(), wire.RoleRequest{Name: "fresh", Defaults: []org.RoleField{org.UseField}}, false)
	if err != nil || !fresh.Use.IsAll() {
		t.Errorf("%v, created %+v", err, fresh)
	}
	for body, field := range map[string]string{
		`{"name":null}`: "name", `{"allowUnknown":null}`: "allowUnknown", `{"server":"far"}`: "far", `{"pattern":"walk"}`: "walk",
		`{"limits":{"rounds":-1}}`: "rounds", `{"toolGated":true,"toolGroups":[]}`: "toolGated", `{"revision":1}`: "revision",
		`{"result":{"schema":{"type":"strong"}}}`: "result: type", `{"result":{}}`: "it is missing",
		`{"description":"a\nb"}`: "line break", `{"description":"` + strings.Repeat("x", 501) + `"}`: "501 characters",
	} {
		if status, answer := f.SendText(t, "PATCH /api/v1/roles/clerk", body); status != http.StatusBadRequest || !strings.Contains(answer, field) {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
}

// A limit that is null is removed. The other limits stay.
func TestUpdateRole_RemovesSingleLimits(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	gatewaytest.GetJSON[wire.Role](t, f, "POST /api/v1/roles", `{"name":"clerk","limits":{"rounds":7,"depth":3,"hires":4,"budget":{"tokens":9000}}}`)
	change := gatewaytest.GetJSON[wire.RoleChange](t, f, "PATCH /api/v1/roles/clerk", `{"limits":{"rounds":null,"depth":2}}`)
	want := org.AgentLimits{Budget: org.ModelAllowance{Tokens: 9000}, LineLimits: org.LineLimits{Depth: 2, Hires: 4}}
	if got := change.Role.Limits; got != want {
		t.Errorf("got the limits %+v, want %+v", got, want)
	}
	change, err := f.LocalClient().UpdateRole(t.Context(), "clerk", wire.RoleRequest{Limits: org.AgentLimits{Rounds: 5}, Defaults: []org.RoleField{org.DepthField, org.BudgetField}}, false)
	want = org.AgentLimits{Rounds: 5, LineLimits: org.LineLimits{Hires: 4}}
	if got := change.Role.Limits; err != nil || got != want {
		t.Errorf("%v, got the limits %+v, want %+v", err, got, want)
	}
}

// Two updates at once without If-Match both succeed, and neither mixes with the other.
func TestUpdateRole_Concurrent(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddRole(t, "clerk", "artifact")
	statuses := make(chan int)
	for _, use := range []string{"console", "workspace"} {
		go func() {
			statuses <- f.SendRequest(t, "PATCH /api/v1/roles/clerk", `{"rolePrompt":"`+use+`","toolGroups":["`+use+`"]}`, nil).Code
		}()
	}
	if one, two := <-statuses, <-statuses; one != http.StatusOK || two != http.StatusOK {
		t.Errorf("statuses %d and %d, want 200", one, two)
	}
	role := gatewaytest.GetJSON[wire.Role](t, f, "/api/v1/roles/clerk", "")
	if role.Revision != 3 || !role.Use.Has(toolgroups.GroupID(role.Prompt)) {
		t.Errorf("got %+v, want all of the later change", role)
	}
}

// Of two updates of one revision, one is rejected. The ETag of a role is its
// revision.
func TestUpdateRole_IfMatch(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddRole(t, "clerk", "artifact")
	patch := func(tag, body string) (int, string) {
		t.Helper()
		answer := f.SendRequest(t, "PATCH /api/v1/roles/clerk", body, http.Header{"If-Match": {tag}})
		return answer.Code, answer.Header().Get("ETag")
	}
	if tag := f.SendRequest(t, "GET /api/v1/roles/clerk", "", nil).Header().Get("ETag"); tag != `"1"` {
		t.Errorf("the ETag is %s", tag)
	}
	statuses := make(chan int)
	for _, use := range []string{"console", "workspace"} {
		go func() {
			answer := f.SendRequest(t, "PATCH /api/v1/roles/clerk", `{"rolePrompt":"`+use+`","toolGroups":["`+use+`"]}`, http.Header{"If-Match": {`"1"`}})
			statuses <- answer.Code
		}()
	}
	if one, two := <-statuses, <-statuses; one+two != http.StatusOK+http.StatusPreconditionFailed {
		t.Errorf("statuses %d and %d, want 200 and 412", one, two)
	}
	role := gatewaytest.GetJSON[wire.Role](t, f, "/api/v1/roles/clerk", "")
	if role.Revision != 2 || !role.Use.Has(toolgroups.GroupID(role.Prompt)) {
		t.Errorf("got %+v, want one of the two changes", role)
	}
	for tag, want := range map[string]int{`"1"`: 412, `2`: 412, `W/"2"`: 412, `"x"`: 412, `"0"`: 412, `"1", "2"`: 400} {
		if status, _ := patch(tag, `{"rolePrompt":"other"}`); status != want {
			t.Errorf("If-Match %s: %d, want %d", tag, status, want)
		}
	}
	if status, tag := patch("*", `{"rolePrompt":"other"}`); status != http.StatusOK || tag != `"3"` {
		t.Errorf("any revision: %d, %s", status, tag)
	}
	_, err := f.LocalClient().UpdateRole(t.Context(), "clerk", wire.RoleRequest{Prompt: "late", Revision: 2}, false)
	if errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("an update of revision 2: %v", err)
	}
	if answer := f.SendRequest(t, "DELETE /api/v1/roles/clerk", "", http.Header{"If-Match": {`"1"`}}); answer.Code != http.StatusBadRequest {
		t.Errorf("a deletion with If-Match: %d", answer.Code)
	}
}

// A preview of a change of a role of the configuration is for one revision, as the change of another role.
func TestUpdateRole_PreviewOfOtherRevision(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	none := toolgroups.SetOf()
	if err := f.Runtime.ApplyConfig(runtime.OrgConfig{Roles: []org.RoleSpec{{Name: "clerk", Use: &none, Grant: &none}}}); err != nil {
		t.Fatal(err)
	}
	for tag, want := range map[string]int{`"1"`: http.StatusOK, `"2"`: http.StatusPreconditionFailed} {
		answer := f.SendRequest(t, "PATCH /api/v1/roles/clerk?dryRun=1", `{"rolePrompt":"other"}`, http.Header{"If-Match": {tag}})
		if answer.Code != want {
			t.Errorf("If-Match %s: %d, want %d: %s", tag, answer.Code, want, answer.Body)
		}
	}
}

// A dry run says what the change makes reachable through agents that are spawned. A change that is
// made does not.
func TestUpdateRole_ReachOfDryRun(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddRole(t, "clerk", "workspace")
	lead := f.AddRole(t, "lead", "org_management")
	grant := toolgroups.SetOf("workspace")
	for _, dry := range []bool{true, false} {
		change, err := f.LocalClient().UpdateRole(t.Context(), "lead", wire.RoleRequest{Grant: &grant}, dry)
		if err != nil {
			t.Fatal(err)
		}
		if !dry {
			if change.Reach != nil {
				t.Errorf("a change that is made: %+v", change.Reach)
			}
			break
		}
		if len(change.Reach) != 1 || change.Reach[0].ID != lead.ID || !slices.Contains(change.Reach[0].Roles.Gains, "clerk") || !slices.Contains(change.Reach[0].Tools.Gains, "write_file") {
			t.Errorf("reach %+v", change.Reach)
		}
	}
	for _, dry := range []bool{true, false} {
		role, err := f.LocalClient().CreateRole(t.Context(), wire.RoleRequest{Name: "typist", Use: &grant}, dry)
		if reached := len(role.Reach) == 1 && role.Reach[0].ID == lead.ID && slices.Equal(role.Reach[0].Roles.Gains, []string{"typist"}); err != nil || reached != dry {
			t.Errorf("a new role, dry run %t: %+v, %v", dry, role.Reach, err)
		}
	}
	change, err := f.LocalClient().DeleteRole(t.Context(), "clerk", true)
	if err != nil || len(change.Reach) != 1 || !slices.Contains(change.Reach[0].Roles.Loses, "clerk") {
		t.Errorf("a deletion: %+v, %v", change.Reach, err)
	}
}
