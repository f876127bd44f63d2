package gateway_test

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// brain answers for all agents: a pure function of the request.
type brain func(r model.Request) model.Answer

func (b brain) Generate(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a := b(r)
		for _, item := range r.Items {
			if item.Message != nil {
				a.MessagesRead++
			}
		}
		yield(model.Delta{Answer: &a}, nil)
	}
}

func end(text string) model.Answer { return model.Answer{Finish: model.FinishEnd, Text: text} }

// do is an answer that calls one tool.
func do(name string, args any) model.Answer {
	text, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{Name: name, Args: text}}}
}

// last gives a field of the last result.
func last(r model.Request, field string) string {
	for i := len(r.Items) - 1; i >= 0; i-- {
		if res := r.Items[i].Result; res != nil {
			var v map[string]any
			_ = json.Unmarshal(res.Content, &v)
			text, _ := v[field].(string)
			return text
		}
	}
	return ""
}

func answers(r model.Request) int {
	n := 0
	for _, item := range r.Items {
		if item.Answer != nil {
			n++
		}
	}
	return n
}

// team is a root that spawns a clerk, which keeps an artifact, tries a tool
// it has not, and reports; root's answer is "done".
func team(r model.Request) model.Answer {
	brief := map[string]any{"objective": "o", "constraints": []string{}, "inputs": "i", "outputs": "o", "completion_criteria": "c"}
	switch step := answers(r); {
	case r.Self.Role == "clerk" && step == 0:
		return do("put_artifact", map[string]any{"type": "text", "content": "figures"})
	case r.Self.Role == "clerk" && step == 1:
		return do("run_command", map[string]any{"command": "true"})
	case r.Self.Role == "clerk":
		return end(last(r, "error"))
	case step == 0:
		return do("create_role", map[string]any{"name": "clerk", "rolePrompt": "file", "toolGroups": []string{"artifact", "workspace"}})
	case step == 1:
		return do("spawn_agent_with_task", map[string]any{"roleId": last(r, "id"), "taskBrief": brief, "initialMessage": "go"})
	}
	for _, item := range r.Items {
		if m := item.Message; m != nil && m.From != "user" {
			return end("done")
		}
	}
	return model.Answer{Finish: model.FinishWait}
}

// house is a runtime behind a gateway.
type house struct {
	rt      *runtime.Runtime
	store   *persist.Store
	handler http.Handler
}

func open(t testing.TB, b brain) *house {
	t.Helper()
	return openOn(t, b)
}

func openOn(t testing.TB, m model.Model) *house {
	t.Helper()
	store := persisttest.Open(t)
	groups := toolgroups.NewManager(toolgroups.Reserved()...)
	rt, err := runtime.New(runtime.Config{
		Store: store, Groups: groups, Workspaces: t.TempDir(),
		Model: func(string) (model.Model, error) { return m, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := builtin.Register(groups, rt, builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	h := &house{rt: rt, store: store}
	h.handler, err = gateway.New(gateway.Config{Runtime: rt, Authenticate: gateway.AlwaysOperator, Version: "v0"})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) client() *gateway.Client { return gateway.Local(h.handler) }

// start begins a task and gives its id.
func (h *house) start(t testing.TB, text string) identity.TaskID {
	t.Helper()
	id, err := h.rt.Start(t.Context(), org.TaskSpec{Text: text, Caller: identity.ByOperator("test")})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// work runs a task to its end.
func (h *house) work(t testing.TB, text string) org.Task {
	t.Helper()
	task, err := h.rt.Wait(t.Context(), h.start(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// tool registers a group of one tool in some states.
func (h *house) tool(t *testing.T, group toolgroups.GroupID, name string, states ...string) {
	t.Helper()
	f := func(context.Context, struct{}) (string, error) { return "", nil }
	made, err := tool.New(name, "a tool", f, &tool.Options{States: states})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.rt.Register("test", toolgroups.Group{ID: group, Description: "a group", Tools: []tool.Tool{made}}); err != nil {
		t.Fatal(err)
	}
}

// role makes a role of the operator's.
func (h *house) role(t testing.TB, name string, use ...toolgroups.GroupID) org.Role {
	t.Helper()
	set := toolgroups.Of(use...)
	role, err := h.client().CreateRole(t.Context(), gateway.RoleRequest{Name: name, Use: &set}, false)
	if err != nil {
		t.Fatal(err)
	}
	return role.Role
}

// ask sends a request and gives status and body; path may be preceded by a
// method, and body is sent when not empty.
func (h *house) ask(t testing.TB, path, body string) (int, string) {
	t.Helper()
	answer := h.send(t, path, body, nil)
	return answer.Code, answer.Body.String()
}

func (h *house) send(t testing.TB, path, body string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	method, target, ok := strings.Cut(path, " ")
	if !ok {
		method, target = http.MethodGet, path
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return w
}

// get decodes the answer of a success.
func get[T any](t testing.TB, h *house, path, body string) T {
	t.Helper()
	var v T
	status, text := h.ask(t, path, body)
	if status >= 300 {
		t.Fatalf("%s answered %d: %s", path, status, text)
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v in %s", path, err, text)
	}
	return v
}

// collect gives all items of a sequence.
func collect[T any](t testing.TB, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var list []T
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}

func TestAHandlerNeedsARuntime(t *testing.T) {
	if _, err := gateway.New(gateway.Config{}); err == nil || !strings.Contains(err.Error(), "Config.Runtime") {
		t.Errorf("got %v, want an error that names Config.Runtime", err)
	}
}

func TestHealthAndReadiness(t *testing.T) {
	h := open(t, team)
	if got := get[gateway.Health](t, h, "/healthz", ""); got != (gateway.Health{Status: "ok", Version: "v0"}) {
		t.Errorf("healthz: %+v", got)
	}
	if got := get[gateway.Health](t, h, "/readyz", ""); got.Status != "ready" {
		t.Errorf("readyz: %+v", got)
	}
	persisttest.Close(t, h.store)
	if status, body := h.ask(t, "/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("with a closed store readyz is %d %s, want 503", status, body)
	}
}

func TestToolsAndGroupsAreListedAsRegistered(t *testing.T) {
	h := open(t, team)
	h.tool(t, "desk/phones", "ring", "open")
	group := get[toolgroups.Info](t, h, "/api/v1/tool-groups/desk%2Fphones", "")
	if group.Owner != "test" || group.Count != 1 || group.Tools[0] != "ring" {
		t.Errorf("group %+v", group)
	}
	ring := get[gateway.Tool](t, h, "/api/v1/tools/ring", "")
	if ring.Group != "desk/phones" || ring.Effect != "mutating" || len(ring.States) != 1 || len(ring.Input) == 0 {
		t.Errorf("tool %+v", ring)
	}
	if tools := collect(t, h.client().Tools(t.Context(), "console")); len(tools) != 1 || tools[0].Name != "console_print" {
		t.Errorf("tools of console: %+v", tools)
	}
	if n := len(collect(t, h.client().Groups(t.Context()))); n != 8 {
		t.Errorf("%d groups, want 8", n)
	}
	if n := len(collect(t, h.client().Tools(t.Context(), ""))); n != 19 {
		t.Errorf("%d tools, want 19", n)
	}
}

func TestAnArtifactIsGivenAsWhatWasPut(t *testing.T) {
	h := open(t, team)
	task := h.work(t, "go")
	list := collect(t, h.client().Artifacts(t.Context(), task.ID))
	if len(list) != 1 || list[0].Task != task.ID || list[0].Type != "text" {
		t.Fatalf("artifacts %+v", list)
	}
	answer := h.send(t, "/api/v1/artifacts/artifact:"+list[0].ID+"?content=1", "", nil)
	if got := answer.Body.String(); got != "figures" {
		t.Errorf("content %q, want figures", got)
	}
	if got := answer.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	if got := answer.Header().Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("a browser may guess the type: %q", got)
	}
	if list := collect(t, h.client().Artifacts(t.Context(), "no task")); len(list) != 0 {
		t.Errorf("artifacts of no task: %+v", list)
	}
}
