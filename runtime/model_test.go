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

// streamFunc is a language model with a free stream.
type streamFunc func(ctx context.Context, yield func(model.AnswerDelta, error) bool)

// Window implements model.LanguageModel.
func (streamFunc) Window() int { return 100_000 }

// Generate implements model.Model.
func (b streamFunc) Generate(ctx context.Context, _ model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) { b(ctx, yield) }
}

// A failure of a model fails its turn, with a reason that does not disclose the
// cause.
func TestModel_FailureFailsTurn(t *testing.T) {
	answer := func(a model.Answer) streamFunc {
		return func(_ context.Context, yield func(model.AnswerDelta, error) bool) {
			yield(model.AnswerDelta{Answer: &a}, nil)
		}
	}
	deep := json.RawMessage(strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000))
	for _, c := range []struct {
		name   string
		model  streamFunc
		reason string
		code   errcode.Code
	}{
		{"panic", func(context.Context, func(model.AnswerDelta, error) bool) { panic("secret") }, "model request failed; see the log", errcode.LLMCallFailed},
		{"panic after a delta", func(_ context.Context, yield func(model.AnswerDelta, error) bool) {
			yield(model.AnswerDelta{Text: "so"}, nil)
			panic("secret")
		}, "model request failed; see the log", errcode.LLMCallFailed},
		{"empty stream", func(context.Context, func(model.AnswerDelta, error) bool) {}, "model returned no answer", errcode.LLMCallFailed},
		{"delta without an answer", func(_ context.Context, yield func(model.AnswerDelta, error) bool) {
			yield(model.AnswerDelta{Text: "so"}, nil)
		}, "model returned no answer", errcode.LLMCallFailed},
		{"internal error", func(_ context.Context, yield func(model.AnswerDelta, error) bool) {
			yield(model.AnswerDelta{}, errors.New("secret"))
		}, "model request failed; see the log", errcode.LLMCallFailed},
		{"error with a code", func(_ context.Context, yield func(model.AnswerDelta, error) bool) {
			yield(model.AnswerDelta{}, model.TransientError(errcode.RateLimited, errors.New("secret"), "too many requests"))
		}, "too many requests", errcode.RateLimited},
		{"error after the answer", func(_ context.Context, yield func(model.AnswerDelta, error) bool) {
			a := endWith("done")
			yield(model.AnswerDelta{Answer: &a}, nil)
			yield(model.AnswerDelta{}, model.PermanentError(errcode.LLMCallFailed, nil, "the stream broke"))
		}, "the stream broke", errcode.LLMCallFailed},
		{"no finish", answer(model.Answer{Text: "done"}), `model answer has the unknown finish ""`, errcode.LLMCallFailed},
		{"reasoning is not JSON", answer(model.Answer{Finish: model.FinishEnd, Reasoning: json.RawMessage("{")}), "reasoning of the model answer is not valid JSON or nested too deeply", errcode.LLMCallFailed},
		{"value nested too deeply", answer(model.Answer{Finish: model.FinishEnd, Value: deep}), "value of the model answer is not valid JSON or nested too deeply", errcode.LLMCallFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			fx := openFixture(t, "", c.model)
			task := fx.run(t, org.TaskSpec{})
			fx.wantResult(t, task, "", c.code)
			if task.Error == nil || task.Error.Message != c.reason {
				t.Errorf("the reason is %v, want %q", task.Error, c.reason)
			}
			if story := fx.eventLog(t); strings.Contains(story, "secret") {
				t.Errorf("the record discloses the cause\n%s", story)
			}
		})
	}
}

// A model that ignores cancellation may answer after its turn has ended. Its
// deltas are not shown then, and its answer is not recorded.
func TestModel_LateAnswerIsDiscarded(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(fx *fixture, task identity.TaskID, agent identity.AgentID) error
	}{
		{"the task was cancelled", func(fx *fixture, task identity.TaskID, _ identity.AgentID) error {
			return fx.CancelTask(t.Context(), task, "enough")
		}},
		{"the agent was terminated", func(fx *fixture, task identity.TaskID, agent identity.AgentID) error {
			top, _ := fx.Org().TaskByID(task)
			return fx.TerminateAgent(t.Context(), newCall(identity.ByAgent(top.Top)), agent, "")
		}},
		{"the turn was aborted", func(fx *fixture, _ identity.TaskID, agent identity.AgentID) error { return fx.AbortTurn(agent) }},
	} {
		for _, summary := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, summary %t", c.name, summary), func(t *testing.T) {
				busy, free, root := make(chan struct{}), make(chan struct{}), make(chan struct{})
				var once sync.Once
				fx := fixtureConfig{tools: []tool.Tool{fillTool(t)}, model: streamingModel(func(_ context.Context, r model.Request, say func(model.AnswerDelta)) (model.Answer, error) {
					switch {
					case r.Self.Role == "root":
						<-root
						return endWith("root"), nil
					case summary && answerCount(r) == 0:
						return withUsage(callTools("fill", obj{"n": 40_000}), 95_000), nil
					}
					once.Do(func() { close(busy) })
					<-free // ignores ctx
					say(model.AnswerDelta{Text: "late"})
					return endWith("late"), nil
				})}.open(t)
				id := fx.start(t, org.TaskSpec{})
				var seen []string
				var watching sync.WaitGroup
				watching.Go(func() { seen = fx.watchAll(t, t.Context(), id, func(journal.Event) {}) })
				agent := fx.spawnAgent(t, fx.topAgent(t, id), org.RoleSpec{Name: "worker", Use: groupSet("probe")})
				fx.send(t, agent, `"go"`)
				<-busy
				if err := c.end(fx, id, agent); err != nil {
					t.Fatal(err)
				}
				close(free)
				close(root)
				fx.wait(t, id)
				watching.Wait()
				fx.Close()
				if slices.Contains(seen, "says late") {
					t.Errorf("the delta was shown: %v", seen)
				}
				if story := fx.eventLog(t); strings.Contains(story, `"late"`) {
					t.Errorf("the answer was recorded\n%s", story)
				}
			})
		}
	}
}

// Invalid arguments and unknown tools are reported to the model, which may try
// again. The provider is sent a valid conversation.
func TestModel_InvalidCallsAreReported(t *testing.T) {
	var asked modelRequests
	fx := fixtureConfig{tools: []tool.Tool{fillTool(t)}, model: withWindow(100_000, asked.model(func(_ context.Context, _ model.Request, n int) (model.Answer, error) {
		return []model.Answer{
			callTools("fill", json.RawMessage(`{"n": 1`), "fill", json.RawMessage(`"{\"n\": 1"`), "fill", json.RawMessage(`[1]`), "no_such", obj{}, "run_command", obj{}, "", obj{}),
			callTools("fill", obj{"n": 1}), endWith("done"),
		}[n], nil
	}))}.open(t)
	fx.wantResult(t, fx.run(t, fx.groupTask(t, "probe")), `"done"`, "")
	r := asked.all()[2]
	want := []string{"invalid_arguments", "invalid_arguments", "invalid_arguments", "unknown_tool", "tool_not_available", "unknown_tool", `"x"`}
	if got := outcomes(r); !slices.Equal(got, want) {
		t.Errorf("results %q, want %q", got, want)
	}
	if problem := requestProblem(r); problem != "" {
		t.Error(problem)
	}
	for _, turn := range chat.BuildTurns(r) {
		for _, c := range turn.Calls {
			if !json.Valid(c.Args) || c.Args[0] != '{' {
				t.Errorf("call %s has the arguments %s", c.Name, c.Args)
			}
		}
	}
}

// While one agent waits for its model the others of its task continue.
func TestModel_AgentsDoNotBlockEachOther(t *testing.T) {
	stuck, free, hired := make(chan struct{}), make(chan struct{}), make(chan struct{})
	fx := openFixture(t, "", withWindow(100_000, modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
		switch r.Self.Role {
		case "stuck":
			close(stuck)
			<-free
			return endWith("late"), nil
		case "quick":
			return endWith("quick"), nil
		}
		<-hired
		if payload := string(lastReport(r)); strings.Contains(payload, "late") {
			return endWith("done"), nil
		}
		return waitForMessage(), nil
	})))
	id := fx.start(t, org.TaskSpec{})
	top := fx.topAgent(t, id)
	slow := fx.spawnAgent(t, top, org.RoleSpec{Name: "stuck", Use: groupSet()})
	fx.send(t, slow, `"go"`)
	<-stuck
	quick := fx.spawnAgent(t, top, org.RoleSpec{Name: "quick", Use: groupSet()})
	fx.send(t, quick, `"go"`)
	close(hired)
	fx.waitEvent(t, func(e journal.Event) bool {
		taken, ok := e.Body.(journal.MessageReceived)
		return ok && e.Agent == top && taken.Message.From == string(quick)
	})
	close(free)
	fx.wantResult(t, fx.wait(t, id), `"done"`, "")
}
