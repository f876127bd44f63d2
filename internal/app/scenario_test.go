package app

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/test/oidctest"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/metrics"
	"github.com/rolecall/rolecall/toolgroups"
)

// scenarioScript calls the tools that the question lists. It answers with the tools that were
// visible before each call and at the end.
const scenarioScript = `role("*", function* (task) {
	const seen = [];
	for (const name of task.payload.text.split(" ")) {
		seen.push(tools.slice().sort().join(" "));
		if (name !== "look") yield call(name, name.startsWith("knowledge") ? {question: "q"} : {});
	}
	return seen;
})`

// scenario is a served organization with the tools of TrustGraph's specification, whose users
// have tokens of an issuer.
type scenario struct {
	*fixture
	idp *oidctest.Issuer
	url string
}

func newScenario(t *testing.T) *scenario {
	f, g, m, idp := openConnected(t, Options{Serve: true}), newTrustGraph(t), newMCPFixture(t, "complex-analysis", "reset-workflow"), oidctest.NewIssuer(t)
	rule := func(group string) string { return fmt.Sprintf("{claim: /groups, value: %s, role: %s}", group, group) }
	docs := []string{
		"{kind: organization, name: o, model: m}", "{kind: model, name: m, type: script, file: agents.js}",
		"{kind: network, name: n, allowHTTP: true, privateAddresses: [127.0.0.0/8]}",
		fmt.Sprintf("{kind: source, name: trustgraph, type: http, baseUrl: %q}", g.URL), m.document(""),
		"{kind: tool, name: entity-create, type: http, source: trustgraph, method: POST, path: /entities, description: Adds., group: [write], available_in_states: [analysis, modification]}",
		"{kind: role, name: readers, toolGroups: [read-only], agent: {defaultGroups: [read-only]}}",
		"{kind: role, name: writers, toolGroups: [write], agent: {defaultGroups: [write]}, states: [analysis, modification]}",
		"{kind: role, name: analysts, toolGroups: [knowledge, compute, admin], agent: {}}",
		fmt.Sprintf("{kind: gateway, name: g, auth: [{name: corp, issuer: %q, audience: [gw], roles: [%s, %s, %s]}]}", idp.URL, rule("readers"), rule("writers"), rule("analysts")),
	}
	cfg, err := config.ReadFiles([]yamldoc.File{
		{Path: "org.yaml", Data: []byte(strings.Join(docs, "\n---\n"))}, {Path: "tools.yaml", Data: []byte(specification)},
		{Path: "agents.js", Data: []byte(scenarioScript), Included: true},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.ApplyConfig(t.Context(), cfg, nil); err != nil {
		t.Fatal(err)
	}
	h, err := f.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return &scenario{f, idp, server.URL}
}

// do sends a request of a user, who is in the group of the same name.
func (s *scenario) do(user, method, path, body string) (int, []byte) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.idp.SignToken(fmt.Sprintf(`{"iss":%q,"aud":"gw","sub":%q,"groups":[%q],"exp":%d}`, s.idp.URL, user, user, time.Now().Add(time.Hour).Unix())))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, data
}

// ask asks an agent and checks which tools it saw, separated by commas, and its last state.
func (s *scenario) ask(user, body, seen, state string) {
	s.t.Helper()
	status, data := s.do(user, http.MethodPost, "/api/v1/agent", body)
	var answer wire.AgentAnswer
	var got []string
	if err := json.Unmarshal(data, &answer); err != nil || status != http.StatusOK || json.Unmarshal(answer.Answer, &got) != nil {
		s.t.Fatalf("%s %s: %d %s", user, body, status, data)
	}
	if strings.Join(got, ", ") != seen || answer.State != state {
		s.t.Errorf("%s %s: saw %q in the end in %s, want %q and %s", user, body, got, answer.State, seen, state)
	}
}

// reject sends a request to an agent that is rejected.
func (s *scenario) reject(user, body string, status int, code errcode.Code) {
	s.t.Helper()
	got, data := s.do(user, http.MethodPost, "/api/v1/agent", body)
	var answer struct{ Error struct{ Code errcode.Code } }
	if err := json.Unmarshal(data, &answer); err != nil || got != status || answer.Error.Code != code {
		s.t.Errorf("%s %s: %d %s, want %d %s", user, body, got, data, status, code)
	}
}

// userOf returns the user name of a recorded caller.
func userOf(caller string) string {
	user, _, _ := strings.Cut(strings.TrimPrefix(caller, "user:"), "@")
	return user
}

// started lists who started tasks, with the groups and the state, and what was denied.
func (s *scenario) started(after uint64) (list []string) {
	s.t.Helper()
	for e, err := range s.store.FollowEvents(s.t.Context(), after, false) {
		if err != nil {
			s.t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case journal.TaskStarted:
			list = append(list, fmt.Sprint(userOf(b.Caller), " ", b.Requested, " ", b.Groups, " ", b.State))
		case journal.TaskDenied:
			list = append(list, fmt.Sprint(userOf(b.Caller), " ", b.Requested, " ", b.Code))
		}
	}
	return list
}

// metrics returns the metrics of the process.
func (s *scenario) metrics() string {
	s.t.Helper()
	w := httptest.NewRecorder()
	metrics.Handler(s.registry, slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// Users with tokens of an issuer ask agents over HTTP. Each sees the tools of its groups in its
// state, states follow the user, and all of it is on record and counted.
func TestScenario_UsersOfAnIssuer(t *testing.T) {
	s := newScenario(t)
	after := s.LastSeq()
	s.ask("readers", `{"question":"look","group":["read-only"]}`, "knowledge-query text-completion", toolgroups.Undefined)
	s.ask("writers", `{"question":"look","group":["write"],"state":"analysis"}`, "entity-create", "analysis")
	s.reject("readers", `{"question":"look","group":["write"]}`, http.StatusForbidden, errcode.InsufficientPermissions)
	s.reject("readers", `{"question":"look","state":"analysis"}`, http.StatusForbidden, errcode.InsufficientPermissions)
	s.reject("writers", `{"question":"look","state":"modification"}`, http.StatusConflict, errcode.Conflict)

	const workflow = `{"question":"knowledge-query complex-analysis reset-workflow look","group":["knowledge","compute","admin"]}`
	for range 2 { // the final state lets it begin anew
		s.ask("analysts", workflow, "knowledge-query, complex-analysis reset-workflow, reset-workflow, knowledge-query", toolgroups.Undefined)
	}
	s.ask("readers", `{"question":"entity-create look","group":["read-only"]}`, "knowledge-query text-completion, knowledge-query text-completion", toolgroups.Undefined)
	s.ask("analysts", `{"question":"complex-analysis","group":["*"]}`, "knowledge-query", toolgroups.Undefined)
	s.reject("analysts", `{"question":"look"}`, http.StatusForbidden, errcode.NoToolsAvailable)

	steps := []string{"knowledge-query: undefined to analysis", "complex-analysis: analysis to results", "reset-workflow: results to undefined"}
	if diff := cmp.Diff(slices.Concat(steps, steps), s.transitions(after)); diff != "" {
		t.Errorf("transitions on record (-want +got):\n%s", diff)
	}
	want := []string{
		"corp:readers [read-only] [read-only] undefined", "corp:writers [write] [write] analysis",
		"corp:readers [write] insufficient_permissions", "corp:readers [] insufficient_permissions", "corp:writers [] conflict",
		"corp:analysts [knowledge compute admin] [knowledge compute admin] undefined",
		"corp:analysts [knowledge compute admin] [knowledge compute admin] undefined",
		"corp:readers [read-only] [read-only] undefined", "corp:analysts [*] [] undefined",
	}
	if diff := cmp.Diff(want, s.started(after)); diff != "" {
		t.Errorf("requests on record (-want +got):\n%s", diff)
	}
	counted := s.metrics()
	for _, line := range []string{
		`agent_tool_group_requests_total{group="read-only"} 2`, `agent_tool_group_requests_total{group="write"} 2`, // one was denied
		`agent_tool_group_availability{group="read-only"} 2`, `agent_tool_group_availability{group="admin"} 1`,
		`agent_state_transitions_total{from="analysis",to="results",tool="complex-analysis"} 2`,
		`agent_workflow_duration_seconds_count{state="results"} 2`, `agent_filtered_tools_count_count 14`,
		`agent_group_access_denied_total 1`, `agent_invalid_state_transition_total 1`, `agent_privilege_escalation_attempts_total 2`,
	} {
		if !strings.Contains(counted, line+"\n") {
			t.Errorf("no metric %s in\n%s", line, counted)
		}
	}
}
