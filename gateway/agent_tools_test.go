package gateway_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// The listed tools are those that the gate lets the agent call, in both shapes.
func TestAgentTools_AreCallable(t *testing.T) {
	m, release := blockedTeamModel()
	f := newFixture(t, m)
	defer close(release)
	agent, _ := f.Runtime.Org().AgentByID(rootOf(t, f, f.StartTask(t, "go")))
	c := f.LocalClient()
	var listed, functions, callable []string
	for _, one := range gatewaytest.CollectAll(t, c.AgentTools(t.Context(), string(agent.ID))) {
		listed = append(listed, one.Name)
	}
	for _, one := range gatewaytest.CollectAll(t, c.AgentFunctions(t.Context(), string(agent.ID))) {
		if one.Type != "function" || one.Function.Description == "" || gjson.GetBytes(one.Function.Parameters, "type").Str != "object" {
			t.Errorf("function %+v", one)
		}
		functions = append(functions, one.Function.Name)
	}
	verdicts, err := c.CheckTools(t.Context(), wire.Question{Agent: string(agent.ID)})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		if v.Allowed {
			callable = append(callable, v.Tool)
		}
	}
	if len(callable) == 0 || !slices.Equal(listed, callable) || !slices.Equal(functions, callable) {
		t.Errorf("listed %q and %q, callable %q", listed, functions, callable)
	}
	if status, body := f.SendText(t, "/api/v1/agents/"+string(agent.ID)+"/tools?format=xml", ""); status != http.StatusBadRequest {
		t.Errorf("an unknown format: %d %s", status, body)
	}
}

// rootOf returns the first agent of a task.
func rootOf(t *testing.T, f *gatewaytest.Fixture, id identity.TaskID) identity.AgentID {
	t.Helper()
	task, ok := f.Runtime.Org().TaskByID(id)
	if !ok {
		t.Fatalf("no task %s", id)
	}
	return task.Top
}

// A caller sees the agents of its tasks and no others, and of their tools those that its role
// has.
func TestAgentTools_OfCaller(t *testing.T) {
	block := make(chan struct{})
	f := newFixture(t, func(model.Request) model.Answer { <-block; return gatewaytest.EndAnswer("done") })
	defer close(block)
	f.AddRole(t, "worker", "artifact", "workspace")
	use := toolgroups.SetOf("artifact")
	role, err := f.LocalClient().CreateRole(t.Context(), wire.RoleRequest{Name: "desk", Use: &use, Tasks: &wire.TasksRequest{As: "worker"}}, false)
	if err != nil {
		t.Fatal(err)
	}
	theirs := f.StartTask(t, "theirs")
	caller := f.WithCaller(t, role.ID)
	mine := gatewaytest.GetJSON[wire.Task](t, caller, "POST /api/v1/tasks", `{"text":"mine","role":"worker"}`)
	worker, err := f.Runtime.StartTask(t.Context(), org.TaskSpec{Text: "x", Caller: identity.ByCaller("ben", role.ID)})
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, one := range gatewaytest.CollectAll(t, caller.LocalClient().AgentTools(t.Context(), string(mine.Agent))) {
		shown = append(shown, one.Name)
	}
	if want := f.ToolNames("artifact"); !slices.Equal(shown, want) {
		t.Errorf("of its own agent it sees %q, want %q, which its role has", shown, want)
	}
	unknown := gatewaytest.SendNamed(t, caller, "/api/v1/agents/%s/tools", "none")
	for name, ref := range map[string]string{
		"of the operator's task": string(rootOf(t, f, theirs)), "of another caller's task": string(rootOf(t, f, worker)), "by its role": "root",
	} {
		if got := gatewaytest.SendNamed(t, caller, "/api/v1/agents/%s/tools", ref); got != unknown || !strings.HasPrefix(got, "404 ") {
			t.Errorf("an agent %s: %s, want %s", name, got, unknown)
		}
	}
}

// An agent that has ended may call nothing.
func TestAgentTools_OfTerminatedAgent(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.RunTask(t, "go")
	if _, err := f.LocalClient().TerminateAgent(t.Context(), "clerk", ""); err != nil {
		t.Fatal(err)
	}
	if page := gatewaytest.GetJSON[wire.Page[wire.Tool]](t, f, "/api/v1/agents/clerk/tools", ""); len(page.Items) != 0 {
		t.Errorf("got %+v", page.Items)
	}
}
