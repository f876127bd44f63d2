package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/goleak"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/retry"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

var chaosTime = flag.Duration("chaos", 3*time.Second, "how long TestChaos_EndsAllTasks starts new tasks on an unreliable model")

// chaosServer is a server of the OpenAI protocol that answers correctly or injects one
// of serverFaults. Each complete answer has a unique number, which is its count of
// input tokens.
type chaosServer struct {
	*httptest.Server
	closing     context.Context // done when the server closes its open requests
	served      atomic.Int64
	faultCounts sync.Map // number of occurrences by name
}

// firstNumber is greater than the token count of any real request.
const firstNumber = 1_000_000

// serverFault is a fault of a provider or an invalid answer of a model.
type serverFault struct {
	name string
	do   func(s *chaosServer, w http.ResponseWriter, r *http.Request)
}

// serverFaults are the faults that occur at random.
var serverFaults = []serverFault{
	{"429 with Retry-After", func(_ *chaosServer, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "0.02")
		http.Error(w, `{"error":{"message":"slow down"}}`, http.StatusTooManyRequests)
	}},
	{"500", func(_ *chaosServer, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"oops"}}`, http.StatusInternalServerError)
	}},
	{"529", func(_ *chaosServer, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(529) }},
	{"no answer", func(s *chaosServer, _ http.ResponseWriter, r *http.Request) { s.holdOpen(r) }},
	{"reset before the answer", func(_ *chaosServer, w http.ResponseWriter, _ *http.Request) { dropConnection(w) }},
	{"reset in the middle", func(_ *chaosServer, w http.ResponseWriter, _ *http.Request) {
		writeChunk(w, `{"choices":[{"index":0,"delta":{"content":"I will "}}]}`)
		dropConnection(w)
	}},
	{"half open", func(s *chaosServer, w http.ResponseWriter, r *http.Request) {
		writeChunk(w, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"count","arguments":"{\"n\""}}]}}]}`)
		s.holdOpen(r)
	}},
	{"stream without an end", func(_ *chaosServer, w http.ResponseWriter, _ *http.Request) {
		writeChunk(w, `{"choices":[{"index":0,"delta":{"content":"and so"}}]}`)
	}},
	{"invalid JSON", func(_ *chaosServer, w http.ResponseWriter, _ *http.Request) { writeChunk(w, `{"choices":[{"delta":`) }},
	{"empty answer", func(s *chaosServer, w http.ResponseWriter, _ *http.Request) { s.answer(w, `{"content":""}`, "stop") }},
	{"malformed arguments", func(s *chaosServer, w http.ResponseWriter, _ *http.Request) {
		s.answer(w, `{"tool_calls":[{"index":0,"id":"c","function":{"name":"count","arguments":"{\"n\":"}}]}`, "tool_calls")
	}},
	{"unknown tool", func(s *chaosServer, w http.ResponseWriter, _ *http.Request) {
		s.answer(w, `{"tool_calls":[{"index":0,"id":"c","function":{"name":"fly","arguments":"{}"}}]}`, "tool_calls")
	}},
	{"a tool of another role", func(s *chaosServer, w http.ResponseWriter, _ *http.Request) {
		s.answer(w, `{"tool_calls":[{"index":0,"id":"c","function":{"name":"forbidden","arguments":"{}"}}]}`, "tool_calls")
	}},
	{"a context that is too long", func(_ *chaosServer, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"too long","code":"context_length_exceeded"}}`, http.StatusBadRequest)
	}},
	{"rejected request", func(_ *chaosServer, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusBadRequest)
	}},
}

func serveChaos(t *testing.T) *chaosServer {
	s := &chaosServer{}
	var cancel context.CancelFunc
	s.closing, cancel = context.WithCancel(context.Background())
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		cancel()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// ServeHTTP answers correctly in two of three cases.
func (s *chaosServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if n := rand.N(3 * len(serverFaults)); n < len(serverFaults) {
		count, _ := s.faultCounts.LoadOrStore(serverFaults[n].name, new(atomic.Int64))
		count.(*atomic.Int64).Add(1)
		serverFaults[n].do(s, w, r)
		return
	}
	delta, finish := goodAnswer(body)
	s.answer(w, delta, finish)
}

// goodAnswer is the answer of a correct model: root spawns a worker and ends with its
// answer; the worker counts three times. Some workers never stop.
func goodAnswer(body []byte) (delta, finish string) {
	system, messages := gjson.GetBytes(body, "messages.0.content").Str, gjson.GetBytes(body, "messages").Array()
	results, last := 0, messages[len(messages)-1]
	for _, m := range messages {
		if m.Get("role").Str == "tool" && !gjson.Get(m.Get("content").Str, "error").Exists() {
			results++
		}
	}
	call := func(name, args string) (string, string) {
		quoted, _ := json.Marshal(args) // a string always marshals
		return fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c%d","function":{"name":%q,"arguments":%s}}]}`, len(messages), name, quoted), "tool_calls"
	}
	switch worker := gjson.GetBytes(body, "tools.#(function.name==count)").Exists(); {
	case worker && rand.N(10) == 0: // repeats the same call
		return call("look", `{}`)
	case worker && results < 3:
		return call("count", fmt.Sprintf(`{"n":%d}`, results))
	case worker:
		return `{"content":"counted"}`, "stop"
	case results == 0 && system != "":
		return call("find_role_by_name", `{"name":"worker"}`)
	case results == 1:
		id := gjson.Get(last.Get("content").Str, "role.id").Str
		if id == "" {
			id = gjson.Get(last.Get("content").Str, "id").Str
		}
		return call("spawn_agent_with_task", fmt.Sprintf(`{"roleId":%q,"taskBrief":{"objective":"count","constraints":[],"inputs":"-","outputs":"-","completion_criteria":"-"},"initialMessage":"go"}`, id))
	}
	return `{"content":"done"}`, "stop"
}

func (s *chaosServer) answer(w http.ResponseWriter, delta, finish string) {
	writeChunk(w, fmt.Sprintf(`{"choices":[{"index":0,"delta":%s}]}`, delta))
	writeChunk(w, fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, finish))
	writeChunk(w, fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":1}}`, firstNumber+s.served.Add(1)))
	writeChunk(w, `[DONE]`)
}

func writeChunk(w http.ResponseWriter, data string) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: %s\n\n", data)
	_ = http.NewResponseController(w).Flush()
}

// holdOpen keeps a request open until its client gives up.
func (s *chaosServer) holdOpen(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.closing.Done():
	}
}

func dropConnection(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.Close()
	}
}

// effects counts the effects of the tools by call.
type effects struct {
	mu        sync.Mutex
	counts    map[identity.CallID]int
	forbidden int
}

func (e *effects) tools(t *testing.T) (counting, others []tool.Tool) {
	do := func(f func(c tool.Call)) func(context.Context, tool.Call) (tool.Result, error) {
		return func(_ context.Context, c tool.Call) (tool.Result, error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			f(c)
			return tool.Result{Text: "done"}, nil
		}
	}
	mutating := func(name, schema string, f func(tool.Call)) tool.Tool {
		return effectTool{tool.Definition{Name: name, Description: name, Input: json.RawMessage(schema), Effect: tool.Mutating}, do(f)}
	}
	counting = []tool.Tool{
		mutating("count", `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, func(c tool.Call) { e.counts[c.ID]++ }),
		mutating("look", `{"type":"object"}`, func(c tool.Call) { e.counts[c.ID]++ }),
	}
	others = []tool.Tool{mutating("forbidden", `{"type":"object"}`, func(tool.Call) { e.forbidden++ })}
	return counting, others
}

// effectTool is a tool with a fixed definition and handler.
type effectTool struct {
	d   tool.Definition
	run func(context.Context, tool.Call) (tool.Result, error)
}

func (p effectTool) Definition() tool.Definition { return p.d }

func (p effectTool) Call(ctx context.Context, c tool.Call) (tool.Result, error) { return p.run(ctx, c) }

// chaosFixture is a runtime whose agents use an unreliable model.
type chaosFixture struct {
	*runtime.Runtime
	store   journal.Store
	effects effects
	server  *chaosServer
}

func newChaosFixture(t *testing.T) *chaosFixture {
	c := &chaosFixture{server: serveChaos(t), effects: effects{counts: map[identity.CallID]int{}}}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	t.Cleanup(client.CloseIdleConnections)
	chaosModel := retry.New(openai.New(provider.Config{
		Name: "chaos", Model: "chaos", BaseURL: c.server.URL, Stream: true, Window: 100 * firstNumber,
		Timeout: 300 * time.Millisecond, IdleTimeout: 300 * time.Millisecond, Client: client,
	}), retry.Config{Name: "chaos", Concurrency: 8, InitialBackoff: time.Millisecond, Prices: model.TokenPrices{Input: 1e9}})
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	c.store = persisttest.OpenIn(t, t.TempDir())
	var err error
	c.Runtime, err = runtime.New(runtime.Config{
		Store: c.store, Groups: groups, Model: func(string) (model.Model, error) { return chaosModel, nil },
		Log: slog.New(slog.DiscardHandler), Budget: runtime.TaskBudget{Tokens: 1 << 40},
	})
	if err != nil {
		t.Fatal(err)
	}
	counting, others := c.effects.tools(t)
	err = errors.Join(builtin.RegisterGroups(groups, c.Runtime.ToolHost(), builtin.Options{}),
		registerGroup(groups, "counting", counting), registerGroup(groups, "others", others))
	use := toolgroups.SetOf("counting")
	err = errors.Join(err, c.ApplyConfig(runtime.OrgConfig{Roles: []org.RoleSpec{{Name: "worker", Prompt: "count", Use: &use}}}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func registerGroup(groups *toolgroups.Manager, id toolgroups.GroupID, tools []tool.Tool) error {
	_, err := grouptest.RegisterGroup(groups, "test", toolgroups.Group{ID: id, Tools: tools})
	return err
}

// Each fault happens at random. Every task ends, done or failed with a reason. No call
// has its effect twice, no answer is charged twice, and no goroutine is left.
func TestChaos_EndsAllTasks(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("for a while", func(t *testing.T) {
		c := newChaosFixture(t)
		until := time.Now().Add(*chaosTime)
		var work sync.WaitGroup
		ended := map[string]*atomic.Int64{"done": {}, "failed": {}, "cancelled": {}}
		for range 16 {
			work.Go(func() {
				for time.Now().Before(until) {
					ended[c.runTask(t)].Add(1)
				}
			})
		}
		work.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		c.checkEvents(t)
		c.server.faultCounts.Range(func(name, n any) bool { t.Logf("%v: %d times", name, n.(*atomic.Int64).Load()); return true })
		for how, n := range ended {
			t.Logf("%s: %d tasks", how, n.Load())
			if n.Load() == 0 && *chaosTime >= 3*time.Second {
				t.Errorf("no task ended %s", how)
			}
		}
	})
}

// runTask runs a task, cancels some of them early, and returns the final status.
func (c *chaosFixture) runTask(t *testing.T) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id, err := c.StartTask(ctx, org.TaskSpec{Text: "count", Caller: identity.ByOperator("test")})
	if err != nil {
		t.Error(err)
		return "failed"
	}
	if rand.N(8) == 0 {
		cancelTimer := time.AfterFunc(rand.N(100*time.Millisecond), func() { _ = c.CancelTask(ctx, id, "no longer needed") })
		defer cancelTimer.Stop()
	}
	task, err := c.WaitTask(ctx, id)
	switch {
	case err != nil:
		t.Errorf("task %s did not end: %v", id, err)
	case task.Status == org.Running:
		t.Errorf("task %s is running", id)
	case task.Status == org.Failed && (task.Error.Code == "" || task.Error.Code == errcode.Internal || task.Error.Message == ""):
		t.Errorf("task %s failed without a reason: %v", id, task.Error)
	}
	return string(task.Status)
}

// checkEvents checks the recorded events and the effects.
func (c *chaosFixture) checkEvents(t *testing.T) {
	charged := map[int]bool{}
	for e, err := range c.store.FollowEvents(t.Context(), 0, journal.StoredOnly) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(journal.ModelAnswered); ok {
			n := b.Answer.Usage.Input
			if charged[n] || n <= firstNumber || int64(n-firstNumber) > c.server.served.Load() {
				t.Errorf("an answer charged with number %d: twice %v", n, charged[n])
			}
			if b.Answer.Usage.Cost != model.Money(n)*1000 {
				t.Errorf("answer %d costs %v", n, b.Answer.Usage.Cost)
			}
			charged[n] = true
		}
	}
	c.effects.mu.Lock()
	defer c.effects.mu.Unlock()
	for id, n := range c.effects.counts {
		if n != 1 {
			t.Errorf("call %s had its effect %d times", id, n)
		}
	}
	if c.effects.forbidden > 0 || len(c.effects.counts) == 0 {
		t.Errorf("%d effects of a tool outside the role, %d of tools in the role", c.effects.forbidden, len(c.effects.counts))
	}
	t.Logf("%d answers charged of %d served", len(charged), c.server.served.Load())
}
