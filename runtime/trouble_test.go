package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// broken is a language model that does as it likes.
type broken func(ctx context.Context, yield func(model.Delta, error) bool)

// Window implements model.LanguageModel.
func (broken) Window() int { return 100_000 }

// Generate implements model.Model.
func (b broken) Generate(ctx context.Context, _ model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) { b(ctx, yield) }
}

// What a model breaks is the failure of its turn, with a reason and without
// what the cause says.
func TestAModelThatBreaksFailsItsTurn(t *testing.T) {
	answer := func(a model.Answer) broken {
		return func(_ context.Context, yield func(model.Delta, error) bool) { yield(model.Delta{Answer: &a}, nil) }
	}
	deep := json.RawMessage(strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000))
	for _, c := range []struct {
		name   string
		model  broken
		reason string
		code   errcode.Code
	}{
		{"it panics", func(context.Context, func(model.Delta, error) bool) { panic("secret") }, "model request failed; see the log", errcode.LLMCallFailed},
		{"it panics in the middle", func(_ context.Context, yield func(model.Delta, error) bool) {
			yield(model.Delta{Text: "so"}, nil)
			panic("secret")
		}, "model request failed; see the log", errcode.LLMCallFailed},
		{"it says nothing", func(context.Context, func(model.Delta, error) bool) {}, "model returned no answer", errcode.LLMCallFailed},
		{"it says something and gives no answer", func(_ context.Context, yield func(model.Delta, error) bool) {
			yield(model.Delta{Text: "so"}, nil)
		}, "model returned no answer", errcode.LLMCallFailed},
		{"it fails with what nobody should read", func(_ context.Context, yield func(model.Delta, error) bool) {
			yield(model.Delta{}, errors.New("secret"))
		}, "model request failed; see the log", errcode.LLMCallFailed},
		{"it fails with a code of its own", func(_ context.Context, yield func(model.Delta, error) bool) {
			yield(model.Delta{}, model.Transient(errcode.RateLimited, errors.New("secret"), "too many requests"))
		}, "too many requests", errcode.RateLimited},
		{"it answers and fails then", func(_ context.Context, yield func(model.Delta, error) bool) {
			a := end("done")
			yield(model.Delta{Answer: &a}, nil)
			yield(model.Delta{}, model.Permanent(errcode.LLMCallFailed, nil, "the stream broke"))
		}, "the stream broke", errcode.LLMCallFailed},
		{"its answer has no finish", answer(model.Answer{Text: "done"}), `model answer has the unknown finish ""`, errcode.LLMCallFailed},
		{"its reasoning is no JSON", answer(model.Answer{Finish: model.FinishEnd, Reasoning: json.RawMessage("{")}), "reasoning of the model answer is not valid JSON or nested too deeply", errcode.LLMCallFailed},
		{"its value is nested too deep", answer(model.Answer{Finish: model.FinishEnd, Value: deep}), "value of the model answer is not valid JSON or nested too deeply", errcode.LLMCallFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := open(t, "", c.model)
			task := h.run(t, org.TaskSpec{})
			h.want(t, task, "", c.code)
			if task.Error == nil || task.Error.Message != c.reason {
				t.Errorf("the reason is %v, want %q", task.Error, c.reason)
			}
			if story := h.story(t); strings.Contains(story, "secret") {
				t.Errorf("the record has what the cause says\n%s", story)
			}
		})
	}
}

// A model that does not listen answers after its turn has ended: nobody is
// shown what it says then, and it is not recorded.
func TestAnAnswerAfterTheEndOfTheTurnIsDiscarded(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(h *house, task identity.TaskID, agent identity.AgentID) error
	}{
		{"the task was cancelled", func(h *house, task identity.TaskID, _ identity.AgentID) error {
			return h.Cancel(t.Context(), task, "enough")
		}},
		{"the agent was terminated", func(h *house, task identity.TaskID, agent identity.AgentID) error {
			top, _ := h.Org().Task(task)
			return h.Terminate(t.Context(), called(identity.ByAgent(top.Top)), agent, "")
		}},
		{"the turn was aborted", func(h *house, _ identity.TaskID, agent identity.AgentID) error { return h.Abort(agent) }},
	} {
		for _, summary := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, a summary %t", c.name, summary), func(t *testing.T) {
				busy, free, root := make(chan struct{}), make(chan struct{}), make(chan struct{})
				var once sync.Once
				h := plan{tools: []tool.Tool{filler(t)}, model: speaker(func(_ context.Context, r model.Request, say func(model.Delta)) (model.Answer, error) {
					switch {
					case r.Self.Role == "root":
						<-root
						return end("root"), nil
					case summary && answers(r) == 0:
						return counted(do("fill", obj{"n": 40_000}), 95_000), nil
					}
					once.Do(func() { close(busy) })
					<-free // whatever happens to ctx
					say(model.Delta{Text: "late"})
					return end("late"), nil
				})}.open(t)
				id := h.start(t, org.TaskSpec{})
				var seen []string
				var watching sync.WaitGroup
				watching.Go(func() { seen = h.watched(t, t.Context(), id, func(journal.Event) {}) })
				agent := h.hire(t, h.top(t, id), org.RoleSpec{Name: "worker", Use: use("probe")})
				h.tell(t, agent, `"go"`)
				<-busy
				if err := c.end(h, id, agent); err != nil {
					t.Fatal(err)
				}
				close(free)
				close(root)
				h.wait(t, id)
				watching.Wait()
				h.Close()
				if slices.Contains(seen, "says late") {
					t.Errorf("it is shown: %v", seen)
				}
				if story := h.story(t); strings.Contains(story, `"late"`) {
					t.Errorf("it is on record\n%s", story)
				}
			})
		}
	}
}

// Arguments that are none, and tools that are not, are told to the model, which
// may try again; its provider is sent a conversation it takes.
func TestAModelIsToldWhatWasWrongWithItsCalls(t *testing.T) {
	var asked requests
	h := plan{tools: []tool.Tool{filler(t)}, model: fluent(100_000, asked.of(func(_ context.Context, _ model.Request, n int) (model.Answer, error) {
		return []model.Answer{
			do("fill", json.RawMessage(`{"n": 1`), "fill", json.RawMessage(`"{\"n\": 1"`), "fill", json.RawMessage(`[1]`), "no_such", obj{}, "run_command", obj{}, "", obj{}),
			do("fill", obj{"n": 1}), end("done"),
		}[n], nil
	}))}.open(t)
	h.want(t, h.run(t, h.role(t, "probe")), `"done"`, "")
	r := asked.all()[2]
	want := []string{"invalid_arguments", "invalid_arguments", "invalid_arguments", "unknown_tool", "tool_not_available", "unknown_tool", `"x"`}
	if got := outcomes(r); !slices.Equal(got, want) {
		t.Errorf("it reads %q, want %q", got, want)
	}
	if fault := misplaced(r); fault != "" {
		t.Error(fault)
	}
	for _, turn := range chat.Turns(r) {
		for _, c := range turn.Calls {
			if !json.Valid(c.Args) || c.Args[0] != '{' {
				t.Errorf("call %s is sent with %s", c.Name, c.Args)
			}
		}
	}
}

// While one agent waits in its model the others of its task work on.
func TestNobodyWaitsForAnothersModel(t *testing.T) {
	stuck, free, hired := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h := open(t, "", fluent(100_000, mind(func(_ context.Context, r model.Request) (model.Answer, error) {
		switch r.Self.Role {
		case "stuck":
			close(stuck)
			<-free
			return end("late"), nil
		case "quick":
			return end("quick"), nil
		}
		<-hired
		if payload := string(report(r)); strings.Contains(payload, "late") {
			return end("done"), nil
		}
		return wait(), nil
	})))
	id := h.start(t, org.TaskSpec{})
	top := h.top(t, id)
	slow := h.hire(t, top, org.RoleSpec{Name: "stuck", Use: use()})
	h.tell(t, slow, `"go"`)
	<-stuck
	quick := h.hire(t, top, org.RoleSpec{Name: "quick", Use: use()})
	h.tell(t, quick, `"go"`)
	close(hired)
	h.until(t, func(e journal.Event) bool {
		taken, ok := e.Body.(journal.MessageReceived)
		return ok && e.Agent == top && taken.Message.From == string(quick)
	})
	close(free)
	h.want(t, h.wait(t, id), `"done"`, "")
}
