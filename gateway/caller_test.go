package gateway_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// as gives the house as somebody in a role sees it.
func (h *house) as(t testing.TB, role identity.RoleID) *house {
	t.Helper()
	who := func(*http.Request) (identity.Principal, error) { return identity.ByCaller("ann", role), nil }
	handler, err := gateway.New(gateway.Config{Runtime: h.rt, Authenticate: who, Version: "v0"})
	if err != nil {
		t.Fatal(err)
	}
	return &house{rt: h.rt, store: h.store, handler: handler}
}

// callersHouse has two roles without a tool in common, agents at rest, a task,
// an artifact, and a group that both roles know a part of.
func callersHouse(t *testing.T) (h *house, mine, theirs org.Role) {
	t.Helper()
	h = open(t, team)
	h.tool(t, "desk/mine", "own_tool")
	h.tool(t, "desk/stated", "stated_tool", "ready")
	h.tool(t, "secret/theirs", "secret_tool")
	mine, theirs = h.role(t, "mine", "desk/mine", "desk/stated", "workspace"), h.role(t, "secret keepers", "secret/theirs", "command")
	h.work(t, "secret task")
	return h, mine, theirs
}

func TestACallerSeesItsRolesToolsAndGroups(t *testing.T) {
	h, mine, _ := callersHouse(t)
	c := h.as(t, mine.ID).client()
	var tools, groups []string
	for _, tool := range collect(t, c.Tools(t.Context(), "")) {
		tools = append(tools, tool.Name)
	}
	for _, g := range collect(t, c.Groups(t.Context())) {
		groups = append(groups, fmt.Sprintf("%s %d", g.ID, g.Count))
	}
	if got, want := strings.Join(tools, " "), "get_workspace_info list_files own_tool read_file stated_tool write_file"; got != want {
		t.Errorf("tools %s, want %s", got, want)
	}
	if got, want := strings.Join(groups, ", "), "desk/mine 1, desk/stated 1, workspace 4"; got != want {
		t.Errorf("groups %s, want %s", got, want)
	}
	if tool, err := c.Tool(t.Context(), "own_tool"); err != nil || tool.Group != "desk/mine" {
		t.Errorf("its own tool: %+v, %v", tool, err)
	}
	if n := len(collect(t, c.Tools(t.Context(), "workspace"))); n != 4 {
		t.Errorf("workspace has %d tools, want 4", n)
	}
	if _, err := h.client().DeleteRole(t.Context(), string(mine.ID), false); err != nil {
		t.Fatal(err)
	}
	if n := len(collect(t, c.Tools(t.Context(), ""))) + len(collect(t, c.Groups(t.Context()))); n != 0 {
		t.Errorf("in a deleted role it sees %d things", n)
	}
}

func TestACallerAsksAboutItselfAlone(t *testing.T) {
	h, mine, theirs := callersHouse(t)
	c := h.as(t, mine.ID).client()
	clerk := collect(t, h.client().Agents(t.Context(), "", ""))[1]
	only := func(ids ...toolgroups.GroupID) *toolgroups.Set { set := toolgroups.Of(ids...); return &set }
	for _, test := range []struct {
		name string
		q    gateway.Question
		want errcode.Code // "" is allowed
	}{
		{"its tool", gateway.Question{Role: "mine", Tool: "own_tool"}, ""},
		{"its tool, of no role in words", gateway.Question{Tool: "own_tool"}, ""},
		{"another's tool, of no role in words", gateway.Question{Tool: "secret_tool"}, errcode.UnknownTool},
		{"its tool, by its id", gateway.Question{Role: string(mine.ID), Tool: "own_tool"}, ""},
		{"its tool in its state", gateway.Question{Role: "mine", Tool: "stated_tool", State: "ready"}, ""},
		{"its tool in another state", gateway.Question{Role: "mine", Tool: "stated_tool"}, errcode.ToolNotAvailable},
		{"its tool in its group", gateway.Question{Role: "mine", Tool: "own_tool", Groups: only("desk/mine")}, ""},
		{"its tool in another of its groups", gateway.Question{Role: "mine", Tool: "own_tool", Groups: only("workspace")}, errcode.ToolNotAvailable},
		{"another's tool", gateway.Question{Role: "mine", Tool: "secret_tool"}, errcode.UnknownTool},
		{"a tool that is none", gateway.Question{Role: "mine", Tool: "nonesuch"}, errcode.UnknownTool},
		{"another role", gateway.Question{Role: theirs.Name, Tool: "own_tool"}, errcode.RoleNotFound},
		{"another role by id", gateway.Question{Role: string(theirs.ID), Tool: "own_tool"}, errcode.RoleNotFound},
		{"root", gateway.Question{Role: "root", Tool: "create_role"}, errcode.RoleNotFound},
		{"an agent", gateway.Question{Agent: string(clerk.ID), Tool: "read_file"}, errcode.AgentNotFound},
	} {
		v, err := c.Can(t.Context(), test.q)
		if err != nil || v.Allowed != (test.want == "") || v.Code != test.want {
			t.Errorf("%s: %+v, %v, want %q", test.name, v, err, test.want)
		}
	}
	who, err := c.Who(t.Context(), gateway.Question{Who: "read_file"})
	if err != nil || len(who.Roles) != 1 || who.Roles[0].ID != mine.ID || len(who.Agents) != 0 {
		t.Errorf("who may read_file: %+v, %v, want its own role alone", who, err)
	}
	if who, err = c.Who(t.Context(), gateway.Question{Who: "secret_tool"}); err != nil || who.Code != errcode.UnknownTool || len(who.Roles)+len(who.Agents) != 0 {
		t.Errorf("who may secret_tool: %+v, %v", who, err)
	}
	for name, q := range map[string]gateway.Question{"nothing": {}, "a role and an agent": {Role: "mine", Agent: "mine", Tool: "own_tool"}, "a tool twice": {Tool: "own_tool", Who: "own_tool"}} {
		if _, err := c.Can(t.Context(), q); errcode.Of(err) != errcode.InvalidArguments {
			t.Errorf("a question about %s: %v", name, err)
		}
	}
	if _, err := h.client().DeleteRole(t.Context(), string(mine.ID), false); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Can(t.Context(), gateway.Question{Tool: "own_tool"}); err != nil || v.Allowed || v.Code != errcode.RoleNotFound {
		t.Errorf("in a deleted role: %+v, %v", v, err)
	}
}

// What is another's is answered as what does not exist, to the letter.
func TestWhatIsAnothersDoesNotExist(t *testing.T) {
	h, mine, theirs := callersHouse(t)
	caller := h.as(t, mine.ID)
	clerk := collect(t, h.client().Agents(t.Context(), "", ""))[1]
	for _, form := range []string{
		"GET /api/tool/%s", "GET /api/toolset/%s", "POST /api/tool/%s/invoke {}", "GET /roles/%s/api/toolset", "GET /roles/%s/api/tool/own_tool",
		"POST /roles/%s/api/tool/own_tool/invoke {}", "GET /roles/mine/api/toolset/%s", "POST /roles/mine/api/tool/%s/invoke {}",
		"GET /api/v1/tools/%s", "GET /api/v1/tool-groups/%s", "GET /api/v1/tools?group=%s",
		`POST /api/v1/can {"role":"mine","tool":"%s"}`, `POST /api/v1/can {"role":"%s","tool":"own_tool"}`, `POST /api/v1/can {"role":"%s","tool":"console_print"}`,
		`POST /api/v1/can {"agent":"%s","tool":"own_tool"}`, `POST /api/v1/can {"who":"%s"}`,
		`POST /api/v1/can {"role":"mine","tool":"own_tool","group":["%s"]}`, `POST /api/v1/can {"who":"own_tool","group":["%s"]}`,
	} {
		for _, real := range []string{"secret_tool", "secret/theirs", "command", "run_command", theirs.Name, string(theirs.ID), string(clerk.ID), "clerk", "root", "create_role", "org_management"} {
			if got, want := asked(t, caller, form, real), asked(t, caller, form, "zz none"); got != want {
				t.Errorf("%s of %s:\ngot  %s\nwant %s", form, real, got, want)
			}
		}
	}
}

// asked gives status and body, with what was asked for replaced.
func asked(t *testing.T, h *house, form, name string) string {
	t.Helper()
	path, body, _ := strings.Cut(form, " {")
	if body != "" {
		body = "{" + strings.ReplaceAll(body, "%s", name)
	}
	status, answer := h.ask(t, strings.ReplaceAll(path, "%s", strings.ReplaceAll(strings.ReplaceAll(name, "/", "%2F"), " ", "%20")), body)
	return fmt.Sprintf("%d %s", status, strings.ReplaceAll(answer, name, "NAME"))
}

// No route answers somebody in a role with anything of another: whatever is
// asked for, by whatever method, no word of the other role's world comes back.
func TestNoRouteTellsACallerOfAnother(t *testing.T) {
	h, mine, theirs := callersHouse(t)
	operator, caller := h, h.as(t, mine.ID)
	agents := collect(t, h.client().Agents(t.Context(), "", ""))
	task := collect(t, h.client().Tasks(t.Context(), ""))[0]
	artifact := collect(t, h.client().Artifacts(t.Context(), ""))[0]
	ids := []string{string(theirs.ID), string(task.ID), artifact.ID, string(agents[0].ID), string(agents[1].ID)}
	words := append(slices.Clone(ids), "secret", "run_command", "create_role", "clerk", "figures")
	asks, refusals, told := 0, 0, 0
	try := func(path, body string) {
		for _, word := range words {
			if strings.Contains(path+body, word) {
				return // it gave the word itself
			}
		}
		asks++
		status, answer := caller.ask(t, path, body)
		if status >= 400 {
			refusals++
		}
		for _, word := range words {
			if strings.Contains(answer, word) {
				t.Errorf("%s %s answers a caller with %q: %.300s", path, body, word, answer)
			}
		}
		if _, all := operator.ask(t, path, body); slices.ContainsFunc(words, func(w string) bool { return strings.Contains(all, w) }) {
			told++
		}
	}
	var index gateway.Index = get[gateway.Index](t, operator, "/", "")
	for _, r := range index.Routes {
		method, path, _ := strings.Cut(r, " ")
		if strings.Contains(path, "mcp") {
			continue // its own package's tests
		}
		for _, name := range []string{"mine", "own_tool", "desk%2Fmine", "workspace", "root", "x"} {
			filled := strings.NewReplacer("{id}", name, "{name}", name, "{name...}", name, "{role}", "mine").Replace(path)
			for _, body := range []string{"", "{}", `{"name":"x"}`, `{"role":"mine","tool":"own_tool"}`, `{"who":"own_tool"}`, `{"text":"x"}`} {
				if body != "" && method == http.MethodGet {
					continue
				}
				if method == http.MethodGet || strings.HasSuffix(path, "/can") || strings.HasSuffix(path, "/invoke") {
					try(method+" "+filled, body)
				} else if status, answer := caller.ask(t, method+" "+filled, body); status != http.StatusForbidden {
					t.Errorf("%s %s: %d %s, want 403", method, filled, status, answer)
				}
			}
		}
	}
	if asks < 50 || refusals == 0 || told < 5 {
		t.Errorf("%d asks, %d refused, %d of which tell the operator something: not tried", asks, refusals, told)
	}
	for _, id := range ids {
		for _, thing := range things {
			status, answer := caller.ask(t, "/api/v1/"+thing+"/"+id, "")
			if status != http.StatusForbidden && status != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", thing, id, status, answer)
			}
		}
	}
}

func TestOnlyTheOperatorsRoutesAreRefusedToCallers(t *testing.T) {
	h, mine, _ := callersHouse(t)
	nobody := func(*http.Request) (identity.Principal, error) {
		return identity.ByOperator("x"), errcode.New(errcode.Unauthenticated, "who asks is not known")
	}
	handler, err := gateway.New(gateway.Config{Runtime: h.rt, Authenticate: nobody, Version: "v0"})
	if err != nil {
		t.Fatal(err)
	}
	stranger, caller, agent := &house{handler: handler}, h.as(t, mine.ID), h.withSender(t, identity.ByAgent("a"))
	for path, want := range map[string][3]int{ // a stranger, a caller, an agent, which has no business here
		"/healthz": {200, 200, 200}, "/readyz": {200, 200, 200}, "/": {401, 200, 403}, "/metrics": {401, 403, 403},
		"/api/v1/tools": {401, 200, 403}, "/api/v1/roles": {401, 403, 403}, "/nowhere": {401, 404, 403}, "PUT /api/v1/roles": {401, 405, 403},
	} {
		for i, who := range []*house{stranger, caller, agent} {
			if status, body := who.ask(t, path, ""); status != want[i] {
				t.Errorf("%s, %d: %d %s, want %d", path, i, status, body, want[i])
			}
		}
	}
	if _, body := stranger.ask(t, "/healthz", ""); strings.Contains(body, "v0") {
		t.Errorf("a stranger is told the version: %s", body)
	}
	index := get[gateway.Index](t, caller, "/", "")
	if slices.Contains(index.Routes, "GET /api/v1/tasks") || !slices.Contains(index.Routes, "GET /api/v1/tools") {
		t.Errorf("a caller is told of %v", index.Routes)
	}
}

// withSender gives the house as a principal sees it.
func (h *house) withSender(t testing.TB, p identity.Principal) *house {
	t.Helper()
	handler, err := gateway.New(gateway.Config{Runtime: h.rt, Authenticate: func(*http.Request) (identity.Principal, error) { return p, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return &house{handler: handler}
}
