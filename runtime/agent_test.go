package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// workerTask creates the role worker, which may use probe and artifact, and
// returns a task for an agent of it.
func (fx *fixture) workerTask(t *testing.T, state string) org.TaskSpec {
	t.Helper()
	if _, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "worker", Use: groupSet("probe", "artifact")}); err != nil {
		t.Fatal(err)
	}
	return org.TaskSpec{Role: "worker", State: state}
}

// outcomes lists the outcomes of the calls: the code of a failure, else the
// result.
func outcomes(r model.Request) []string {
	var list []string
	for _, result := range results(r) {
		text := string(result.Content)
		if result.IsError {
			text = fmt.Sprint(decodeObject(result.Content)["error"])
		}
		list = append(list, text)
	}
	return list
}

// answerOnce returns one answer, then ends with the outcomes of its calls.
func answerOnce(a model.Answer) answerFunc {
	return func(r model.Request) model.Answer {
		if answerCount(r) == 0 {
			return a
		}
		return model.Answer{Finish: model.FinishEnd, Value: mustJSON(outcomes(r))}
	}
}

func TestAgent_ReadOnlyCallsRunConcurrently(t *testing.T) {
	var meet sync.WaitGroup // each call waits for the others
	meet.Add(3)
	look := newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) {
		meet.Done()
		meet.Wait()
		return in["n"], nil
	})
	fx := fixtureConfig{tools: []tool.Tool{look}, model: answerOnce(callTools("look", obj{"n": 1}, "look", obj{"n": 2}, "look", obj{"n": 3}))}.open(t)
	fx.wantResult(t, fx.run(t, fx.workerTask(t, "")), `["1","2","3"]`, "")
}

func TestAgent_MutatingCallsRunSequentially(t *testing.T) {
	var inside, most atomic.Int32
	var order []any
	poke := newTool(t, "poke", tool.Options{}, func(_ context.Context, in obj) (any, error) {
		most.Store(max(most.Load(), inside.Add(1)))
		defer inside.Add(-1)
		order = append(order, in["n"])
		return in["n"], nil
	})
	look := newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) {
		if inside.Load() > 0 {
			t.Error("look runs while poke is running")
		}
		return in["n"], nil
	})
	fx := fixtureConfig{tools: []tool.Tool{poke, look}, model: answerOnce(callTools(
		"poke", obj{"n": 1}, "poke", obj{"n": 2}, "look", obj{"n": 3}, "poke", obj{"n": 4}, "look", obj{"n": 5}))}.open(t)
	fx.wantResult(t, fx.run(t, fx.workerTask(t, "")), `["1","2","3","4","5"]`, "")
	if got := fmt.Sprint(order); most.Load() != 1 || got != "[1 2 4]" {
		t.Errorf("%d at once, in the order %s", most.Load(), got)
	}
}

func TestAgent_DeniedCallDoesNotStopOthers(t *testing.T) {
	poke := newTool(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) { return "ok", nil })
	fx := fixtureConfig{tools: []tool.Tool{poke}, model: answerOnce(callTools(
		"poke", obj{}, "read_file", obj{"path": "x"}, "poke", obj{}, "nothing_known", obj{}, "put_artifact", obj{}, "poke", obj{}))}.open(t)
	fx.wantResult(t, fx.run(t, fx.workerTask(t, "")), `["\"ok\"","tool_not_available","\"ok\"","unknown_tool","invalid_arguments","\"ok\""]`, "")
}

func TestAgent_SuccessMovesState(t *testing.T) {
	dir := fastTempDir(t)
	var fail atomic.Bool
	fail.Store(true)
	tools := []tool.Tool{
		newTool(t, "open", tool.Options{State: "open", States: []string{"shut"}}, func(context.Context, obj) (any, error) {
			if fail.Swap(false) {
				return nil, errors.New("it is stuck")
			}
			return "opened", nil
		}),
		newTool(t, "enter", tool.Options{Effect: tool.ReadOnly, States: []string{"open"}}, func(context.Context, obj) (any, error) { return "in", nil }),
	}
	seen := make(chan model.Request, 1)
	reached := make(chan struct{})
	fx := fixtureConfig{dir: dir, tools: tools, model: modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
		if answerCount(r) == 0 {
			return callTools("enter", obj{}, "open", obj{}, "enter", obj{}, "open", obj{}, "enter", obj{}, "open", obj{}), nil
		}
		close(reached)
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	})}.open(t)
	id := fx.start(t, fx.workerTask(t, "shut"))
	fx.waitReached(t, id, reached)
	fx.shutdown(t)

	fx = fixtureConfig{dir: dir, tools: tools, model: answerFunc(func(r model.Request) model.Answer {
		seen <- r
		return model.Answer{Finish: model.FinishEnd, Value: mustJSON(outcomes(r))}
	})}.open(t)
	fx.resume(t, id)
	fx.wantResult(t, fx.wait(t, id), `["tool_not_available","tool_execution_failed","tool_not_available","\"opened\"","\"in\"","tool_not_available"]`, "")
	r := <-seen
	if r.Self.State != "open" || !slices.Contains(r.Tools, "enter") || slices.Contains(r.Tools, "open") {
		t.Errorf("after the restart the model sees state %q and tools %v", r.Self.State, r.Tools)
	}
	if got, want := bodiesOf[journal.StateTransition](t, fx), (journal.StateTransition{Tool: "open", From: "shut", To: "open"}); len(got) != 1 || got[0] != want {
		t.Errorf("transitions on record: %v, want %v", got, want)
	}
	if a, _ := fx.AgentRecord(t.Context(), fx.topAgent(t, id)); a.State != "open" {
		t.Errorf("the agent's record says state %q", a.State)
	}
}

// errorNotice is the message that a parent receives when a turn ends in an
// error.
type errorNotice struct {
	Kind      string          `json:"kind"`
	Type      errcode.Code    `json:"errorType"`
	Message   string          `json:"message"`
	Agent     string          `json:"agentId"`
	Original  string          `json:"originalMessageId"`
	Task      identity.TaskID `json:"taskId"`
	Timestamp time.Time       `json:"timestamp"`
}

func TestAgent_FailedTurnNotifiesParent(t *testing.T) {
	for _, c := range []struct {
		name string
		work modelFunc
		code errcode.Code
	}{
		{"too many rounds", func(context.Context, model.Request) (model.Answer, error) {
			return callTools("put_artifact", obj{"type": "t", "content": 1}), nil
		}, errcode.MaxToolRounds},
		{"the model fails", func(context.Context, model.Request) (model.Answer, error) {
			return model.Answer{}, errors.New("no route to 10.0.0.7")
		}, errcode.LLMCallFailed},
		{"the model fails with a code", func(context.Context, model.Request) (model.Answer, error) {
			return model.Answer{}, errcode.New(errcode.ContextExceeded, "too long")
		}, errcode.ContextExceeded},
		{"the model panics", func(context.Context, model.Request) (model.Answer, error) { panic("at 10.0.0.7") }, errcode.LLMCallFailed},
		{"an unknown finish", func(context.Context, model.Request) (model.Answer, error) {
			return model.Answer{Finish: "length"}, nil
		}, errcode.LLMCallFailed},
		{"no finish", func(context.Context, model.Request) (model.Answer, error) { return model.Answer{}, nil }, errcode.LLMCallFailed},
		{"a tool call finish without calls", func(context.Context, model.Request) (model.Answer, error) {
			return model.Answer{Finish: model.FinishToolCalls}, nil
		}, errcode.LLMCallFailed},
		{"an end with calls", func(context.Context, model.Request) (model.Answer, error) {
			a := callTools("put_artifact", obj{"type": "t", "content": 1})
			a.Finish = model.FinishEnd
			return a, nil
		}, errcode.LLMCallFailed},
		{"a value that is not JSON", func(context.Context, model.Request) (model.Answer, error) {
			return model.Answer{Finish: model.FinishEnd, Value: json.RawMessage(`{"a":`)}, nil
		}, errcode.LLMCallFailed},
		{"a value nested too deeply", func(context.Context, model.Request) (model.Answer, error) {
			return model.Answer{Finish: model.FinishEnd, Value: nestedArrays(9_999)}, nil
		}, errcode.LLMCallFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log strings.Builder
			fx := fixtureConfig{
				configure: func(config *runtime.Config) { config.Rounds = 3; config.Log = slog.New(slog.NewTextHandler(&log, nil)) },
				model: modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
					if r.Self.Role == "root" {
						return delegate(r, "worker", "artifact"), nil
					}
					return c.work(ctx, r)
				}),
			}.open(t)
			task := fx.run(t, org.TaskSpec{})
			var got errorNotice
			if err := json.Unmarshal(task.Result, &got); err != nil {
				t.Fatalf("%v %s\n%s", err, task.Result, fx.eventLog(t))
			}
			first := bodiesOf[journal.MessageSent](t, fx)[1].Message
			if got.Kind != "error" || got.Type != c.code || got.Agent != first.To || got.Task != task.ID || got.Original != first.ID || got.Timestamp.IsZero() || got.Message == "" {
				t.Errorf("notice %s; want errorType %q", task.Result, c.code)
			}
			if strings.Contains(got.Message, "10.0.0.7") {
				t.Errorf("the notice contains internal details: %s", got.Message)
			}
			if strings.Contains(got.Message, "see the log") && !strings.Contains(log.String(), "10.0.0.7") {
				t.Errorf("the log does not have the cause: %s", log.String())
			}
		})
	}
}

func nestedArrays(depth int) json.RawMessage {
	return json.RawMessage(strings.Repeat("[", depth) + strings.Repeat("]", depth))
}

func TestAgent_FailedRootTurnFailsTask(t *testing.T) {
	for _, c := range []struct {
		name string
		work modelFunc
		code errcode.Code
	}{
		{"too many rounds", func(context.Context, model.Request) (model.Answer, error) {
			return callTools("find_role_by_name", obj{"name": "x"}), nil
		}, errcode.MaxToolRounds},
		{"the model fails", func(context.Context, model.Request) (model.Answer, error) { return model.Answer{}, errors.New("no") }, errcode.LLMCallFailed},
		{"a tool call finish without calls", func(context.Context, model.Request) (model.Answer, error) {
			return model.Answer{Finish: model.FinishToolCalls}, nil
		}, errcode.LLMCallFailed},
		{"a value that is not JSON", func(context.Context, model.Request) (model.Answer, error) {
			return model.Answer{Finish: model.FinishEnd, Value: json.RawMessage(`nonsense`)}, nil
		}, errcode.LLMCallFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			fx := fixtureConfig{model: c.work, configure: func(c *runtime.Config) { c.Rounds = 3 }}.open(t)
			task := fx.run(t, org.TaskSpec{})
			fx.wantResult(t, task, "", c.code)
			if task.Status != org.Failed {
				t.Errorf("the task is %s, want failed", task.Status)
			}
		})
	}
}

func TestAgent_RoundLimitOfRole(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(model.Request) model.Answer { return callTools("put_artifact", obj{"type": "t", "content": 1}) }))
	if _, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "worker", Use: groupSet("artifact"), Limits: org.AgentLimits{Rounds: 2}}); err != nil {
		t.Fatal(err)
	}
	fx.wantResult(t, fx.run(t, org.TaskSpec{Role: "worker"}), "", errcode.MaxToolRounds)
	if n := len(bodiesOf[journal.ToolResult](t, fx)); n != 2 {
		t.Errorf("%d rounds, want 2", n)
	}
}

func TestAgent_InvalidArgumentsAreReported(t *testing.T) {
	ran := 0
	poke := newTool(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) { ran++; return "ok", nil })
	for _, c := range []struct{ name, args string }{
		{"invalid JSON", `{"a":`},
		{"words", `please`},
		{"unbalanced brackets", `1],[2`},
		{"a list", `[1]`},
		{"a text", `"{}"`},
		{"a number", `1`},
		{"null", `null`},
		{"a duplicate key", `{"a":1,"a":2}`},
		{"a duplicate key, escaped", `{"a":1,"\u0061":2}`},
		{"two values", `{} {}`},
		{"deep", `{"a":` + string(nestedArrays(65)) + `}`},
		{"deeper", `{"a":` + string(nestedArrays(9_990)) + `}`},
		{"as deep as encoding/json decodes", `{"a":` + string(nestedArrays(9_998)) + `}`},
		{"deeper than encoding/json decodes", `{"a":` + string(nestedArrays(100_000)) + `}`},
		{"very deep", strings.Repeat("[", 4<<20)},
		{"huge", `{"a":"` + strings.Repeat("x", 9<<20) + `"}`},
		{"not UTF-8", "{\"a\":\"\xff\"}"},
		{"half a surrogate", `{"a":"\ud800"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := fastTempDir(t)
			fx := fixtureConfig{dir: dir, tools: []tool.Tool{poke}, model: answerOnce(callTools("poke", json.RawMessage(c.args), "poke", obj{}))}.open(t)
			ran = 0
			fx.wantResult(t, fx.run(t, fx.workerTask(t, "")), `["invalid_arguments","\"ok\""]`, "")
			if ran != 1 {
				t.Errorf("ran %d times, want once", ran)
			}
			fx.shutdown(t)
			fx = openFixture(t, dir, answerFunc(delegateWithDenial)) // the journal can be read
			fx.events(t)
		})
	}
}

func TestAgent_MissingArgumentsAreEmpty(t *testing.T) {
	poke := newTool(t, "poke", tool.Options{}, func(_ context.Context, in obj) (any, error) { return len(in), nil })
	for _, args := range []string{"", "{}", " { } "} {
		fx := fixtureConfig{tools: []tool.Tool{poke}, model: answerOnce(callTools("poke", json.RawMessage(args)))}.open(t)
		fx.wantResult(t, fx.run(t, fx.workerTask(t, "")), `["0"]`, "")
		fx.shutdown(t)
	}
}

func TestAgent_ToolPanicIsReported(t *testing.T) {
	boom := newTool(t, "boom", tool.Options{}, func(context.Context, obj) (any, error) { panic("secret") })
	look := newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { panic("secret") })
	fx := fixtureConfig{tools: []tool.Tool{boom, look}, model: answerOnce(callTools("boom", obj{}, "look", obj{}, "look", obj{}))}.open(t)
	fx.wantResult(t, fx.run(t, fx.workerTask(t, "")), `["tool_interrupted","tool_execution_failed","tool_execution_failed"]`, "")
	if strings.Contains(fx.eventLog(t), "secret") {
		t.Errorf("the record contains internal details:\n%s", fx.eventLog(t))
	}
}

func TestAbort_IsSilentAndAgentContinues(t *testing.T) {
	for _, c := range []struct{ name, during string }{{"while a call runs", "slow"}, {"during a model request", ""}} {
		t.Run(c.name, func(t *testing.T) {
			free, busy, cut := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			block := func(ctx context.Context) error {
				close(busy)
				<-ctx.Done()
				cut <- context.Cause(ctx)
				return ctx.Err()
			}
			slow := newTool(t, "slow", tool.Options{}, func(ctx context.Context, _ obj) (any, error) { return nil, block(ctx) })
			fx := fixtureConfig{tools: []tool.Tool{slow}, model: blockingRoot(free, func(ctx context.Context, r model.Request) (model.Answer, error) {
				switch {
				case len(messages(r)) == 2:
					return endWith("second"), nil
				case c.during == "slow":
					return callTools("slow", obj{}, "slow", obj{}), nil
				}
				return endWith("late"), block(ctx)
			})}.open(t)
			id := fx.start(t, org.TaskSpec{})
			agent := fx.spawnAgent(t, fx.topAgent(t, id), workerSpec)
			fx.send(t, agent, `"one"`)
			<-busy
			if err := fx.AbortTurn(agent); err != nil {
				t.Fatal(err)
			}
			<-cut
			fx.waitEvent(t, func(e journal.Event) bool {
				f, ok := e.Body.(journal.TurnFailed)
				return ok && f.Code == errcode.TurnAborted
			})
			fx.send(t, agent, `"two"`)
			fx.waitEvent(t, func(e journal.Event) bool {
				m, ok := e.Body.(journal.MessageSent)
				return ok && m.Message.From == string(agent)
			})
			close(free)
			fx.wait(t, id)
			var heard []string
			for _, m := range bodiesOf[journal.MessageSent](t, fx) {
				if m.Message.From == string(agent) {
					heard = append(heard, string(m.Message.Payload))
				}
			}
			if diff := cmp.Diff([]string{`{"text":"second"}`}, heard); diff != "" {
				t.Errorf("messages to the parent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAbort_IdleAgentIsConflict(t *testing.T) {
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	id := fx.start(t, org.TaskSpec{})
	agent := fx.spawnAgent(t, fx.topAgent(t, id), org.RoleSpec{Name: "worker", Use: groupSet()})
	if err := fx.AbortTurn(agent); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("idle agent: %v, want conflict", err)
	}
	if err := fx.AbortTurn("nobody"); errcode.CodeOf(err) != errcode.AgentNotFound {
		t.Errorf("unknown agent: %v, want agent_not_found", err)
	}
	close(free)
	fx.wait(t, id)
}

// A context that is not cancelled stays registered with its parent, so one for
// each turn of an agent would be a leak.
func TestAgent_TurnContextEnds(t *testing.T) {
	var turn context.Context
	fx := openFixture(t, "", modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
		turn = ctx
		return endWith("x"), nil
	}))
	fx.run(t, org.TaskSpec{})
	if turn.Err() == nil {
		t.Error("the task has ended and the context of its turn is not cancelled")
	}
}

func TestAgent_ContinuedAnswersReachUser(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		if n := answerCount(r); n < 3 {
			return model.Answer{Finish: model.FinishContinue, Text: fmt.Sprint("part ", n)}
		}
		return endWith("whole")
	}))
	fx.wantResult(t, fx.run(t, org.TaskSpec{}), `"whole"`, "")
	var got []string
	ids := map[string]bool{}
	for _, m := range bodiesOf[journal.MessageSent](t, fx)[1:] {
		ids[m.Message.ID] = true
		got = append(got, m.Message.To+" "+string(m.Message.Payload))
	}
	want := []string{`user {"text":"part 0"}`, `user {"text":"part 1"}`, `user {"text":"part 2"}`, `user {"text":"whole"}`}
	if diff := cmp.Diff(want, got); diff != "" || len(ids) != len(want) {
		t.Errorf("%d ids (-want +got):\n%s", len(ids), diff)
	}
}
