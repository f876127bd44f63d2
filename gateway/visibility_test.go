package gateway_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// newCallerFixture returns a fixture with two roles that share no tool, idle
// agents, a task, an artifact, and a group whose tools are divided between the
// roles.
func newCallerFixture(t *testing.T) (f *gatewaytest.Fixture, mine, theirs org.Role) {
	t.Helper()
	f = newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "desk/mine", "own_tool")
	f.AddTool(t, "desk/stated", "stated_tool", "ready")
	f.AddTool(t, "secret/theirs", "secret_tool")
	mine, theirs = f.AddRole(t, "mine", "desk/mine", "desk/stated", "workspace"), f.AddRole(t, "secret keepers", "secret/theirs", "command")
	f.RunTask(t, "secret task")
	return f, mine, theirs
}

func TestCaller_SeesToolsAndGroupsOfRole(t *testing.T) {
	f, mine, _ := newCallerFixture(t)
	c := f.WithCaller(t, mine.ID).LocalClient()
	var tools, groups []string
	for _, tool := range gatewaytest.CollectAll(t, c.ListTools(t.Context(), "")) {
		tools = append(tools, tool.Name)
	}
	for _, g := range gatewaytest.CollectAll(t, c.ListGroups(t.Context())) {
		groups = append(groups, fmt.Sprintf("%s %d", g.ID, g.Count))
	}
	if got, want := strings.Join(tools, " "), "get_workspace_info list_files own_tool read_file stated_tool write_file"; got != want {
		t.Errorf("tools %s, want %s", got, want)
	}
	if got, want := strings.Join(groups, ", "), "desk/mine 1, desk/stated 1, workspace 4"; got != want {
		t.Errorf("groups %s, want %s", got, want)
	}
	if tool, err := c.FindTool(t.Context(), "own_tool"); err != nil || tool.Group != "desk/mine" {
		t.Errorf("its own tool: %+v, %v", tool, err)
	}
	if n := len(gatewaytest.CollectAll(t, c.ListTools(t.Context(), "workspace"))); n != 4 {
		t.Errorf("workspace has %d tools, want 4", n)
	}
	if _, err := f.LocalClient().DeleteRole(t.Context(), string(mine.ID), false); err != nil {
		t.Fatal(err)
	}
	if n := len(gatewaytest.CollectAll(t, c.ListTools(t.Context(), ""))) + len(gatewaytest.CollectAll(t, c.ListGroups(t.Context()))); n != 0 {
		t.Errorf("in a deleted role it sees %d tools and groups", n)
	}
}

// A caller whose role has the read part of a group sees that part as its group, with the tools
// that it may call. The group itself does not exist for it.
func TestCaller_SeesReadPart(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	role := f.AddRole(t, "auditor", "workspace:read", "console:read")
	c := f.WithCaller(t, role.ID).LocalClient()
	groups := gatewaytest.CollectAll(t, c.ListGroups(t.Context()))
	if len(groups) != 1 || groups[0].ID != "workspace:read" || !slices.Equal(groups[0].Tools, []string{"read_file", "list_files", "get_workspace_info"}) {
		t.Errorf("groups %+v", groups)
	}
	for _, one := range gatewaytest.CollectAll(t, c.ListTools(t.Context(), "")) {
		v, err := c.CheckAccess(t.Context(), wire.Question{Tool: one.Name})
		if err != nil || !v.Allowed || v.Group != "workspace:read" || one.Group != "workspace:read" || one.Effect != tool.ReadOnly.String() {
			t.Errorf("%+v: %+v, %v", one, v, err)
		}
	}
	if v, err := c.CheckAccess(t.Context(), wire.Question{Tool: "write_file"}); err != nil || v.Allowed {
		t.Errorf("write_file: %+v, %v", v, err)
	}
	if _, err := c.FindGroup(t.Context(), "workspace"); errcode.CodeOf(err) != errcode.GroupNotFound {
		t.Errorf("the whole group: %v", err)
	}
	if info, err := f.LocalClient().FindGroup(t.Context(), "workspace:read"); err != nil || info.Count != 3 {
		t.Errorf("to the operator: %+v, %v", info, err)
	}
	who, err := f.LocalClient().ListHolders(t.Context(), wire.Question{Who: "read_file"})
	if err != nil || !slices.ContainsFunc(who.Roles, func(h wire.RoleHolder) bool { return h.ID == role.ID }) {
		t.Errorf("who may call read_file: %+v, %v", who, err)
	}
	if who, err = f.LocalClient().ListHolders(t.Context(), wire.Question{Who: "write_file"}); err != nil || slices.ContainsFunc(who.Roles, func(h wire.RoleHolder) bool { return h.ID == role.ID }) {
		t.Errorf("who may call write_file: %+v, %v", who, err)
	}
	if shown, err := f.LocalClient().FindRole(t.Context(), role.Name); err != nil || len(shown.Dangling) > 0 || shown.Use.String() != "workspace:read,console:read" {
		t.Errorf("the role is shown as %+v, %v", shown, err)
	}
}

func TestCaller_AsksOnlyAboutItself(t *testing.T) {
	f, mine, theirs := newCallerFixture(t)
	c := f.WithCaller(t, mine.ID).LocalClient()
	clerk := gatewaytest.CollectAll(t, f.LocalClient().ListAgents(t.Context(), "", ""))[1]
	only := func(ids ...toolgroups.GroupID) *toolgroups.GroupSet { set := toolgroups.SetOf(ids...); return &set }
	for _, test := range []struct {
		name string
		q    wire.Question
		want errcode.Code // "" means allowed
	}{
		{"its tool", wire.Question{Role: "mine", Tool: "own_tool"}, ""},
		{"its tool without naming its role", wire.Question{Tool: "own_tool"}, ""},
		{"another role's tool without naming its role", wire.Question{Tool: "secret_tool"}, errcode.UnknownTool},
		{"its tool, by the role's id", wire.Question{Role: string(mine.ID), Tool: "own_tool"}, ""},
		{"its tool in its state", wire.Question{Role: "mine", Tool: "stated_tool", State: "ready"}, ""},
		{"its tool in another state", wire.Question{Role: "mine", Tool: "stated_tool"}, errcode.ToolNotAvailable},
		{"its tool in its group", wire.Question{Role: "mine", Tool: "own_tool", Groups: only("desk/mine")}, ""},
		{"its tool in another of its groups", wire.Question{Role: "mine", Tool: "own_tool", Groups: only("workspace")}, errcode.ToolNotAvailable},
		{"another role's tool", wire.Question{Role: "mine", Tool: "secret_tool"}, errcode.UnknownTool},
		{"an unknown tool", wire.Question{Role: "mine", Tool: "nonesuch"}, errcode.UnknownTool},
		{"another role", wire.Question{Role: theirs.Name, Tool: "own_tool"}, errcode.RoleNotFound},
		{"another role by id", wire.Question{Role: string(theirs.ID), Tool: "own_tool"}, errcode.RoleNotFound},
		{"root", wire.Question{Role: "root", Tool: "create_role"}, errcode.RoleNotFound},
		{"an agent", wire.Question{Agent: string(clerk.ID), Tool: "read_file"}, errcode.AgentNotFound},
	} {
		v, err := c.CheckAccess(t.Context(), test.q)
		if err != nil || v.Allowed != (test.want == "") || v.Code != test.want {
			t.Errorf("%s: %+v, %v, want %q", test.name, v, err, test.want)
		}
	}
	list, err := c.CheckTools(t.Context(), wire.Question{})
	if err != nil || len(list) == 0 {
		t.Errorf("its tools: %v, %v", list, err)
	}
	for _, v := range list {
		if v.Tool == "secret_tool" || v.Tool == "run_command" {
			t.Errorf("among its tools: %+v", v)
		}
	}
	if _, err := c.CheckTools(t.Context(), wire.Question{Role: "root"}); err == nil {
		t.Error("a caller lists the tools of root")
	}
	who, err := c.ListHolders(t.Context(), wire.Question{Who: "read_file"})
	if err != nil || len(who.Roles) != 1 || who.Roles[0].ID != mine.ID || len(who.Agents) != 0 {
		t.Errorf("who may read_file: %+v, %v, want its own role alone", who, err)
	}
	if who, err = c.ListHolders(t.Context(), wire.Question{Who: "secret_tool"}); err != nil || who.Code != errcode.UnknownTool || len(who.Roles)+len(who.Agents) != 0 {
		t.Errorf("who may secret_tool: %+v, %v", who, err)
	}
	for name, q := range map[string]wire.Question{"a role and an agent": {Role: "mine", Agent: "mine", Tool: "own_tool"}, "a tool twice": {Tool: "own_tool", Who: "own_tool"}} {
		if _, err := c.CheckAccess(t.Context(), q); errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("a question about %s: %v", name, err)
		}
	}
	if _, err := f.LocalClient().DeleteRole(t.Context(), string(mine.ID), false); err != nil {
		t.Fatal(err)
	}
	if v, err := c.CheckAccess(t.Context(), wire.Question{Tool: "own_tool"}); err != nil || v.Allowed || v.Code != errcode.RoleNotFound {
		t.Errorf("in a deleted role: %+v, %v", v, err)
	}
}

// Resources of others are answered with the same bytes as resources that do not
// exist.
func TestCaller_OthersLookNonexistent(t *testing.T) {
	f, mine, theirs := newCallerFixture(t)
	caller := f.WithCaller(t, mine.ID)
	clerk := gatewaytest.CollectAll(t, f.LocalClient().ListAgents(t.Context(), "", ""))[1]
	for _, form := range []string{
		"GET /api/tool/%s", "GET /api/toolset/%s", "POST /api/tool/%s/invoke {}", "GET /roles/%s/api/toolset", "GET /roles/%s/api/tool/own_tool",
		"POST /roles/%s/api/tool/own_tool/invoke {}", "GET /roles/mine/api/toolset/%s", "POST /roles/mine/api/tool/%s/invoke {}",
		"GET /api/v1/tools/%s", "GET /api/v1/tool-groups/%s", "GET /api/v1/tools?group=%s",
		`POST /api/v1/can {"role":"mine","tool":"%s"}`, `POST /api/v1/can {"role":"%s","tool":"own_tool"}`, `POST /api/v1/can {"role":"%s","tool":"console_print"}`,
		`POST /api/v1/can {"agent":"%s","tool":"own_tool"}`, `POST /api/v1/can {"who":"%s"}`,
		`POST /api/v1/can {"role":"mine","tool":"own_tool","group":["%s"]}`, `POST /api/v1/can {"who":"own_tool","group":["%s"]}`,
	} {
		for _, real := range []string{"secret_tool", "secret/theirs", "command", "run_command", theirs.Name, string(theirs.ID), string(clerk.ID), "clerk", "root", "create_role", "org_management"} {
			if got, want := gatewaytest.SendNamed(t, caller, form, real), gatewaytest.SendNamed(t, caller, form, "zz none"); got != want {
				t.Errorf("%s of %s:\ngot  %s\nwant %s", form, real, got, want)
			}
		}
	}
}

// No answer to a caller contains an id or name of another role's resources,
// whatever the route, method and body.
func TestCaller_NoRouteRevealsOthers(t *testing.T) {
	f, mine, theirs := newCallerFixture(t)
	operator, caller := f, f.WithCaller(t, mine.ID)
	agents := gatewaytest.CollectAll(t, f.LocalClient().ListAgents(t.Context(), "", ""))
	task := gatewaytest.CollectAll(t, f.LocalClient().ListTasks(t.Context(), ""))[0]
	artifact := gatewaytest.CollectAll(t, f.LocalClient().ListArtifacts(t.Context(), ""))[0]
	ids := []string{string(theirs.ID), string(task.ID), artifact.ID, string(agents[0].ID), string(agents[1].ID)}
	words := append(slices.Clone(ids), "secret", "run_command", "create_role", "clerk", "figures")
	requests, rejected, revealing := 0, 0, 0
	try := func(path, body string) {
		for _, word := range words {
			if strings.Contains(path+body, word) {
				return // the request itself contains the word
			}
		}
		requests++
		status, answer := caller.SendText(t, path, body)
		if status >= 400 {
			rejected++
		}
		for _, word := range words {
			if strings.Contains(answer, word) {
				t.Errorf("%s %s answers a caller with %q: %.300s", path, body, word, answer)
			}
		}
		if _, all := operator.SendText(t, path, body); slices.ContainsFunc(words, func(w string) bool { return strings.Contains(all, w) }) {
			revealing++
		}
	}
	var index wire.Index = gatewaytest.GetJSON[wire.Index](t, operator, "/", "")
	for _, r := range index.Routes {
		method, path, _ := strings.Cut(r, " ")
		if strings.Contains(path, "mcp") || path == "/api/openapi.json" {
			continue // tested in mcpserver; the same text for every sender
		}
		for _, name := range []string{"mine", "own_tool", "desk%2Fmine", "workspace", "root", "x"} {
			filled := strings.NewReplacer("{id}", name, "{name}", name, "{name...}", name, "{role}", "mine").Replace(path)
			for _, body := range []string{"", "{}", `{"name":"x"}`, `{"role":"mine","tool":"own_tool"}`, `{"who":"own_tool"}`, `{"text":"x"}`} {
				if body != "" && method == http.MethodGet {
					continue
				}
				try(method+" "+filled, body)
				if method == http.MethodGet || strings.HasSuffix(path, "/can") || strings.HasSuffix(path, "/invoke") {
					continue
				}
				if status, answer := caller.SendText(t, method+" "+filled, body); status < 400 {
					t.Errorf("%s %s %s: %d %s, want a rejection", method, filled, body, status, answer)
				}
			}
		}
	}
	if requests < 50 || rejected == 0 || revealing < 5 {
		t.Errorf("%d requests, %d rejected, %d that reveal something to the operator: the test tries too little", requests, rejected, revealing)
	}
	for _, id := range ids {
		for _, thing := range resources {
			status, answer := caller.SendText(t, "/api/v1/"+thing+"/"+id, "")
			if status != http.StatusForbidden && status != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", thing, id, status, answer)
			}
		}
	}
}

func TestRoutes_AccessBySender(t *testing.T) {
	f, mine, _ := newCallerFixture(t)
	reject := func(*http.Request) (identity.Principal, error) {
		return identity.ByOperator("x"), errcode.New(errcode.Unauthenticated, "not authenticated")
	}
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: reject, Version: "v0"})
	if err != nil {
		t.Fatal(err)
	}
	unauthenticated, caller, agent := &gatewaytest.Fixture{Handler: handler}, f.WithCaller(t, mine.ID), f.WithAuthenticator(t, func(*http.Request) (identity.Principal, error) { return identity.ByAgent("a"), nil })
	for path, want := range map[string][3]int{ // statuses for an unauthenticated sender, a caller, and an agent, which has no access
		"/healthz": {200, 200, 200}, "/readyz": {200, 200, 200}, "/": {401, 200, 403}, "/metrics": {401, 403, 403},
		"/api/v1/tools": {401, 200, 403}, "/api/v1/events": {401, 200, 403}, "/api/v1/roles": {401, 403, 403}, "/nowhere": {401, 404, 403}, "PUT /api/v1/roles": {401, 405, 403},
	} {
		for i, sender := range []*gatewaytest.Fixture{unauthenticated, caller, agent} {
			if status, body := sender.SendText(t, path, ""); status != want[i] {
				t.Errorf("%s, %d: %d %s, want %d", path, i, status, body, want[i])
			}
		}
	}
	if _, body := unauthenticated.SendText(t, "/healthz", ""); strings.Contains(body, "v0") {
		t.Errorf("the version is shown without authentication: %s", body)
	}
	index := gatewaytest.GetJSON[wire.Index](t, caller, "/", "")
	if slices.Contains(index.Routes, "GET /api/v1/roles") || !slices.Contains(index.Routes, "GET /api/v1/tools") {
		t.Errorf("routes of a caller: %v", index.Routes)
	}
}

// A caller that has a tool through a toolset reads the toolset's id, in every answer, and
// never that of the group that owns the tool.
func TestCaller_ReadsNoGroupItDoesNotHave(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "hidden", "shared_tool")
	f.AddTool(t, "hidden/more", "stated_tool", "ready")
	kit := toolgroups.Group{ID: "kit", Description: "a kit", Refs: []string{"shared_tool", "stated_tool"}}
	if _, err := grouptest.RegisterGroup(f.Runtime.GroupManager(), toolgroups.Config, kit); err != nil {
		t.Fatal(err)
	}
	lead := f.AddRole(t, "lead", "org_management", "kit")
	set := toolgroups.SetOf("kit", "org_management")
	if _, err := f.LocalClient().UpdateRole(t.Context(), "lead", wire.RoleRequest{Grant: &set}, false); err != nil {
		t.Fatal(err)
	}
	listed := f.AddRole(t, "listed", "kit")
	for name, role := range map[string]org.Role{"lists the toolset": listed, "grants the toolset": lead} {
		t.Run(name, func(t *testing.T) {
			caller := f.WithCaller(t, role.ID)
			for _, path := range []string{
				"/api/v1/tools", "/api/v1/tools/shared_tool", "/api/v1/tools/stated_tool", "/api/v1/tools?group=kit", "/api/v1/tool-groups", "/api/v1/tool-groups/kit",
				"/api/toolset", "/api/toolset/kit", "/api/tool/shared_tool", "POST /api/tool/shared_tool/invoke",
			} {
				if status, answer := caller.SendText(t, path, "{}"); status != http.StatusOK || strings.Contains(answer, "hidden") {
					t.Errorf("%s: %d %s", path, status, answer)
				}
			}
			usage, err := caller.LocalClient().FetchUsage(t.Context(), []string{"tool", "server"}, "", "")
			if err != nil || len(usage.Items) != 1 || usage.Items[0].Tool != "shared_tool" || usage.Items[0].Server != string(toolgroups.Config) {
				t.Errorf("usage: %+v, %v; want the server of the toolset", usage.Items, err)
			}
			for body, want := range map[string]string{
				`{"tool":"shared_tool"}`:                 `"group":"kit","epoch":`,
				`{"tool":"stated_tool"}`:                 `"group":"kit","epoch":`,
				`{"tool":"stated_tool","state":"ready"}`: "through group kit",
				`{"tool":"shared_tool","group":["kit"]}`: `"allowed":true`,
				`{"who":"shared_tool"}`:                  role.Name,
			} {
				if _, answer := caller.SendText(t, "POST /api/v1/can", body); strings.Contains(answer, "hidden") || !strings.Contains(answer, want) {
					t.Errorf("%s: %s", body, answer)
				}
			}
		})
	}
	verdict := gatewaytest.GetJSON[wire.Verdict](t, f, "POST /api/v1/can", `{"role":"listed","tool":"shared_tool"}`)
	if verdict.Group != "kit" || verdict.Rule != "group kit, through role listed" || verdict.Reason != "tool shared_tool is available through group kit" {
		t.Errorf("to the operator: %+v", verdict)
	}
}

// A role that uses every group has those that its creator may grant.
func TestCaller_RoleOfEveryGroupIsBoundByCreator(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "hidden", "shared_tool")
	if _, err := grouptest.RegisterGroup(f.Runtime.GroupManager(), toolgroups.Config, toolgroups.Group{ID: "kit", Refs: []string{"shared_tool"}}); err != nil {
		t.Fatal(err)
	}
	all, kit := toolgroups.AllGroups(), toolgroups.SetOf("kit")
	lead, err := f.LocalClient().CreateRole(t.Context(), wire.RoleRequest{Name: "lead", Use: &all, Grant: &all}, false)
	if err != nil {
		t.Fatal(err)
	}
	made, err := f.Runtime.CreateRole(t.Context(), tool.Call{ID: "c", By: identity.ByCaller("bob", lead.ID)}, org.RoleSpec{Name: "made", Use: &all})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.LocalClient().UpdateRole(t.Context(), "lead", wire.RoleRequest{Grant: &kit}, false); err != nil {
		t.Fatal(err)
	}
	caller := f.WithCaller(t, made.ID)
	for _, path := range []string{"/api/v1/tools", "/api/v1/tools/shared_tool", "/api/v1/tool-groups", `POST /api/v1/can {"tool":"shared_tool"}`} {
		path, body, _ := strings.Cut(path, " {")
		if body != "" {
			body = "{" + body
		}
		if status, answer := caller.SendText(t, path, body); status != http.StatusOK || strings.Contains(answer, "hidden") || !strings.Contains(answer, "kit") {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	for _, path := range []string{"/api/v1/tool-groups/%s", "/api/toolset/%s"} {
		if got, want := gatewaytest.SendNamed(t, caller, "GET "+path, "hidden"), gatewaytest.SendNamed(t, caller, "GET "+path, "zz none"); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
