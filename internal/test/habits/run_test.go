// Package habits_test shows habits of models and their servers to the whole runtime: an
// endpoint speaks the protocols of providers, and an agent works with it. What a user sees
// is a table of docs/models.md.
package habits_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	claude "github.com/rolecall/rolecall/model/anthropic"
	amazon "github.com/rolecall/rolecall/model/bedrock"
	google "github.com/rolecall/rolecall/model/gemini"
	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/openai/responses"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/retry"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// clients are the clients of the protocols.
var clients = map[string]func(provider.Config) *provider.Model{
	openAI: openai.New, openAIResponses: responses.New, anthropic: claude.New, gemini: google.New, bedrock: amazon.New,
}

// endpoint is a server of one protocol.
type endpoint struct {
	protocol string
	stream   bool

	mu      sync.Mutex
	replies []reply
	asked   int // requests so far
}

// play sets the replies of the next requests.
func (e *endpoint) play(replies []reply) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.replies, e.asked = replies, 0
}

// requests returns the number of requests since play.
func (e *endpoint) requests() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

// next returns the reply to the next request.
func (e *endpoint) next() reply {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked++
	return e.replies[min(e.asked, len(e.replies))-1]
}

// ServeHTTP implements http.Handler.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	answer := e.next()
	if answer.status != 0 {
		w.WriteHeader(answer.status)
	}
	body := answer.encode(e.protocol, e.stream)
	body = body[:max(0, len(body)-answer.lost)]
	for size := max(answer.bytes, 0); size > 0 && len(body) > size; body = body[size:] {
		io.WriteString(w, body[:size])
		w.(http.Flusher).Flush()
	}
	io.WriteString(w, body)
	if answer.lost > 0 {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler) // closes the connection
	}
}

// fixture is a runtime whose agents ask an endpoint.
type fixture struct {
	*runtime.Runtime
	*endpoint
	store *persist.Store
}

// openFixture opens a runtime with the roles clerk, which has the tool look, and keeper, which
// has unlock.
func openFixture(t *testing.T, protocol string, stream bool) *fixture {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "habits")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	fx := &fixture{endpoint: &endpoint{protocol: protocol, stream: stream}, store: persisttest.OpenIn(t, dir)}
	server := httptest.NewServer(fx.endpoint)
	t.Cleanup(server.Close)
	m := retry.New(clients[protocol](provider.Config{Name: "main", Model: "test-1", BaseURL: server.URL, Stream: stream, Window: 100_000}),
		retry.Config{Name: "main", InitialBackoff: time.Nanosecond, MaxBackoff: time.Microsecond})
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	fx.Runtime, err = runtime.New(runtime.Config{
		Store: fx.store, Groups: groups, Workspaces: dir, Model: func(string) (model.Model, error) { return m, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fx.Close() })
	fx.addRole(t, groups, "clerk", "look")
	fx.addRole(t, groups, "keeper", "unlock")
	return fx
}

// addRole adds a role with a group of its name, which has one tool.
func (fx *fixture) addRole(t *testing.T, groups *toolgroups.Manager, name, toolName string) {
	t.Helper()
	type place struct {
		At string `json:"at"`
	}
	own, err := tool.New(toolName, "Look at a place.", func(_ context.Context, p place) (string, error) { return "nothing at " + p.At, nil }, &tool.Options{Effect: tool.ReadOnly})
	if err == nil {
		_, err = grouptest.RegisterGroup(groups, "test", toolgroups.Group{ID: toolgroups.GroupID(name), Tools: []tool.Tool{own}})
	}
	if err == nil {
		use := toolgroups.SetOf(toolgroups.GroupID(name))
		_, err = fx.CreateRole(t.Context(), tool.Call{ID: identity.CallID(identity.NewID()), By: identity.ByOperator("test")}, org.RoleSpec{Name: name, Use: &use})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// outcome is what a user sees of a task.
type outcome struct {
	calls    string
	end      string
	requests int
}

// run runs a task with an endpoint that sends these replies.
func (fx *fixture) run(t *testing.T, replies []reply) (o outcome) {
	t.Helper()
	fx.play(replies)
	id, err := fx.StartTask(t.Context(), org.TaskSpec{Text: "Look for the needle.", Role: "clerk", Caller: identity.ByOperator("test")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	task, err := fx.WaitTask(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	o.requests = fx.requests()
	o.calls, o.end = fx.callsOf(t, task), endText(task)
	if used, err := fx.TaskUsage(ctx, id); err != nil || used.Estimated {
		o.end += ", usage estimated"
	}
	return o
}

// callsOf lists the calls of a task with their errors.
func (fx *fixture) callsOf(t *testing.T, task org.Task) string {
	t.Helper()
	var list []string
	for e, err := range fx.WatchTask(t.Context(), task.ID, task.FirstSeq) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case journal.ToolResult:
			list = append(list, "`"+b.Tool+"`")
		case journal.ToolError:
			list = append(list, fmt.Sprintf("`%s`: `%s`", b.Tool, b.Code))
		}
		if fx.EndsTask(e) {
			break
		}
	}
	return strings.Join(list, ", ")
}

// endText describes how a task ended.
func endText(task org.Task) string {
	switch {
	case task.Error != nil:
		return fmt.Sprintf("%s: `%s`: %s", task.Status, task.Error.Code, task.Error.Message)
	case task.Pause != nil:
		return fmt.Sprintf("%s: `%s`: %s", task.Status, task.Pause.Code, task.Pause.Message)
	}
	var text string
	json.Unmarshal(task.Result, &text)
	text = fmt.Sprintf("%s: “%s”", task.Status, textutil.OneLine(text, 60))
	if task.Incomplete != "" {
		text += fmt.Sprintf(", `incomplete: %s`", task.Incomplete)
	}
	return text
}
