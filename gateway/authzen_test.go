package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/tool"
)

// evaluation returns a question of the Authorization API.
func evaluation(kind, id, action, tool string) string {
	return fmt.Sprintf(`{"subject":{"type":%q,"id":%q},"action":{"name":%q},"resource":{"type":"tool","id":%q,"properties":{"x":1}},"x":{}}`, kind, id, action, tool)
}

// A decision is what the gate would say. What is not known is denied.
func TestEvaluation_IsTheGatesDecision(t *testing.T) {
	operator, caller, _ := newAskFixture(t, echoTools)
	operator.AddRole(t, "other", "console")
	for _, tt := range []struct {
		f        *gatewaytest.Fixture
		question string
		decision bool
		code     string
	}{
		{operator, evaluation("role", "clerk", "call", "find_page"), true, ""},
		{operator, evaluation("role", "clerk", "call", "find_book"), false, "tool_not_available"},
		{operator, evaluation("role", "clerk", "call", "console_print"), false, "tool_not_available"},
		{operator, evaluation("role", "clerk", "call", "nothing"), false, "unknown_tool"},
		{operator, evaluation("role", "nobody", "call", "find_page"), false, "role_not_found"},
		{operator, evaluation("agent", "nobody", "call", "find_page"), false, "agent_not_found"},
		{operator, evaluation("user", "nobody", "call", "find_page"), false, "unauthenticated"},
		{operator, evaluation("robot", "clerk", "call", "find_page"), false, "invalid_arguments"},
		{operator, evaluation("role", "clerk", "read", "find_page"), false, "invalid_arguments"},
		{operator, strings.Replace(evaluation("role", "clerk", "call", "find_page"), `"tool"`, `"file"`, 1), false, "invalid_arguments"},
		{operator, strings.Replace(evaluation("role", "clerk", "call", "find_book"), `"x":{}`, `"context":{"state":"analysis","time":"now"}`, 1), true, ""},
		{operator, strings.Replace(evaluation("role", "clerk", "call", "find_page"), `"x":{}`, `"context":{"group":["books"]}`, 1), false, "tool_not_available"},
		{operator, strings.Replace(evaluation("role", "clerk", "call", "find_page"), `"x":{}`, `"context":{"group":[]}`, 1), false, "tool_not_available"},
		{caller, evaluation("role", "clerk", "call", "find_page"), true, ""},
		{caller, evaluation("user", "ann", "call", "find_page"), true, ""},
		{caller, evaluation("role", "other", "call", "console_print"), false, "role_not_found"},
		{caller, evaluation("role", "clerk", "call", "console_print"), false, "unknown_tool"},
	} {
		status, text := tt.f.SendText(t, "POST /access/v1/evaluation", tt.question)
		got := gjson.Parse(text)
		if status != http.StatusOK || got.Get("decision").Raw != fmt.Sprint(tt.decision) || got.Get("context.code").Str != tt.code || got.Get("context.reason").Str == "" {
			t.Errorf("%s: %d %s, want %v %s", tt.question, status, text, tt.decision, tt.code)
		}
	}
}

// A request that is not complete or not JSON is an error, and the id of a request comes back.
func TestEvaluation_Rejects(t *testing.T) {
	operator, _, _ := newAskFixture(t, echoTools)
	for body, want := range map[string]string{
		`{}`: "subject", `[]`: "malformed", `{"subject":{"type":"role"}}`: "subject", `{"subject":"clerk"}`: "subject",
		`{"subject":{"type":"role","id":"clerk"},"action":{"name":"call"}}`:            "resource",
		`{"subject":{"type":"role","id":"clerk"},"resource":{"type":"tool","id":"x"}}`: "action",
	} {
		for _, path := range []string{"/access/v1/evaluation", "/access/v1/evaluations"} {
			got := operator.SendRequest(t, "POST "+path, body, http.Header{"X-Request-Id": {"r-1"}})
			if got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), want) || got.Header().Get("X-Request-ID") != "r-1" {
				t.Errorf("%s %s: %d %s %v", path, body, got.Code, got.Body, got.Header())
			}
		}
	}
	one := evaluation("role", "clerk", "call", "find_page")
	for body, want := range map[string]string{
		`{"evaluations":[` + one + `],"options":{"evaluations_semantic":"all"}}`: "evaluations_semantic",
		`{"evaluations":[` + strings.Repeat(one+",", 1000) + one + `]}`:          "at most 1000",
	} {
		if status, text := operator.SendText(t, "POST /access/v1/evaluations", body); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%.80s: %d %s", body, status, text)
		}
	}
}

// Several questions share what they leave out, and end as the semantic says.
func TestEvaluations_Semantics(t *testing.T) {
	operator, _, _ := newAskFixture(t, echoTools)
	questions := `"subject":{"type":"role","id":"clerk"},"action":{"name":"call"},"evaluations":[
		{"resource":{"type":"tool","id":"find_page"}},{"resource":{"type":"tool","id":"find_book"}},
		{"resource":{"type":"tool","id":"find_book"},"context":{"state":"analysis"}},{"action":{"name":"call"}}]`
	for semantic, want := range map[string]string{
		"": "[true,false,true,false]", `,"options":{"evaluations_semantic":"execute_all"}`: "[true,false,true,false]",
		`,"options":{"evaluations_semantic":"deny_on_first_deny"}`: "[true,false]", `,"options":{"evaluations_semantic":"permit_on_first_permit"}`: "[true]",
	} {
		status, text := operator.SendText(t, "POST /access/v1/evaluations", "{"+questions+semantic+"}")
		if got := gjson.Get(text, "evaluations.#.decision").Raw; status != http.StatusOK || got != want {
			t.Errorf("%s: %d %s, want %s", semantic, status, text, want)
		}
	}
	status, text := operator.SendText(t, "POST /access/v1/evaluations", evaluation("role", "clerk", "call", "find_page"))
	if status != http.StatusOK || gjson.Get(text, "decision").Raw != "true" {
		t.Errorf("without a list: %d %s", status, text)
	}
}

// A small request with many questions computes the tools of the caller at most once for each.
func TestEvaluations_CostOfManyQuestions(t *testing.T) {
	operator := newFixture(t, nil)
	const tools, questions = 3000, 200
	list := make([]tool.Tool, tools)
	for i := range list {
		list[i] = gatewaytest.NewDeclaredTool(t, fmt.Sprint("big_", i), "", nil)
	}
	operator.AddGroup(t, "big", list...)
	caller := operator.WithCaller(t, operator.AddRole(t, "wide", "big").ID)
	body := evaluation("user", "ann", "call", "big_7")
	many := body[:len(body)-1] + `,"evaluations":[{}` + strings.Repeat(",{}", questions-1) + "]}"
	ask := func() {
		if status, text := caller.SendText(t, "POST /access/v1/evaluations", many); status != http.StatusOK || !strings.Contains(text, `"decision":true`) {
			t.Fatalf("%d %.300s", status, text)
		}
	}
	ask()
	if used := allocated(ask); used > questions*tools*38 {
		t.Errorf("%d questions about %d tools allocate %d bytes", questions, tools, used)
	}
}

// A request whose client has gone answers no more questions.
func TestEvaluations_EndWithRequest(t *testing.T) {
	operator, _, _ := newAskFixture(t, echoTools)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the client has gone"))
	body := evaluation("role", "clerk", "call", "find_page")
	r := httptest.NewRequestWithContext(ctx, "POST", "/access/v1/evaluations", strings.NewReader(body[:len(body)-1]+`,"evaluations":[{},{}]}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	auth.TrustLocalOwner(operator.Handler).ServeHTTP(w, r)
	if w.Code == http.StatusOK {
		t.Errorf("got %s", w.Body)
	}
}

// The description has the addresses that clients use, and none that a Host header invents.
func TestDecisionPoint_Addresses(t *testing.T) {
	url := issuerGateway(t)
	for host, base := range map[string]string{"": url, "gw.example.com": "https://gw.example.com"} {
		header := http.Header{}
		if host != "" {
			header.Set("Host", host)
		}
		status, _, text := gatewaytest.SendRaw(t, http.MethodGet, url+"/.well-known/authzen-configuration", header, nil)
		want := fmt.Sprintf(`{"policy_decision_point":%[1]q,"access_evaluation_endpoint":"%[1]s/access/v1/evaluation","access_evaluations_endpoint":"%[1]s/access/v1/evaluations"}`, base)
		if status != http.StatusOK || strings.TrimSpace(text) != strings.ReplaceAll(want, "%[1]s", base) {
			t.Errorf("%q: %d %s, want %s", host, status, text, want)
		}
	}
	if status, text := newFixture(t, echoTools).SendText(t, "/.well-known/authzen-configuration", ""); status != http.StatusNotFound {
		t.Errorf("without a checked host: %d %s", status, text)
	}
}
