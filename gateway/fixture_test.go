package gateway_test

import (
	"context"
	"encoding/json"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/metrics"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// decodeError decodes an error response and fails the test for others.
func decodeError(t testing.TB, body string) errcode.Error {
	t.Helper()
	var v struct {
		Error struct {
			Code    errcode.Code
			Message string
			Details map[string]any
		}
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil || v.Error.Code == "" || v.Error.Message == "" {
		t.Fatalf("not an error response: %s", body)
	}
	return errcode.Error{Code: v.Error.Code, Message: v.Error.Message, Details: v.Error.Details}
}

// modelFunc is a model that answers for all agents with a pure function of the
// request.
type modelFunc func(r model.Request) model.Answer

func (m modelFunc) Generate(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a := m(r)
		for _, item := range r.Items {
			if item.Message != nil {
				a.MessagesRead++
			}
		}
		yield(model.Delta{Answer: &a}, nil)
	}
}

// endAnswer returns an answer that ends the turn.
func endAnswer(text string) model.Answer { return model.Answer{Finish: model.FinishEnd, Text: text} }

// toolCallAnswer returns an answer that calls one tool.
func toolCallAnswer(name string, args any) model.Answer {
	text, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{Name: name, Args: text}}}
}

// lastResultField returns a field of the last tool result.
func lastResultField(r model.Request, field string) string {
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

// countAnswers returns the number of the agent's answers so far.
func countAnswers(r model.Request) int {
	n := 0
	for _, item := range r.Items {
		if item.Answer != nil {
			n++
		}
	}
	return n
}

// teamModel makes root spawn a clerk. The clerk stores an artifact, calls a
// tool that it does not have, and reports the error; then root answers "done".
func teamModel(r model.Request) model.Answer {
	brief := map[string]any{"objective": "o", "constraints": []string{}, "inputs": "i", "outputs": "o", "completion_criteria": "c"}
	switch step := countAnswers(r); {
	case r.Self.Role == "clerk" && step == 0:
		return toolCallAnswer("put_artifact", map[string]any{"type": "text", "content": "figures"})
	case r.Self.Role == "clerk" && step == 1:
		return toolCallAnswer("run_command", map[string]any{"command": "true"})
	case r.Self.Role == "clerk":
		return endAnswer(lastResultField(r, "error"))
	case step == 0:
		return toolCallAnswer("create_role", map[string]any{"name": "clerk", "rolePrompt": "file", "toolGroups": []string{"artifact", "workspace"}})
	case step == 1:
		return toolCallAnswer("spawn_agent_with_task", map[string]any{"roleId": lastResultField(r, "id"), "taskBrief": brief, "initialMessage": "go"})
	}
	for _, item := range r.Items {
		if m := item.Message; m != nil && m.From != "user" {
			return endAnswer("done")
		}
	}
	return model.Answer{Finish: model.FinishWait}
}

// fixture is a runtime and a gateway for it.
type fixture struct {
	rt      *runtime.Runtime
	store   *persist.Store
	handler http.Handler
}

// newFixture opens a fixture whose agents are run by m.
func newFixture(t testing.TB, m modelFunc) *fixture {
	t.Helper()
	return newFixtureWith(t, m)
}

func newFixtureWith(t testing.TB, m model.Model) *fixture {
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
	if err := builtin.Register(groups, rt.ToolHost(), builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	f := &fixture{rt: rt, store: store}
	f.handler, err = gateway.New(gateway.Config{Runtime: rt, Authenticate: gateway.AlwaysOperator, Version: "v0"})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) client() *gateway.Client { return gateway.Local(f.handler) }

// start starts a task and returns its id.
func (f *fixture) start(t testing.TB, text string) identity.TaskID {
	t.Helper()
	id, err := f.rt.Start(t.Context(), org.TaskSpec{Text: text, Caller: identity.ByOperator("test")})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// run runs a task to its end.
func (f *fixture) run(t testing.TB, text string) org.Task {
	t.Helper()
	task, err := f.rt.Wait(t.Context(), f.start(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// addTool registers a group with one tool that is available in some states.
func (f *fixture) addTool(t *testing.T, group toolgroups.GroupID, name string, states ...string) {
	t.Helper()
	handler := func(context.Context, struct{}) (string, error) { return "", nil }
	made, err := tool.New(name, "a tool", handler, &tool.Options{States: states})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.rt.Register("test", toolgroups.Group{ID: group, Description: "a group", Tools: []tool.Tool{made}}); err != nil {
		t.Fatal(err)
	}
}

// addRole creates a role as the operator.
func (f *fixture) addRole(t testing.TB, name string, use ...toolgroups.GroupID) org.Role {
	t.Helper()
	set := toolgroups.Of(use...)
	role, err := f.client().CreateRole(t.Context(), gateway.RoleRequest{Name: name, Use: &set}, false)
	if err != nil {
		t.Fatal(err)
	}
	return role.Role
}

// do sends a request and returns status and body. path may be preceded by a
// method.
func (f *fixture) do(t testing.TB, path, body string) (int, string) {
	t.Helper()
	answer := f.send(t, path, body, nil)
	return answer.Code, answer.Body.String()
}

func (f *fixture) send(t testing.TB, path, body string, header http.Header) *httptest.ResponseRecorder {
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
	f.handler.ServeHTTP(w, r)
	return w
}

// getJSON sends a request and decodes the answer; it fails the test for an
// error.
func getJSON[T any](t testing.TB, f *fixture, path, body string) T {
	t.Helper()
	var v T
	status, text := f.do(t, path, body)
	if status >= 300 {
		t.Fatalf("%s answered %d: %s", path, status, text)
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v in %s", path, err, text)
	}
	return v
}

// collect returns all items of a sequence.
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

// serveOn serves a handler on l until the test ends.
func serveOn(t testing.TB, l net.Listener, handler http.Handler) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- gateway.Serve(ctx, l, handler) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

// newMetrics returns the metrics of a runtime that is created later, and their
// handler.
func newMetrics(t *testing.T, groups *toolgroups.Manager, rt **runtime.Runtime) (*metrics.Metrics, http.Handler) {
	t.Helper()
	reg := prometheus.NewRegistry()
	m, err := metrics.New(reg, metrics.Config{Groups: groups, Load: func() metrics.Load { return metrics.Load((*rt).Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	return m, metrics.Handler(reg, nil)
}

type obj = map[string]any

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// newFixtureIn opens a fixture with data and workspaces below dir. The test
// must close it.
func newFixtureIn(t *testing.T, dir string, m modelFunc) *fixture {
	t.Helper()
	f := &fixture{store: persisttest.OpenIn(t, filepath.Join(dir, "data"))}
	groups := toolgroups.NewManager(toolgroups.Reserved()...)
	counted, figures := newMetrics(t, groups, &f.rt)
	rt, err := runtime.New(runtime.Config{
		Store: f.store, Groups: groups, Workspaces: filepath.Join(dir, "workspaces"), Observe: counted.Observe,
		Model: func(string) (model.Model, error) { return m, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	f.rt = rt
	if err := builtin.Register(groups, rt.ToolHost(), builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	if f.handler, err = gateway.New(gateway.Config{Runtime: rt, Authenticate: gateway.AlwaysOperator, Metrics: figures, OnRefused: counted.Refused}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) close(t *testing.T) {
	t.Helper()
	f.rt.Close()
	persisttest.Close(t, f.store)
}

// serveSocket serves a fixture on a socket and returns its directory.
func serveSocket(t *testing.T, f *fixture) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l, err := gateway.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- gateway.Serve(ctx, l, f.handler) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return dir
}

// overBothTransports runs a test with a client over a socket and with one in
// process.
func overBothTransports(t *testing.T, test func(t *testing.T, dial func(*fixture) *gateway.Client)) {
	t.Run("socket", func(t *testing.T) {
		test(t, func(f *fixture) *gateway.Client {
			client, err := gateway.Dial(serveSocket(t, f))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close() })
			return client
		})
	})
	t.Run("local", func(t *testing.T) { test(t, (*fixture).client) })
}

func (f *fixture) addGroup(t *testing.T, id toolgroups.GroupID, tools ...tool.Tool) {
	t.Helper()
	if _, err := f.rt.Register("test", toolgroups.Group{ID: id, Description: "a group", Tools: tools}); err != nil {
		t.Fatal(err)
	}
}
