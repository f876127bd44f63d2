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

var chaosTime = flag.Duration("chaos", 3*time.Second, "how long TestChaos gives new tasks to an unreliable model")

// unreliable is a server of the OpenAI protocol that answers, or does one of
// the things that go wrong. Each whole answer has a number of its own, which
// is its count of input tokens.
type unreliable struct {
	*httptest.Server
	gone   context.Context // ends when the server is to let go of all requests
	served atomic.Int64
	faults sync.Map // how often each happened, by name
}

// firstNumber is above what a request could have as a count of tokens.
const firstNumber = 1_000_000

// mishap is a thing that goes wrong; it says whether that was all.
type mishap struct {
	name string
	do   func(s *unreliable, w http.ResponseWriter, r *http.Request)
}

// mishaps are what goes wrong with providers, and with models that answer.
var mishaps = []mishap{
	{"429 with Retry-After", func(_ *unreliable, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "0.02")
		http.Error(w, `{"error":{"message":"slow down"}}`, http.StatusTooManyRequests)
	}},
	{"500", func(_ *unreliable, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"oops"}}`, http.StatusInternalServerError)
	}},
	{"529", func(_ *unreliable, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(529) }},
	{"no answer", func(s *unreliable, _ http.ResponseWriter, r *http.Request) { s.hang(r) }},
	{"reset before the answer", func(_ *unreliable, w http.ResponseWriter, _ *http.Request) { hangUp(w) }},
	{"reset in the middle", func(_ *unreliable, w http.ResponseWriter, _ *http.Request) {
		chunk(w, `{"choices":[{"index":0,"delta":{"content":"I will "}}]}`)
		hangUp(w)
	}},
	{"half open", func(s *unreliable, w http.ResponseWriter, r *http.Request) {
		chunk(w, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"count","arguments":"{\"n\""}}]}}]}`)
		s.hang(r)
	}},
	{"end without an end", func(_ *unreliable, w http.ResponseWriter, _ *http.Request) {
		chunk(w, `{"choices":[{"index":0,"delta":{"content":"and so"}}]}`)
	}},
	{"nonsense", func(_ *unreliable, w http.ResponseWriter, _ *http.Request) { chunk(w, `{"choices":[{"delta":`) }},
	{"empty answer", func(s *unreliable, w http.ResponseWriter, _ *http.Request) { s.answer(w, `{"content":""}`, "stop") }},
	{"malformed arguments", func(s *unreliable, w http.ResponseWriter, _ *http.Request) {
		s.answer(w, `{"tool_calls":[{"index":0,"id":"c","function":{"name":"count","arguments":"{\"n\":"}}]}`, "tool_calls")
	}},
	{"unknown tool", func(s *unreliable, w http.ResponseWriter, _ *http.Request) {
		s.answer(w, `{"tool_calls":[{"index":0,"id":"c","function":{"name":"fly","arguments":"{}"}}]}`, "tool_calls")
	}},
	{"a tool of others", func(s *unreliable, w http.ResponseWriter, _ *http.Request) {
		s.answer(w, `{"tool_calls":[{"index":0,"id":"c","function":{"name":"forbidden","arguments":"{}"}}]}`, "tool_calls")
	}},
	{"a context that is too long", func(_ *unreliable, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"too long","code":"context_length_exceeded"}}`, http.StatusBadRequest)
	}},
	{"refusal of the request", func(_ *unreliable, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusBadRequest)
	}},
}

func serveChaos(t *testing.T) *unreliable {
	s := &unreliable{}
	var let context.CancelFunc
	s.gone, let = context.WithCancel(context.Background())
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		let()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// ServeHTTP does what is right in two of three cases.
func (s *unreliable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if n := rand.N(3 * len(mishaps)); n < len(mishaps) {
		count, _ := s.faults.LoadOrStore(mishaps[n].name, new(atomic.Int64))
		count.(*atomic.Int64).Add(1)
		mishaps[n].do(s, w, r)
		return
	}
	delta, finish := play(body)
	s.answer(w, delta, finish)
}

// play is what a good model does: root hires a worker and ends with what it
// hears; the worker counts three times. Some workers never stop.
func play(body []byte) (delta, finish string) {
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
	switch role := gjson.GetBytes(body, "tools.#(function.name==count)").Exists(); {
	case role && rand.N(10) == 0: // round and round
		return call("look", `{}`)
	case role && results < 3:
		return call("count", fmt.Sprintf(`{"n":%d}`, results))
	case role:
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

func (s *unreliable) answer(w http.ResponseWriter, delta, finish string) {
	chunk(w, fmt.Sprintf(`{"choices":[{"index":0,"delta":%s}]}`, delta))
	chunk(w, fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, finish))
	chunk(w, fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":1}}`, firstNumber+s.served.Add(1)))
	chunk(w, `[DONE]`)
}

func chunk(w http.ResponseWriter, data string) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: %s\n\n", data)
	_ = http.NewResponseController(w).Flush()
}

// hang keeps a request open until its client gives up.
func (s *unreliable) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.gone.Done():
	}
}

func hangUp(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.Close()
	}
}

// effects counts what the tools did, by call.
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
		return probe{tool.Definition{Name: name, Description: name, Input: json.RawMessage(schema), Effect: tool.Mutating}, do(f)}
	}
	counting = []tool.Tool{
		mutating("count", `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, func(c tool.Call) { e.counts[c.ID]++ }),
		mutating("look", `{"type":"object"}`, func(c tool.Call) { e.counts[c.ID]++ }),
	}
	others = []tool.Tool{mutating("forbidden", `{"type":"object"}`, func(tool.Call) { e.forbidden++ })}
	return counting, others
}

type probe struct {
	d   tool.Definition
	run func(context.Context, tool.Call) (tool.Result, error)
}

func (p probe) Definition() tool.Definition { return p.d }

func (p probe) Call(ctx context.Context, c tool.Call) (tool.Result, error) { return p.run(ctx, c) }

// chaos is a runtime whose agents think with an unreliable model.
type chaos struct {
	*runtime.Runtime
	store   journal.Store
	effects effects
	server  *unreliable
}

func newChaos(t *testing.T) *chaos {
	c := &chaos{server: serveChaos(t), effects: effects{counts: map[identity.CallID]int{}}}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	t.Cleanup(client.CloseIdleConnections)
	thinker := retry.New(openai.New(provider.Config{
		Name: "chaos", Model: "chaos", BaseURL: c.server.URL, Stream: true, Window: 100 * firstNumber,
		Timeout: 300 * time.Millisecond, IdleTimeout: 300 * time.Millisecond, Client: client,
	}), retry.Config{Name: "chaos", Concurrency: 8, InitialBackoff: time.Millisecond, Prices: model.Prices{Input: 1e9}})
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	c.store = persisttest.OpenIn(t, t.TempDir())
	var err error
	c.Runtime, err = runtime.New(runtime.Config{
		Store: c.store, Groups: groups, Model: func(string) (model.Model, error) { return thinker, nil },
		Log: slog.New(slog.DiscardHandler), Budget: runtime.Budget{Tokens: 1 << 40},
	})
	if err != nil {
		t.Fatal(err)
	}
	counting, others := c.effects.tools(t)
	err = errors.Join(builtin.RegisterGroups(groups, c.Runtime.ToolHost(), builtin.Options{}),
		register(groups, "counting", counting), register(groups, "others", others))
	use := toolgroups.Of("counting")
	err = errors.Join(err, c.Configure(runtime.OrgConfig{Roles: []org.RoleSpec{{Name: "worker", Prompt: "count", Use: &use}}}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func register(groups *toolgroups.Manager, id toolgroups.GroupID, tools []tool.Tool) error {
	_, err := groups.RegisterGroup("test", toolgroups.Group{ID: id, Tools: tools})
	return err
}

// Each fault happens at random; every task ends, done or failed with a reason,
// no call has its effect twice, no answer is charged twice, and nothing is
// left running.
func TestChaos(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("for a while", func(t *testing.T) {
		c := newChaos(t)
		until := time.Now().Add(*chaosTime)
		var work sync.WaitGroup
		ended := map[string]*atomic.Int64{"done": {}, "failed": {}, "cancelled": {}}
		for range 16 {
			work.Go(func() {
				for time.Now().Before(until) {
					ended[c.task(t)].Add(1)
				}
			})
		}
		work.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		c.check(t)
		c.server.faults.Range(func(name, n any) bool { t.Logf("%v: %d times", name, n.(*atomic.Int64).Load()); return true })
		for how, n := range ended {
			t.Logf("%s: %d tasks", how, n.Load())
			if n.Load() == 0 && *chaosTime >= 3*time.Second {
				t.Errorf("no task ended %s", how)
			}
		}
	})
}

// task gives one task, which some callers lose interest in, and says how it
// ended.
func (c *chaos) task(t *testing.T) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id, err := c.StartTask(ctx, org.TaskSpec{Text: "count", Caller: identity.ByOperator("test")})
	if err != nil {
		t.Error(err)
		return "failed"
	}
	if rand.N(8) == 0 {
		patience := time.AfterFunc(rand.N(100*time.Millisecond), func() { _ = c.CancelTask(ctx, id, "nobody waits any more") })
		defer patience.Stop()
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

// check looks at the record of everything.
func (c *chaos) check(t *testing.T) {
	charged := map[int]bool{}
	for e, err := range c.store.FollowEvents(t.Context(), 0, false) {
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
		t.Errorf("%d effects of a tool that is not the role's, %d of those that are", c.effects.forbidden, len(c.effects.counts))
	}
	t.Logf("%d answers charged of %d served", len(charged), c.server.served.Load())
}
