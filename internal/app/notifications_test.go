package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/runtime"
)

// clerks is a role whose calls of write_file wait for finance.
const clerks = `kind: role
name: clerk
toolGroups: [workspace]
approval: [{tools: [write_file], from: {any: [{role: finance}]}}]
---
{kind: role, name: finance, toolGroups: []}`

// approvalMetrics returns the documented metrics of calls that wait for people, and of their
// notifications.
func approvalMetrics(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`rolecall_(?:approval|notification)[a-z_]+`").FindAllString(string(text), -1)
	if len(names) < 6 {
		t.Fatalf("docs/metrics.md has only the metrics %v", names)
	}
	return names
}

// A served configuration tells its receiver about a call that waits and about what people decide.
// That includes what happened while no process ran, or while a recorded configuration without
// receivers was active. The metrics count it. Records and logs have neither the key nor the path
// of a chat.
func TestNotifications_ServedConfiguration(t *testing.T) {
	got := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
	}))
	defer server.Close()
	secrets["CHAT_URL"] = server.URL + "/services/chat-path-of-slack"
	secrets["SIGNING"] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	document := fmt.Sprintf("{kind: notification, name: oncall, url: %s/hook, secret: \"${SIGNING}\", allowHTTP: true, privateAddresses: [127.0.0.0/8]}", server.URL)
	chat := `{kind: notification, name: chat, format: slack, url: "${CHAT_URL}", allowHTTP: true}` // its address is not allowed
	f := newFixture(t, clerks, document, chat)
	defer f.StartNotifications(t.Context())()
	clerk, _ := f.Runtime.Org().RoleByName("clerk")
	call := func(text string) string {
		t.Helper()
		a, err := f.Runtime.InvokeTool(t.Context(), identity.ByCaller("clara", clerk.ID), "write_file", json.RawMessage(`{"path":"a","content":"`+text+`"}`))
		if err != nil || a.Code() != errcode.ApprovalRequired {
			t.Fatalf("%v, %v", a, err)
		}
		return a.Approval()
	}
	deny := func(id string) {
		t.Helper()
		out, err := f.Runtime.DecideApprovals(t.Context(), identity.ByOperator("ops"), runtime.ApproverAuth{How: "test"}, []runtime.ApprovalDecision{{ID: id, Reason: "no"}})
		if err != nil || out[0].Err != nil {
			t.Fatal(out, err)
		}
	}
	want := func(parts ...string) {
		t.Helper()
		body := <-got
		for _, part := range parts {
			if !strings.Contains(body, part) {
				t.Errorf("the message has no %s: %s", part, body)
			}
		}
	}
	id := call("one " + secrets["SIGNING"])
	want(`"approval_requested"`, id, `"for":"clara"`, `"role":"clerk"`, `"content":"one ***"`, `"needs":["finance"]`)
	deny(id)
	want(`"approval_decided"`, id, `"outcome":"denied"`)

	f.close()
	logs := f.logs.String()
	f.App = openFixture(t, f.dir, clerks).App // without receivers: nothing is told, and the position is forgotten
	clerk, _ = f.Runtime.Org().RoleByName("clerk")
	id = call("two")
	f.apply(clerks, document, chat)
	defer f.StartNotifications(t.Context())()
	third := call("three")
	want(`"approval_requested"`, third)
	deny(id)
	want(`"approval_decided"`, id)

	w := httptest.NewRecorder()
	handler, err := f.Handler()
	if err != nil {
		t.Fatal(err)
	}
	auth.TrustLocalOwner(handler).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, name := range approvalMetrics(t) {
		if !regexp.MustCompile(`(?m)^` + strings.Trim(name, "`") + `(_count)?({[^}]*})? (0\.\d*)?[1-9]`).MatchString(w.Body.String()) {
			t.Errorf("%s is 0", name)
		}
	}
	for _, line := range []string{"rolecall_approvals_waiting 1\n", `rolecall_approvals_total{outcome="denied"} 1`, `rolecall_notifications_total{notification="oncall",outcome="dropped"} 0`} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("the metrics have no %q", line)
		}
	}
	for e, err := range f.Runtime.JournalStore().FollowEvents(t.Context(), 0, false) {
		if text, _ := json.Marshal(e); err != nil || strings.Contains(string(text), "chat-path") {
			t.Errorf("%v: %s", err, text)
		}
	}
	if log := logs; strings.Contains(log, "chat-path") || strings.Contains(log, secrets["SIGNING"]) || !strings.Contains(log, "notification=chat") {
		t.Errorf("the log: %s", log)
	}
}
