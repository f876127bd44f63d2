package script_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/script"
)

// fakeRuntime runs one agent below the first of its task: it records the answers of a model, runs tools and logs what
// happens.
type fakeRuntime struct {
	self  model.AgentInfo
	tools []string
	items []model.Item
	tool  func(name, args string) string // returns the result; one that begins with "!" is an error
	lines []string

	messages, answers int
	omitTools         bool // answers are recorded without tools
}

func newFakeRuntime(role string) *fakeRuntime {
	return &fakeRuntime{
		self:  model.AgentInfo{ID: identity.AgentID("agent-" + role), Role: role, Task: "task-1", State: "open"},
		tools: []string{"echo", "fail"},
		tool:  echo,
	}
}

// echo returns {"echo": args}. The tool fail returns an error.
func echo(name, args string) string {
	if name == "fail" {
		return `!{"error":"tool_not_available","toolName":"fail"}`
	}
	return `{"echo":` + args + `}`
}

func (rt *fakeRuntime) request() model.Request {
	return model.Request{Self: rt.self, Items: rt.items, Tools: rt.tools}
}

// addMessage adds a message to the conversation.
func (rt *fakeRuntime) addMessage(payload string) {
	rt.messages++
	rt.items = append(rt.items, model.Item{Message: &model.Message{
		ID: fmt.Sprintf("m%d", rt.messages), From: "user", Task: "task-1",
		Payload: json.RawMessage(payload), CreatedAt: time.Date(2026, 1, 2, 3, 4, rt.messages, 0, time.UTC),
	}})
}

// ask returns the next answer of m.
func ask(t testing.TB, m *script.Model, r model.Request) (*model.Answer, error) {
	t.Helper()
	var answer *model.Answer
	for delta, err := range m.Generate(t.Context(), r) {
		if err != nil {
			return nil, err
		}
		answer = delta.Answer
	}
	if answer == nil {
		t.Fatal("Generate yielded neither an answer nor an error")
	}
	return answer, nil
}

// record adds an answer and the results of its calls to the conversation.
func (rt *fakeRuntime) record(a *model.Answer) {
	recorded := *a
	if recorded.Finish == model.FinishResult {
		recorded.Finish = model.FinishEnd
	}
	recorded.Tools, recorded.State = rt.tools, rt.self.State
	if rt.omitTools {
		recorded.Tools = nil
	}
	recorded.Calls = nil
	for i, c := range a.Calls {
		c.ID = identity.CallID(fmt.Sprintf("call-%d-%d", rt.answers, i))
		recorded.Calls = append(recorded.Calls, c)
	}
	rt.answers++
	rt.items = append(rt.items, model.Item{Answer: &recorded})
	rt.log(&recorded)
	for i := len(recorded.Calls) - 1; i >= 0; i-- { // concurrent calls may end in any order
		rt.items = append(rt.items, model.Item{Result: rt.runTool(recorded.Calls[i])})
	}
}

func (rt *fakeRuntime) runTool(c model.Call) *model.CallResult {
	content, failed := strings.CutPrefix(rt.tool(c.Name, string(c.Args)), "!")
	return &model.CallResult{Call: c.ID, Tool: c.Name, Content: json.RawMessage(content), IsError: failed}
}

// log adds a line that describes an answer.
func (rt *fakeRuntime) log(a *model.Answer) {
	line := string(a.Finish)
	for _, c := range a.Calls {
		line += fmt.Sprintf(" %s%s", c.Name, c.Args)
	}
	if a.Finish == model.FinishContinue {
		line += " " + a.Text
	}
	if a.Finish.EndsTurn() {
		line += " " + string(a.Value)
	}
	line += fmt.Sprintf(" read=%d", a.MessagesRead)
	if len(a.Log) > 0 {
		line += fmt.Sprintf(" log=%q", a.Log)
	}
	rt.lines = append(rt.lines, line)
}

// run asks m until it waits and no message is left. inbox has the messages that arrive before
// the n-th request.
func (rt *fakeRuntime) run(t testing.TB, m *script.Model, inbox map[int][]string) error {
	t.Helper()
	last := 0
	for n := range inbox {
		last = max(last, n)
	}
	for n := 0; ; n++ {
		for _, payload := range inbox[n] {
			rt.addMessage(payload)
		}
		a, err := ask(t, m, rt.request())
		if err != nil {
			return err
		}
		rt.record(a)
		if n >= last && (a.Finish == model.FinishWait || a.Finish.EndsTurn() && a.MessagesRead >= rt.messages) {
			return nil
		}
		if n > 100 {
			t.Fatal("the script did not finish in 100 steps")
		}
	}
}

// newModel returns a Model that is closed when the test ends.
func newModel(t testing.TB, c script.Config, source string) *script.Model {
	t.Helper()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	m, err := c.New("agents.js", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// wantCode checks the code of an error and that its message contains words.
func wantCode(t testing.TB, err error, code errcode.Code, words ...string) *errcode.Error {
	t.Helper()
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	for _, word := range words {
		if !strings.Contains(e.Message, word) {
			t.Errorf("got %q, want it to contain %q", e.Message, word)
		}
	}
	return e
}
