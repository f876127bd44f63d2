package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestCan_ReturnsDecisionAndRule(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "phones", "ring", "open")
	task := f.RunTask(t, "go") // creates the role clerk, which uses artifact and workspace
	f.AddRole(t, "caller", "phones")
	f.AddRole(t, "idle")
	gatewaytest.GetJSON[wire.Role](t, f, "POST /api/v1/roles", `{"name":"all"}`)
	tests := []struct {
		question string
		code     errcode.Code // "" is allowed
		group    toolgroups.GroupID
		rule     string
	}{
		{`{"role":"clerk","tool":"read_file"}`, "", "workspace", "group workspace, through role clerk"},
		{`{"role":"all","tool":"read_file"}`, "", "workspace", "group workspace, through role all, which uses every group"},
		{`{"role":"clerk","tool":"run_command"}`, errcode.ToolNotAvailable, "command", "the toolGroups of role clerk"},
		{`{"role":"idle","tool":"read_file"}`, errcode.ToolNotAvailable, "workspace", "the toolGroups of role idle"},
		{`{"role":"clerk","tool":"read_file","group":["artifact"]}`, errcode.ToolNotAvailable, "workspace", "the groups asked for"},
		{`{"role":"clerk","tool":"read_file","group":["artifact","workspace"]}`, "", "workspace", "group workspace, through role clerk"},
		{`{"role":"clerk","tool":"read_file","group":["*"]}`, "", "workspace", "group workspace, through role clerk"},
		{`{"role":"clerk","tool":"read_file","group":[]}`, errcode.ToolNotAvailable, "workspace", "the groups asked for"},
		{`{"role":"caller","tool":"ring"}`, errcode.ToolNotAvailable, "phones", "its group offers it in the states open"},
		{`{"role":"caller","tool":"ring","state":"open"}`, "", "phones", "group phones, through role caller"},
		{`{"role":"clerk","tool":"no_such_tool"}`, errcode.UnknownTool, "", "no tool group has a tool of this name"},
		{`{"role":"nobody","tool":"read_file"}`, errcode.RoleNotFound, "", "only roles, agents and callers that exist may call"},
		{`{"role":"root","tool":"create_role"}`, "", "org_management", "root uses org_management alone"},
		{`{"role":"root","tool":"read_file"}`, errcode.ToolNotAvailable, "workspace", "root uses org_management alone"},
		{`{"agent":"clerk","tool":"read_file"}`, "", "workspace", "group workspace, through role clerk"},
		{`{"agent":"clerk","tool":"run_command"}`, errcode.ToolNotAvailable, "command", "the toolGroups of role clerk"},
		{`{"agent":"clerk","tool":"read_file","group":["artifact"]}`, errcode.ToolNotAvailable, "workspace", "the groups asked for"},
		{`{"agent":"` + string(task.Top) + `","tool":"send_message"}`, "", "org_management", "root uses org_management alone"},
		{`{"agent":"` + string(task.Top) + `","tool":"send_message","group":["artifact"]}`, "", "org_management", "root uses org_management alone"},
		{`{"agent":"nobody","tool":"read_file"}`, errcode.AgentNotFound, "", "only roles, agents and callers that exist may call"},
	}
	for _, test := range tests {
		t.Run(test.question, func(t *testing.T) {
			got := gatewaytest.GetJSON[wire.Verdict](t, f, "POST /api/v1/can", test.question)
			if got.Code != test.code || got.Allowed != (test.code == "") || got.Group != test.group || got.Rule != test.rule {
				t.Errorf("got %+v", got)
			}
			if !strings.Contains(got.Reason, got.Tool) || got.Tool == "" {
				t.Errorf("the reason %q does not name the tool %q", got.Reason, got.Tool)
			}
		})
	}
}

func TestCan_DeniesTerminatedAgent(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.RunTask(t, "go")
	ended, err := f.LocalClient().TerminateAgent(t.Context(), "clerk", "")
	if err != nil {
		t.Fatal(err)
	}
	got := gatewaytest.GetJSON[wire.Verdict](t, f, "POST /api/v1/can", `{"agent":"`+string(ended.ID)+`","tool":"read_file"}`)
	if got.Allowed || got.Code != errcode.AgentNotFound {
		t.Errorf("got %+v", got)
	}
}

// "can --who" lists exactly the roles and agents for which "can" allows the call.
func TestWho_AgreesWithCan(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "phones", "ring", "open")
	f.RunTask(t, "one")
	f.RunTask(t, "two")
	f.AddRole(t, "caller", "phones", "artifact")
	f.AddRole(t, "idle")
	gatewaytest.GetJSON[wire.Role](t, f, "POST /api/v1/roles", `{"name":"all"}`)
	names := []string{"root"}
	for _, role := range gatewaytest.CollectAll(t, f.LocalClient().ListRoles(t.Context())) {
		names = append(names, string(role.ID))
	}
	agents := gatewaytest.CollectAll(t, f.LocalClient().ListAgents(t.Context(), "", ""))
	for _, tool := range []string{"create_role", "put_artifact", "read_file", "run_command", "ring"} {
		for _, more := range []string{``, `,"state":"open"`, `,"group":["phones","org_management"]`} {
			who := gatewaytest.GetJSON[wire.Holders](t, f, "POST /api/v1/can", fmt.Sprintf(`{"who":%q%s}`, tool, more))
			listed := map[string]bool{}
			for _, r := range who.Roles {
				listed[string(r.ID)] = true
			}
			for _, a := range who.Agents {
				listed[string(a.ID)] = true
			}
			check := func(kind, ref string) {
				got := gatewaytest.GetJSON[wire.Verdict](t, f, "POST /api/v1/can", fmt.Sprintf(`{%q:%q,"tool":%q%s}`, kind, ref, tool, more))
				if got.Allowed != listed[ref] {
					t.Errorf("%s%s: %s %s listed: %v, allowed: %v", tool, more, kind, ref, listed[ref], got.Allowed)
				}
			}
			for _, name := range names {
				check("role", name)
			}
			for _, agent := range agents {
				check("agent", string(agent.ID))
			}
		}
	}
}

func TestWho_UnknownTool(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	status, body := f.SendText(t, "POST /api/v1/can", `{"who":"no_such_tool"}`)
	if status != http.StatusOK || !strings.Contains(body, `"roles":[],"agents":[]`) || !strings.Contains(body, "unknown_tool") {
		t.Errorf("got %d %s", status, body)
	}
}

// A workflow state that no tool names is an error that lists those that there are. A caller
// reads those of its own tools only.
func TestCan_RejectsUnknownState(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "phones", "ring", "open")
	f.AddTool(t, "vault", "unlock", "secret")
	caller := f.WithCaller(t, f.AddRole(t, "desk", "phones").ID)
	for _, question := range []string{`{"role":"desk","tool":"ring","state":"opn"}`, `{"role":"desk","state":"opn"}`, `{"who":"ring","state":"opn"}`} {
		if status, body := f.SendText(t, "POST /api/v1/can", question); status != http.StatusBadRequest || !strings.Contains(body, `did you mean \"open\"`) || !strings.Contains(body, "nown: open, secret, undefined") {
			t.Errorf("%s: %d %s", question, status, body)
		}
	}
	if status, body := caller.SendText(t, "POST /api/v1/can", `{"tool":"ring","state":"secret"}`); status != http.StatusBadRequest || !strings.Contains(body, "known: open, undefined") {
		t.Errorf("a caller: %d %s", status, body)
	}
	for _, state := range []string{"open", "undefined"} {
		if status, body := f.SendText(t, "POST /api/v1/can", `{"role":"desk","tool":"ring","state":"`+state+`"}`); status != http.StatusOK {
			t.Errorf("%s: %d %s", state, status, body)
		}
	}
}
