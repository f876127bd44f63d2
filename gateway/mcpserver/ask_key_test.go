package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist/persisttest"
)

// blockingModel returns a model that reports each of its calls and then waits for
// release.
func blockingModel() (m modelFunc, generating, release chan struct{}) {
	generating, release = make(chan struct{}, 16), make(chan struct{})
	return func(ctx context.Context, _ model.Request) model.Answer {
		generating <- struct{}{}
		select {
		case <-release:
			return model.Answer{Finish: model.FinishEnd, Text: "done"}
		case <-ctx.Done():
			return model.Answer{}
		}
	}, generating, release
}

// callAsk calls ask_organization and returns its text.
func callAsk(t *testing.T, session *sdk.ClientSession, args any) string {
	t.Helper()
	got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: mcpserver.AskName, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	return textOf(got)
}

// The same task with the same key of one caller is one task. Another caller's key is
// another, and the key of another task is an error.
func TestAsk_KeyNamesOneTask(t *testing.T) {
	f := openFixture(t)
	ann, bob := f.connect(t, "ann@boss", "/mcp", "", nil), f.connect(t, "bob@boss", "/mcp", "", nil)
	for range 3 {
		if got := callAsk(t, ann, obj{"task": "x", "idempotencyKey": "k"}); got != "done" {
			t.Errorf("got %s", got)
		}
	}
	if n := len(f.rt.Org().ListTasks()); n != 1 {
		t.Errorf("three calls with one key started %d tasks", n)
	}
	if got := callAsk(t, ann, obj{"task": "y", "idempotencyKey": "k"}); !strings.Contains(got, `"conflict"`) {
		t.Errorf("another task with the key: %s", got)
	}
	callAsk(t, bob, obj{"task": "x", "idempotencyKey": "k"})
	callAsk(t, ann, obj{"task": "x", "idempotencyKey": "l"})
	callAsk(t, ann, obj{"task": "x"})
	if n := len(f.rt.Org().ListTasks()); n != 4 {
		t.Errorf("got %d tasks, want 4", n)
	}
	id := f.rt.Org().ListTasks()[0].ID
	if got := callAsk(t, ann, obj{"taskId": id}); got != "done" {
		t.Errorf("by id: %s", got)
	}
	for _, other := range []string{string(id), "none"} {
		if got := callAsk(t, bob, obj{"taskId": other}); !strings.Contains(got, `"task_not_found"`) {
			t.Errorf("task %s of another caller: %s", other, got)
		}
	}
	for _, args := range []any{raw(`{"task":"x","taskId":"y"}`), raw(`{"taskId":"y","idempotencyKey":"k"}`), raw(`{"idempotencyKey":"k"}`), raw(`{"task":"x","idempotencyKey":""}`)} {
		if got := callAsk(t, ann, args); !strings.Contains(got, `"invalid_arguments"`) {
			t.Errorf("%s: %s", args, got)
		}
	}
}

// A task with a key goes on when its client is gone, and the same call finds it. The
// client can still cancel it.
func TestAsk_KeySurvivesLostConnection(t *testing.T) {
	m, generating, release := blockingModel()
	f := fixtureConfig{model: m}.open(t)
	lost := func(args string) identity.TaskID {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask_organization","arguments":` + args + `,` + statelessMeta + `}}`
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader(body))
		for name, value := range statelessHeader("tools/call", mcpserver.AskName) {
			r.Header.Set(name, value)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		served := make(chan error, 1)
		go func() {
			served <- f.server.Serve(httptest.NewRecorder(), r, identity.ByCaller("ann", f.roles["boss"]))
		}()
		waitFor(t, "the model is called", generating)
		cancel()
		if err := <-served; err != nil {
			t.Fatal(err)
		}
		list := f.rt.Org().ListTasks()
		return list[len(list)-1].ID
	}
	kept, dropped := lost(`{"task":"x","idempotencyKey":"k"}`), lost(`{"task":"x"}`)
	if task, _ := f.rt.WaitTask(t.Context(), dropped); task.Status != org.Cancelled {
		t.Errorf("the task without a key is %s", task.Status)
	}
	session := f.connect(t, "ann@boss", "/mcp", "2025-11-25", nil)
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = session.CallTool(ctx, &sdk.CallToolParams{Name: mcpserver.AskName, Arguments: obj{"task": "y", "idempotencyKey": "l"}})
	}()
	waitFor(t, "the model is called", generating)
	list := f.rt.Org().ListTasks()
	cancel()
	if task, _ := f.rt.WaitTask(t.Context(), list[len(list)-1].ID); task.Status != org.Cancelled {
		t.Errorf("the task that its client cancelled is %s", task.Status)
	}
	waitFor(t, "the client returns", answered)
	close(release)
	if got := callAsk(t, session, obj{"task": "x", "idempotencyKey": "k"}); got != "done" {
		t.Errorf("the same call again: %s", got)
	}
	if task, _ := f.rt.WaitTask(t.Context(), kept); task.Status != org.Done {
		t.Errorf("the task with a key is %s", task.Status)
	}
}

// Over lines, a cancellation ends the task of a call with a key, and the end of the connection does not.
func TestAsk_KeyOverLines(t *testing.T) {
	m, generating, release := blockingModel()
	f := fixtureConfig{model: m}.open(t)
	begin := func(key string) (task identity.TaskID, session *sdk.ClientSession, pipes *stdioPipes, cancel context.CancelFunc) {
		pipes = f.serveStdio(t, identity.ByCaller("ann", f.roles["boss"]), "boss")
		session = pipes.client(t, "2025-11-25", nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, _ = session.CallTool(ctx, &sdk.CallToolParams{Name: mcpserver.AskName, Arguments: obj{"task": "x", "idempotencyKey": key}})
		}()
		waitFor(t, "the model is called", generating)
		list := f.rt.Org().ListTasks()
		return list[len(list)-1].ID, session, pipes, cancel
	}
	cancelled, _, _, cancel := begin("k")
	cancel()
	if task, _ := f.rt.WaitTask(t.Context(), cancelled); task.Status != org.Cancelled {
		t.Errorf("the task that its client cancelled is %s", task.Status)
	}
	kept, _, pipes, cancel := begin("l")
	defer cancel()
	pipes.stop()
	<-pipes.done
	close(release)
	if task, _ := f.rt.WaitTask(t.Context(), kept); task.Status != org.Done {
		t.Errorf("the task whose client is gone is %s", task.Status)
	}
}

// followedStore reports after which event a task is followed.
type followedStore struct {
	journal.Store
	after chan uint64
}

func (s followedStore) FollowTask(ctx context.Context, task identity.TaskID, after uint64, wait bool) iter.Seq2[journal.Event, error] {
	if wait {
		s.after <- after
	}
	return s.Store.FollowTask(ctx, task, after, wait)
}

// A task is followed from its first event on, not through the whole log. The first
// message of progress names the task.
func TestAsk_FollowsOnlyItsTask(t *testing.T) {
	store := followedStore{persisttest.Open(t), make(chan uint64, 16)}
	f := fixtureConfig{store: store}.open(t)
	notes := make(chan *sdk.ProgressNotificationParams, 100)
	session := f.connect(t, "ann@boss", "/mcp", "", &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { notes <- r.Params },
	})
	for call := range 3 {
		before := store.LastSeq()
		params, token := askParams("x"), fmt.Sprint("call ", call)
		params.SetProgressToken(token)
		if _, err := session.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		if after := <-store.after; after < before {
			t.Errorf("it is followed from event %d, and began after %d", after, before)
		}
		list := f.rt.Org().ListTasks()
		first := <-notes
		for first.ProgressToken != token { // late, of a call before
			first = <-notes
		}
		if want := "task " + string(list[len(list)-1].ID); first.Message != want {
			t.Errorf("the first message is %q, want %q", first.Message, want)
		}
	}
}

// The schema of the arguments says what each is for.
func TestAsk_SchemaDescribesArguments(t *testing.T) {
	f := openFixture(t)
	list, err := f.connect(t, "ann@boss", "/mcp", "", nil).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if tool.Name != mcpserver.AskName {
			continue
		}
		text, err := json.Marshal(tool.InputSchema)
		for _, name := range []string{"task", "idempotencyKey", "taskId"} {
			if err != nil || !strings.Contains(string(text), `"`+name+`":{"`) {
				t.Errorf("there is no %s in %s (%v)", name, text, err)
			}
		}
		return
	}
	t.Error("the tool is not listed")
}
