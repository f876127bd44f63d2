package gateway_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/journal"
)

// flowAgent is the path of TrustGraph's client for a flow.
func flowAgent(flow string) string {
	return "POST /api/v1/flow/" + url.PathEscape(flow) + "/service/agent"
}

// A request of TrustGraph's client gets the answer that the same request to an agent gets.
func TestAskFlowAgent_IsAskAgent(t *testing.T) {
	_, f, clerk := newAskFixture(t, echoTools)
	for _, tt := range []struct{ flow, body, same string }{
		{"default", `{"workspace":"default","question":"q","history":[]}`, `{"question":"q","history":[]}`},
		{"clerk", `{"question":"q","streaming":false,"group":["docs","books"]}`, `{"question":"q","role":"clerk","group":["docs","books"]}`},
		{string(clerk.ID), `{"question":"q","group":[],"history":null}`, `{"question":"q","group":[]}`},
		{"default", `{"question":"q","group":["*"],"state":"analysis"}`, `{"question":"q","group":["*"],"state":"analysis"}`},
	} {
		got := gatewaytest.GetJSON[client.AgentAnswer](t, f, flowAgent(tt.flow), tt.body)
		want := gatewaytest.GetJSON[client.AgentAnswer](t, f, "POST /api/v1/agent", tt.same)
		got.Task, got.Agent = want.Task, want.Agent
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %s (-agent +flow):\n%s", tt.flow, tt.body, diff)
		}
	}
}

// The path grants nothing: another role is unknown to a caller, and what is denied is on record.
func TestAskFlowAgent_Denied(t *testing.T) {
	operator, f, _ := newAskFixture(t, echoTools)
	for _, tt := range []struct {
		f              *gatewaytest.Fixture
		flow, body     string
		status         int
		want, field    string
		recordsAttempt bool
	}{
		{f, "root", `{"question":"q"}`, http.StatusNotFound, "role_not_found", "", true},
		{f, "nothing", `{"question":"q"}`, http.StatusNotFound, "role_not_found", "", true},
		{f, "default", `{"question":"q","group":["console"]}`, http.StatusForbidden, "insufficient_permissions", "", true},
		{f, "default", `{"question":"q","role":"root"}`, http.StatusBadRequest, "invalid_arguments", "role", false},
		{f, "default", `{"question":"q","workspace":"other"}`, http.StatusBadRequest, "invalid_arguments", "workspace", false},
		{f, "default", `{"question":"q","streaming":true}`, http.StatusBadRequest, "invalid_arguments", "streaming", false},
		{f, "default", `{"question":"q","history":[{"role":"user","content":"x"}]}`, http.StatusBadRequest, "invalid_arguments", "role", false},
		{f, "default", `{"question":"q","group":"docs"}`, http.StatusBadRequest, "invalid_arguments", "group", false},
		{operator, "default", `{"question":"q"}`, http.StatusBadRequest, "invalid_arguments", "role", false},
	} {
		before := len(deniedTasks(t, operator))
		status, text := tt.f.SendText(t, flowAgent(tt.flow), tt.body)
		if status != tt.status || !strings.Contains(text, tt.want) || !strings.Contains(text, tt.field) {
			t.Errorf("%s %s: %d %s", tt.flow, tt.body, status, text)
		}
		if recorded := len(deniedTasks(t, operator)) > before; recorded != tt.recordsAttempt {
			t.Errorf("%s %s: on record: %v", tt.flow, tt.body, recorded)
		}
	}
}

// deniedTasks lists the recorded denials of tasks.
func deniedTasks(t *testing.T, operator *gatewaytest.Fixture) (list []journal.Event) {
	t.Helper()
	if err := operator.Runtime.Flush(); err != nil {
		t.Fatal(err)
	}
	for e, err := range operator.LocalClient().StreamEvents(t.Context(), client.EventQuery{Denied: true}, false) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.Body.(journal.TaskDenied); ok {
			list = append(list, e)
		}
	}
	return list
}
