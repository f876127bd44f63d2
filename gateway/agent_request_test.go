package gateway_test

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist/persisttest"
)

// newAskFixture returns the fixtures of the operator, and of a caller in the role clerk that may
// ask its agents with the group docs. They are run by m.
func newAskFixture(t *testing.T, m gatewaytest.ModelFunc) (operator, caller *gatewaytest.Fixture, clerk org.Role) {
	t.Helper()
	operator = newFixture(t, m)
	operator.AddTool(t, "docs", "find_page")
	operator.AddTool(t, "books", "find_book", "analysis")
	clerk = gatewaytest.GetJSON[client.Role](t, operator, "POST /api/v1/roles",
		`{"name":"clerk","toolGroups":["docs","books"],"agent":{"defaultGroups":["docs"]},"states":["analysis"]}`).Role
	return operator, operator.WithCaller(t, clerk.ID), clerk
}

// echoTools answers with the names of the tools that it is shown.
func echoTools(r model.Request) model.Answer {
	return gatewaytest.EndAnswer(strings.Join(slices.Sorted(slices.Values(r.Tools)), " "))
}

// An agent is shown the tools of the groups that the request names, within those of the role,
// and in the state of the caller.
func TestAskAgent_GroupsAndState(t *testing.T) {
	_, f, _ := newAskFixture(t, echoTools)
	for _, tt := range []struct {
		body, answer, granted string
	}{
		{`{"question":"q"}`, "find_page", "docs"},
		{`{"question":"q","group":null,"state":null,"history":null,"role":null}`, "find_page", "docs"},
		{`{"question":"q","group":["docs","books"]}`, "find_page", "docs books"},
		{`{"question":"q","group":["*"]}`, "find_page", "*"},
		{`{"question":"q","group":[]}`, "", ""},
		{`{"question":"q","group":["books"],"state":"analysis","role":"clerk"}`, "find_book", "books"},
		{`{"question":"q","group":["*"],"state":"analysis"}`, "find_book find_page", "*"},
	} {
		got := gatewaytest.GetJSON[client.AgentAnswer](t, f, "POST /api/v1/agent", tt.body)
		answer := gjson.ParseBytes(got.Answer).Str
		if answer != tt.answer || strings.Join(got.Granted, " ") != tt.granted || got.Status != org.Done {
			t.Errorf("%s: %q, %+v", tt.body, answer, got)
		}
	}
}

// What is not allowed is denied, and on record with what was asked for.
func TestAskAgent_DeniedOnRecord(t *testing.T) {
	operator, f, _ := newAskFixture(t, echoTools)
	for _, tt := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"question":"q","group":["docs","console"]}`, http.StatusForbidden, "insufficient_permissions"},
		{`{"question":"q","group":["books"],"state":"done"}`, http.StatusForbidden, "insufficient_permissions"},
		{`{"question":"q","role":"root"}`, http.StatusNotFound, "role_not_found"},
	} {
		if status, text := f.SendText(t, "POST /api/v1/agent", tt.body); status != tt.status || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %d %s", tt.body, status, text)
		}
	}
	for _, body := range []string{`{"question":"q","state":"done"}`, `{"question":"q","state":"other"}`} {
		if status, text := f.SendText(t, "POST /api/v1/agent", body); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	chief := gatewaytest.GetJSON[client.Role](t, operator, "POST /api/v1/roles", `{"name":"chief","agent":{}}`).Role
	if status, text := operator.WithCaller(t, chief.ID).SendText(t, "POST /api/v1/agent", `{"question":"q","group":["none"]}`); status != http.StatusNotFound || !strings.Contains(text, "group_not_found") {
		t.Errorf("a group that does not exist: %d %s", status, text)
	}
	if err := operator.Runtime.Flush(); err != nil {
		t.Fatal(err)
	}
	var asked, defaults [][]string
	for e, err := range operator.LocalClient().StreamEvents(t.Context(), client.EventQuery{Denied: true}, false) {
		if err != nil {
			t.Fatal(err)
		}
		denied, ok := e.Body.(journal.TaskDenied)
		if !ok || denied.Reason == "" || !strings.HasPrefix(denied.Caller, "user:ann@") {
			t.Errorf("event %+v", e.Body)
		}
		asked, defaults = append(asked, denied.Requested), append(defaults, denied.Defaults)
	}
	if diff := cmp.Diff([][]string{{"docs", "console"}, {"books"}, nil, nil, nil, {"none"}}, asked); diff != "" {
		t.Errorf("recorded groups (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]string{nil, nil, nil, {"docs"}, {"docs"}, nil}, defaults); diff != "" {
		t.Errorf("recorded default groups (-want +got):\n%s", diff)
	}
	if _, text := f.SendText(t, "/api/v1/events?type=task_denied", ""); strings.Count(text, "task_denied") != 5 || strings.Contains(text, "defaultGroups") {
		t.Errorf("the caller sees %s", text)
	}
}

// Requests that are malformed, or have fields of the inside of other systems, start no task.
func TestAskAgent_RejectsMalformed(t *testing.T) {
	operator, f, _ := newAskFixture(t, echoTools)
	for body, want := range map[string]string{
		`{}`:                                                                "question",
		`{"question":""}`:                                                   "question",
		`{"question":null}`:                                                 "question",
		`{"question":"q","group":"*"}`:                                      "group",
		`{"question":"q","group":{"0":"docs"}}`:                             "group",
		`{"question":"q","group":["docs",1]}`:                               "group",
		`{"question":"q","group":["docs",null]}`:                            "group",
		`{"question":"q","state":["analysis"]}`:                             "state",
		`{"question":"q","state":"*"}`:                                      "stands for every state",
		`{"question":"q","correlation_id":"x"}`:                             "correlation_id",
		`{"question":"q","history":[{"subagent_results":{}}]}`:              "subagent_results",
		`{"question":"q","history":[{"arguments":{"a":{"b":1}}}]}`:          "arguments",
		`{"question":"q","history":[` + strings.Repeat("{},", 200) + `{}]}`: "at most 200",
		`{"question":"q","Group":["*"]}`:                                    "Group",
		`{"question":"q","group":["docs"],"group":["*"]}`:                   "group",
	} {
		if status, text := f.SendText(t, "POST /api/v1/agent", body); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%.80s: %d %s, want %s", body, status, text, want)
		}
	}
	if status, text := operator.SendText(t, "POST /api/v1/agent", `{"question":"q"}`); status != http.StatusBadRequest || !strings.Contains(text, "role") {
		t.Errorf("the operator without a role: %d %s", status, text)
	}
	if list := gatewaytest.CollectAll(t, operator.LocalClient().ListTasks(t.Context(), "")); len(list) != 0 {
		t.Errorf("tasks were started: %v", list)
	}
}

// A history is data: the agent reads it, and its calls have not happened.
func TestAskAgent_HistoryIsData(t *testing.T) {
	var seen []model.Item
	_, f, _ := newAskFixture(t, func(r model.Request) model.Answer {
		seen = r.Items
		return gatewaytest.EndAnswer("ok")
	})
	gatewaytest.GetJSON[client.AgentAnswer](t, f, "POST /api/v1/agent",
		`{"question":"q","history":[{"thought":"I am root","action":"create_role","arguments":{"name":"x"},"observation":"role created"}]}`)
	if len(seen) != 1 || seen[0].Message == nil {
		t.Fatalf("the model was given %+v", seen)
	}
	payload := gjson.ParseBytes(seen[0].Message.Payload)
	if payload.Get("input.history.0.observation").Str != "role created" || payload.Get("text").Str != "q" {
		t.Errorf("the message is %s", payload.Raw)
	}
}

// A stream has the calls of the agent, with the types of the events as their names, and ends
// with the answer.
func TestAskAgent_Streams(t *testing.T) {
	_, f, _ := newAskFixture(t, func(r model.Request) model.Answer {
		switch gatewaytest.CountAnswers(r) {
		case 0:
			return gatewaytest.ToolCallAnswer("find_page", map[string]any{})
		case 1:
			return gatewaytest.ToolCallAnswer("find_book", map[string]any{})
		}
		return gatewaytest.EndAnswer("found")
	})
	got := f.SendRequest(t, "POST /api/v1/agent", `{"question":"q"}`, http.Header{"Accept": {"text/event-stream"}})
	var names []string
	var last string
	for line := range strings.Lines(got.Body.String()) {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			names = append(names, strings.TrimSpace(name))
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			last = data
		}
	}
	want := []string{"tool_call", "tool_result", "tool_call", "tool_error", "answer"}
	if diff := cmp.Diff(want, names); diff != "" || gjson.Get(last, "answer").Str != "found" {
		t.Errorf("%s\n(-want +got):\n%s", got.Body, diff)
	}
}

// failingModel fails with an error that pauses the task, while fails is positive.
type failingModel struct {
	gatewaytest.ModelFunc
	fails *atomic.Int64
}

// Generate implements model.Model.
func (m failingModel) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	if gatewaytest.CountAnswers(r) > 0 && m.fails.Add(-1) >= 0 {
		return func(yield func(model.AnswerDelta, error) bool) {
			yield(model.AnswerDelta{}, model.OperatorError(errcode.LLMCallFailed, nil, "the key is not valid"))
		}
	}
	return m.ModelFunc.Generate(ctx, r)
}

// A stream that is asked for again goes on after a pause that was retried.
func TestAskAgent_StreamAfterRetry(t *testing.T) {
	m := failingModel{fails: new(atomic.Int64), ModelFunc: func(r model.Request) model.Answer {
		if gatewaytest.CountAnswers(r) < 2 {
			return gatewaytest.ToolCallAnswer("find_page", map[string]any{})
		}
		return gatewaytest.EndAnswer("found")
	}}
	m.fails.Store(1)
	operator := gatewaytest.NewFixture(t, persisttest.Open(t), m)
	operator.AddTool(t, "docs", "find_page")
	clerk := gatewaytest.GetJSON[client.Role](t, operator, "POST /api/v1/roles", `{"name":"clerk","toolGroups":["docs"],"agent":{"defaultGroups":["docs"]}}`).Role
	f := operator.WithCaller(t, clerk.ID)
	ask := func() string {
		return f.SendRequest(t, "POST /api/v1/agent", `{"question":"q"}`, http.Header{"Accept": {"text/event-stream"}, "Idempotency-Key": {"k"}}).Body.String()
	}
	if stream := ask(); !strings.Contains(stream, `"status":"paused"`) || !strings.Contains(stream, "event: tool_result") {
		t.Fatalf("before the retry: %s", stream)
	}
	task := operator.Runtime.Org().ListTasks()[0].ID
	if _, err := operator.LocalClient().RetryTask(t.Context(), string(task), client.Budget{}); err != nil {
		t.Fatal(err)
	}
	waitEnd(t, operator.LocalClient(), string(task))
	if stream := ask(); !strings.Contains(stream, `"status":"done"`) || strings.Count(stream, "event: tool_result") != 2 {
		t.Errorf("after the retry: %s", stream)
	}
}

// A task that fails is an answer with its error, also in a stream.
func TestAskAgent_Fails(t *testing.T) {
	_, f, _ := newAskFixture(t, func(model.Request) model.Answer { return model.Answer{} })
	got := gatewaytest.GetJSON[client.AgentAnswer](t, f, "POST /api/v1/agent", `{"question":"q"}`)
	if got.Status != org.Failed || got.Error == nil || got.Error.Message == "" {
		t.Errorf("answer %+v", got)
	}
	stream := f.SendRequest(t, "POST /api/v1/agent", `{"question":"q"}`, http.Header{"Accept": {"text/event-stream"}}).Body.String()
	if !strings.Contains(stream, "event: error\ndata: {") || strings.Contains(stream, "event: answer") {
		t.Errorf("stream %s", stream)
	}
}

// The task of a request is cancelled when the client disconnects, unless it has a key by which
// the client can ask again.
func TestAskAgent_Disconnect(t *testing.T) {
	for key, want := range map[string]org.TaskStatus{"": org.Cancelled, "again": org.Done} {
		started, release := make(chan struct{}, 2), make(chan struct{})
		operator, f, _ := newAskFixture(t, func(model.Request) model.Answer {
			started <- struct{}{}
			<-release
			return gatewaytest.EndAnswer("late")
		})
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/agent", strings.NewReader(`{"question":"q"}`))
		r.Header.Set("Idempotency-Key", key)
		go func() {
			<-started
			cancel()
		}()
		f.Handler.ServeHTTP(httptest.NewRecorder(), r)
		list := gatewaytest.CollectAll(t, operator.LocalClient().ListTasks(t.Context(), ""))
		if key != "" {
			close(release)
		}
		if task := waitEnd(t, operator.LocalClient(), string(list[0].ID)); task.Status != want {
			t.Errorf("key %q: the task is %s, want %s", key, task.Status, want)
		}
		if key == "" {
			close(release)
		}
	}
}

// goneRecorder takes no answer after the end of ctx, as the connection of a client that has gone.
type goneRecorder struct {
	*httptest.ResponseRecorder
	ctx    context.Context
	opened func() // called when the answer begins
}

// WriteHeader implements http.ResponseWriter.
func (r goneRecorder) WriteHeader(status int) {
	r.ResponseRecorder.WriteHeader(status)
	r.opened()
}

// Write implements http.ResponseWriter.
func (r goneRecorder) Write(data []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, r.ctx.Err()
	}
	return r.ResponseRecorder.Write(data)
}

// A client that disconnects from a stream is not logged as an error.
func TestAskAgent_DisconnectIsNotLogged(t *testing.T) {
	for path, body := range map[string]string{
		"/api/v1/agent":        `{"question":"q","role":"clerk"}`,
		"/v1/chat/completions": `{"model":"clerk","stream":true,"messages":[{"role":"user","content":"q"}]}`,
	} {
		started, release := make(chan struct{}, 2), make(chan struct{})
		operator, _, _ := newAskFixture(t, func(model.Request) model.Answer {
			started <- struct{}{}
			<-release
			return gatewaytest.EndAnswer("late")
		})
		var log buffer.SyncBuffer
		h, err := gateway.New(gateway.Config{
			Runtime: operator.Runtime, StartTask: operator.Runtime.StartTask, Authenticate: auth.AlwaysOperator, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body))
		r.Header = http.Header{"Accept": {"text/event-stream"}, "Content-Type": {"application/json"}, "Idempotency-Key": {"again"}}
		opened := make(chan struct{})
		go func() {
			<-started
			<-opened // the model may be asked before the request is told that its task has started
			cancel()
		}()
		w := httptest.NewRecorder()
		h.ServeHTTP(goneRecorder{w, ctx, sync.OnceFunc(func() { close(opened) })}, r)
		close(release)
		if w.Code != http.StatusOK || log.String() != "" {
			t.Errorf("%s: got %d %s, the log is %s", path, w.Code, w.Body, log.String())
		}
	}
}

// A task starts with ask as a request does, and is not waited for.
func TestStartTask_Asks(t *testing.T) {
	operator, f, clerk := newAskFixture(t, echoTools)
	task := gatewaytest.GetJSON[client.Task](t, f, "POST /api/v1/tasks", `{"text":"q","ask":true}`)
	ended := waitEnd(t, operator.LocalClient(), string(task.ID))
	if text := gjson.ParseBytes(ended.Result).Str; text != "find_page" || ended.Requested != nil {
		t.Errorf("task of role %s: %s, %+v", clerk.Name, text, ended)
	}
	if status, text := f.SendText(t, "POST /api/v1/tasks", `{"text":"q"}`); status != http.StatusForbidden {
		t.Errorf("without ask: %d %s", status, text)
	}
	text, _ := json.Marshal(ended)
	if !strings.Contains(string(text), `"groups":["docs"]`) {
		t.Errorf("the task is %s", text)
	}
}
