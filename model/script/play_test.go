package script_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/script"
)

// play is a runtime of one agent: it records what a model answers, lets tools
// answer, and writes down what happened.
type play struct {
	self  model.AgentInfo
	tools []string
	items []model.Item
	tool  func(name, args string) string // a result that begins with "!" is an error
	lines []string

	messages, answers int
	terse             bool // tools are not recorded
}

func newPlay(role string) *play {
	return &play{
		self:  model.AgentInfo{ID: identity.AgentID("agent-" + role), Role: role, Task: "task-1", State: "open"},
		tools: []string{"echo", "fail"},
		tool:  echo,
	}
}

// echo answers {"echo": args}, and fails as the tool fail.
func echo(name, args string) string {
	if name == "fail" {
		return `!{"error":"tool_not_available","toolName":"fail"}`
	}
	return `{"echo":` + args + `}`
}

func (p *play) request() model.Request {
	return model.Request{Self: p.self, Items: p.items, Tools: p.tools}
}

// tell puts a message into the conversation.
func (p *play) tell(payload string) {
	p.messages++
	p.items = append(p.items, model.Item{Message: &model.Message{
		ID: fmt.Sprintf("m%d", p.messages), From: "user", Task: "task-1",
		Payload: json.RawMessage(payload), CreatedAt: time.Date(2026, 1, 2, 3, 4, p.messages, 0, time.UTC),
	}})
}

// ask gives what m answers next.
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
		t.Fatal("Generate gave neither an answer nor an error")
	}
	return answer, nil
}

// record puts an answer on the record as a runtime does, with the results of
// its calls.
func (p *play) record(a *model.Answer) {
	kept := *a
	kept.Tools, kept.State = p.tools, p.self.State
	if p.terse {
		kept.Tools = nil
	}
	kept.Calls = nil
	for i, c := range a.Calls {
		c.ID = identity.CallID(fmt.Sprintf("call-%d-%d", p.answers, i))
		kept.Calls = append(kept.Calls, c)
	}
	p.answers++
	p.items = append(p.items, model.Item{Answer: &kept})
	p.write(a)
	for i := len(kept.Calls) - 1; i >= 0; i-- { // as parallel calls may, the last ends first
		p.items = append(p.items, model.Item{Result: p.result(kept.Calls[i])})
	}
}

func (p *play) result(c model.Call) *model.Result {
	content, failed := strings.CutPrefix(p.tool(c.Name, string(c.Args)), "!")
	return &model.Result{Call: c.ID, Tool: c.Name, Content: json.RawMessage(content), IsError: failed}
}

// write notes an answer in one line.
func (p *play) write(a *model.Answer) {
	line := string(a.Finish)
	for _, c := range a.Calls {
		line += fmt.Sprintf(" %s%s", c.Name, c.Args)
	}
	if a.Finish == model.FinishContinue {
		line += " " + a.Text
	}
	if a.Finish == model.FinishEnd {
		line += " " + string(a.Value)
	}
	line += fmt.Sprintf(" read=%d", a.MessagesRead)
	if len(a.Log) > 0 {
		line += fmt.Sprintf(" log=%q", a.Log)
	}
	p.lines = append(p.lines, line)
}

// run asks until the brain has nothing to do and no further message is due.
// mail holds the messages that come before the n-th question.
func (p *play) run(t testing.TB, m *script.Model, mail map[int][]string) error {
	t.Helper()
	last := 0
	for n := range mail {
		last = max(last, n)
	}
	for n := 0; ; n++ {
		for _, payload := range mail[n] {
			p.tell(payload)
		}
		a, err := ask(t, m, p.request())
		if err != nil {
			return err
		}
		p.record(a)
		if n >= last && (a.Finish == model.FinishWait || a.Finish == model.FinishEnd && a.MessagesRead >= p.messages) {
			return nil
		}
		if n > 100 {
			t.Fatal("the brain does not come to rest")
		}
	}
}

// load makes a Model that is closed with the test.
func load(t testing.TB, c script.Config, source string) *script.Model {
	t.Helper()
	m, err := c.New("brain.js", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// wantCode checks code and words of an error.
func wantCode(t testing.TB, err error, code errcode.Code, words ...string) *errcode.Error {
	t.Helper()
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	for _, word := range words {
		if !strings.Contains(e.Message, word) {
			t.Errorf("got %q, want it to name %q", e.Message, word)
		}
	}
	return e
}
