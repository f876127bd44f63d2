package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// An external caller is checked by the name of its token, of its user, or as user@role, in
// its present workflow state.
func TestCan_Caller(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "phones", "ring", "open")
	move, err := tool.New("unlock", "opens", func(context.Context, struct{}) (string, error) { return "", nil }, &tool.Options{State: "open"})
	if err != nil {
		t.Fatal(err)
	}
	f.AddGroup(t, "lock", move)
	desk, clerk := f.AddRole(t, "desk", "phones", "lock"), f.AddRole(t, "clerk", "artifact")
	ann := identity.ByCaller("ann", desk.ID)
	if _, err := f.Runtime.InvokeTool(t.Context(), ann, "unlock", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	for _, role := range []org.Role{desk, clerk} {
		if _, err := f.Runtime.InvokeTool(t.Context(), identity.ByCaller("bob", role.ID), "ring", []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	holders := func() []identity.Principal {
		return []identity.Principal{identity.ByCaller("ci", desk.ID), identity.ByOperator("me")}
	}
	f.Handler, err = gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: auth.AlwaysOperator, TokenHolders: holders})
	if err != nil {
		t.Fatal(err)
	}
	for question, want := range map[string]string{
		`{"caller":"ann","tool":"ring"}`:                              "/open group phones, through role desk, which",
		`{"caller":"ann@desk","tool":"ring"}`:                         "/open group phones, through role desk",
		`{"caller":"ann@` + string(desk.ID) + `","tool":"ring"}`:      "/open group phones",
		`{"caller":"ann","tool":"ring","state":"undefined"}`:          "tool_not_available/undefined its group offers it in the states open",
		`{"caller":"ci","tool":"ring"}`:                               "tool_not_available/undefined its group offers it in the states open",
		`{"caller":"ci@clerk","tool":"put_artifact"}`:                 "/undefined group artifact, through role clerk",
		`{"caller":"ci@clerk","tool":"ring"}`:                         "tool_not_available/undefined the toolGroups of role clerk",
		`{"caller":"bob","tool":"ring"}`:                              "conflict/ only roles, agents and callers that exist",
		`{"caller":"ci@nowhere","tool":"ring"}`:                       "unauthenticated/ only roles, agents and callers",
		`{"caller":"me","tool":"ring"}`:                               "unauthenticated/ only roles",
		`{"caller":"nobody","tool":"ring"}`:                           "unauthenticated/ only roles",
		`{"caller":"ann","tool":"ring","group":["artifact"]}`:         "tool_not_available/open the groups asked for",
		`{"caller":"ann","tool":"no_such_tool"}`:                      "unknown_tool/open no tool group has a tool",
		`{"caller":"` + strings.Repeat("a", 300) + `","tool":"ring"}`: "unauthenticated/ only roles",
	} {
		got := gatewaytest.GetJSON[wire.Verdict](t, f, "POST /api/v1/can", question)
		want, _ = strings.CutSuffix(want, ", which")
		if text := string(got.Code) + "/" + got.State + " " + got.Rule; !strings.HasPrefix(text, want) || got.Allowed != (got.Code == "") {
			t.Errorf("%s: got %q, want %q", question, text, want)
		}
	}
	status, body := f.SendText(t, "POST /api/v1/can", `{"caller":"bob","tool":"ring"}`)
	if status != http.StatusOK || !strings.Contains(body, "bob@clerk") || !strings.Contains(body, "bob@desk") {
		t.Errorf("two roles of one user: %d %s", status, body)
	}
	if got := gatewaytest.GetJSON[wire.Verdicts](t, f, "POST /api/v1/can", `{"caller":"ann"}`); len(got.Verdicts) == 0 {
		t.Error("no table for a caller")
	}
}

// A caller may name itself, and learns nothing of others or of the limits above its role.
func TestCan_CallerAsksAboutItself(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "phones", "ring")
	desk := f.AddRole(t, "desk", "phones")
	caller := f.WithCaller(t, desk.ID)
	for question, want := range map[string]errcode.Code{
		`{"caller":"ann","tool":"ring"}`:      "",
		`{"caller":"ann@desk","tool":"ring"}`: "",
		`{"caller":"bob","tool":"ring"}`:      errcode.Unauthenticated,
		`{"caller":"bob@desk","tool":"ring"}`: errcode.Unauthenticated,
	} {
		if got := gatewaytest.GetJSON[wire.Verdict](t, caller, "POST /api/v1/can", question); got.Code != want {
			t.Errorf("%s: got %+v", question, got)
		}
	}
	for _, question := range []string{`{"tool":"ring","why":true}`, `{"role":"desk","diff":1}`, `{"diff":1}`} {
		if status, body := caller.SendText(t, "POST /api/v1/can", question); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", question, status, body)
		}
	}
}

// The reason for a denial that comes from the caller of a task names the caller and its
// role, and the limits say so.
func TestCan_WhyNamesTasksCaller(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	weak := f.AddRole(t, "weak", "org_management", "artifact", "workspace")
	id, err := f.Runtime.StartTask(t.Context(), org.TaskSpec{Text: "go", Caller: identity.ByCaller("ann", weak.ID)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Runtime.WaitTask(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	agent := ""
	for _, a := range gatewaytest.CollectAll(t, f.LocalClient().ListAgents(t.Context(), id, "")) {
		if a.Role == "clerk" {
			agent = string(a.ID)
		}
	}
	if _, err := f.LocalClient().UpdateRole(t.Context(), "weak", wire.RoleRequest{Use: new(toolgroups.SetOf("org_management", "artifact"))}, false); err != nil {
		t.Fatal(err)
	}
	got := gatewaytest.GetJSON[wire.Verdict](t, f, "POST /api/v1/can", `{"agent":"`+agent+`","tool":"read_file","why":true}`)
	if got.Allowed || got.Reason != "tool read_file is not available to this role: the task is bounded by its caller ann in role weak" || !strings.HasSuffix(got.Rule, "(caller ann in role weak)") {
		t.Errorf("got %+v", got)
	}
	var decides []org.LimitKind
	for _, l := range got.Limits {
		if l.Decides {
			decides = append(decides, l.Kind)
		}
	}
	if len(got.Limits) < 3 || len(decides) != 1 || decides[0] != org.LimitCaller {
		t.Errorf("limits %+v", got.Limits)
	}
	for _, question := range []string{`{"role":"weak","why":true}`, `{"who":"read_file","why":true}`, `{"role":"weak","tool":"read_file","diff":1}`, `{"agent":"clerk","diff":1}`, `{"role":"weak","diff":999}`} {
		if status, body := f.SendText(t, "POST /api/v1/can", question); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", question, status, body)
		}
	}
}
