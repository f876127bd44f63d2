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

// bound gives a task to one agent of the role worker, which may use probe and
// artifact.
func (h *house) bound(t *testing.T, state string) org.TaskSpec {
	t.Helper()
	if _, err := h.CreateRole(t.Context(), called(operator), org.RoleSpec{Name: "worker", Use: use("probe", "artifact")}); err != nil {
		t.Fatal(err)
	}
	return org.TaskSpec{Role: "worker", State: state}
}

// outcomes gives what the calls came to: the code of a failure, else the result.
func outcomes(r model.Request) []string {
	var list []string
	for _, result := range results(r) {
		text := string(result.Content)
		if result.IsError {
			text = fmt.Sprint(decode(result.Content)["error"])
		}
		list = append(list, text)
	}
	return list
}

// once makes one answer, then ends with what its calls came to.
func once(a model.Answer) brain {
	return func(r model.Request) model.Answer {
		if answers(r) == 0 {
			return a
		}
		return model.Answer{Finish: model.FinishEnd, Value: encode(outcomes(r))}
	}
}

func TestReadOnlyCallsOfOneAnswerRunSideBySideAndTheirResultsStandInOrder(t *testing.T) {
	var meet sync.WaitGroup // each call waits for the others
	meet.Add(3)
	look := probe(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) {
		meet.Done()
		meet.Wait()
		return in["n"], nil
	})
	h := plan{tools: []tool.Tool{look}, model: once(do("look", obj{"n": 1}, "look", obj{"n": 2}, "look", obj{"n": 3}))}.open(t)
	h.want(t, h.run(t, h.bound(t, "")), `["1","2","3"]`, "")
}

func TestMutatingCallsOfOneAnswerRunOneAfterAnother(t *testing.T) {
	var inside, most atomic.Int32
	var order []any
	poke := probe(t, "poke", tool.Options{}, func(_ context.Context, in obj) (any, error) {
		most.Store(max(most.Load(), inside.Add(1)))
		defer inside.Add(-1)
		order = append(order, in["n"])
		return in["n"], nil
	})
	look := probe(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) {
		if inside.Load() > 0 {
			t.Error("look runs beside poke")
		}
		return in["n"], nil
	})
	h := plan{tools: []tool.Tool{poke, look}, model: once(do(
		"poke", obj{"n": 1}, "poke", obj{"n": 2}, "look", obj{"n": 3}, "poke", obj{"n": 4}, "look", obj{"n": 5}))}.open(t)
	h.want(t, h.run(t, h.bound(t, "")), `["1","2","3","4","5"]`, "")
	if got := fmt.Sprint(order); most.Load() != 1 || got != "[1 2 4]" {
		t.Errorf("%d at once, in the order %s", most.Load(), got)
	}
}

func TestADenialInTheMiddleStopsNothing(t *testing.T) {
	poke := probe(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) { return "ok", nil })
	h := plan{tools: []tool.Tool{poke}, model: once(do(
		"poke", obj{}, "read_file", obj{"path": "x"}, "poke", obj{}, "nothing_known", obj{}, "put_artifact", obj{}, "poke", obj{}))}.open(t)
	h.want(t, h.run(t, h.bound(t, "")), `["\"ok\"","tool_not_available","\"ok\"","unknown_tool","invalid_arguments","\"ok\""]`, "")
}

func TestAStateIsEnteredBySuccessAndSeenByTheNextCall(t *testing.T) {
	dir := scratch(t)
	var fail atomic.Bool
	fail.Store(true)
	tools := []tool.Tool{
		probe(t, "open", tool.Options{State: "open", States: []string{"shut"}}, func(context.Context, obj) (any, error) {
			if fail.Swap(false) {
				return nil, errors.New("it is stuck")
			}
			return "opened", nil
		}),
		probe(t, "enter", tool.Options{Effect: tool.ReadOnly, States: []string{"open"}}, func(context.Context, obj) (any, error) { return "in", nil }),
	}
	seen := make(chan model.Request, 1)
	reached := make(chan struct{})
	h := plan{dir: dir, tools: tools, model: mind(func(ctx context.Context, r model.Request) (model.Answer, error) {
		if answers(r) == 0 {
			return do("enter", obj{}, "open", obj{}, "enter", obj{}, "open", obj{}, "enter", obj{}, "open", obj{}), nil
		}
		close(reached)
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	})}.open(t)
	id := h.start(t, h.bound(t, "shut"))
	h.reach(t, id, reached)
	h.leave(t)

	h = plan{dir: dir, tools: tools, model: brain(func(r model.Request) model.Answer {
		seen <- r
		return model.Answer{Finish: model.FinishEnd, Value: encode(outcomes(r))}
	})}.open(t)
	h.resume(t, id)
	h.want(t, h.wait(t, id), `["tool_not_available","tool_execution_failed","tool_not_available","\"opened\"","\"in\"","tool_not_available"]`, "")
	r := <-seen
	if r.Self.State != "open" || !slices.Contains(r.Tools, "enter") || slices.Contains(r.Tools, "open") {
		t.Errorf("after the restart the model sees state %q and tools %v", r.Self.State, r.Tools)
	}
	if got, want := said[journal.StateTransition](t, h), (journal.StateTransition{Tool: "open", From: "shut", To: "open"}); len(got) != 1 || got[0] != want {
		t.Errorf("transitions on record: %v, want %v", got, want)
	}
	if a, _ := h.AgentRecord(t.Context(), h.top(t, id)); a.State != "open" {
		t.Errorf("the agent's record says state %q", a.State)
	}
}

// notice is what a parent gets when a turn ends in an error.
type notice struct {
	Kind      string          `json:"kind"`
	Type      errcode.Code    `json:"errorType"`
	Message   string          `json:"message"`
	Agent     string          `json:"agentId"`
	Original  string          `json:"originalMessageId"`
	Task      identity.TaskID `json:"taskId"`
	Timestamp time.Time       `json:"timestamp"`
}

func TestATurnThatEndsInAnErrorIsToldToTheParent(t *testing.T) {
	for _, c := range []struct {
		name string
		work mind
		code errcode.Code
	}{
		{"too many rounds", func(context.Context, model.Request) (model.Answer, error) {
			return do("put_artifact", obj{"type": "t", "content": 1}), nil
		}, errcode.MaxToolRounds},
		{"the model fails", func(context.Context, model.Request) (model.Answer, error) {
			return model.Answer{}, errors.New("no route to 10.0.0.7")
		}, errcode.LLMCallFailed},
		{"the model fails with a code", func(context.Context, model.Request) (model.Answer, error) {
			return model.Answer{}, errcode.New(errcode.ContextExceeded, "too long")
		}, errcode.ContextExceeded},
		{"the model panics", func(context.Context, model.Request) (model.Answer, error) { panic("at 10.0.0.7") }, errcode.LLMCallFailed},
		{"an end nobody knows", func(context.Context, model.Request) (model.Answer, error) {
			return model.Answer{Finish: "length"}, nil
		}, errcode.LLMCallFailed},
		{"no end", func(context.Context, model.Request) (model.Answer, error) { return model.Answer{}, nil }, errcode.LLMCallFailed},
		{"calls of nothing", func(context.Context, model.Request) (model.Answer, error) {
			return model.Answer{Finish: model.FinishToolCalls}, nil
		}, errcode.LLMCallFailed},
		{"an end with calls", func(context.Context, model.Request) (model.Answer, error) {
			a := do("put_artifact", obj{"type": "t", "content": 1})
			a.Finish = model.FinishEnd
			return a, nil
		}, errcode.LLMCallFailed},
		{"a value that is no JSON", func(context.Context, model.Request) (model.Answer, error) {
			return model.Answer{Finish: model.FinishEnd, Value: json.RawMessage(`{"a":`)}, nil
		}, errcode.LLMCallFailed},
		{"a value nobody can read", func(context.Context, model.Request) (model.Answer, error) {
			return model.Answer{Finish: model.FinishEnd, Value: nested(9_999)}, nil
		}, errcode.LLMCallFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log strings.Builder
			h := plan{
				config: func(config *runtime.Config) { config.Rounds = 3; config.Log = slog.New(slog.NewTextHandler(&log, nil)) },
				model: mind(func(ctx context.Context, r model.Request) (model.Answer, error) {
					if r.Self.Role == "root" {
						return manage(r, "worker", "artifact"), nil
					}
					return c.work(ctx, r)
				}),
			}.open(t)
			task := h.run(t, org.TaskSpec{})
			var got notice
			if err := json.Unmarshal(task.Result, &got); err != nil {
				t.Fatalf("%v %s\n%s", err, task.Result, h.story(t))
			}
			first := said[journal.MessageSent](t, h)[1].Message
			if got.Kind != "error" || got.Type != c.code || got.Agent != first.To || got.Task != task.ID || got.Original != first.ID || got.Timestamp.IsZero() || got.Message == "" {
				t.Errorf("notice %s; want errorType %q", task.Result, c.code)
			}
			if strings.Contains(got.Message, "10.0.0.7") {
				t.Errorf("the notice tells what is inside the process: %s", got.Message)
			}
			if strings.Contains(got.Message, "see the log") && !strings.Contains(log.String(), "10.0.0.7") {
				t.Errorf("the log has not the cause: %s", log.String())
			}
		})
	}
}

func nested(depth int) json.RawMessage {
	return json.RawMessage(strings.Repeat("[", depth) + strings.Repeat("]", depth))
}

func TestARootsTurnThatEndsInAnErrorFailsItsTask(t *testing.T) {
	for _, c := range []struct {
		name string
		work mind
		code errcode.Code
	}{
		{"too many rounds", func(context.Context, model.Request) (model.Answer, error) {
			return do("find_role_by_name", obj{"name": "x"}), nil
		}, errcode.MaxToolRounds},
		{"the model fails", func(context.Context, model.Request) (model.Answer, error) { return model.Answer{}, errors.New("no") }, errcode.LLMCallFailed},
		{"calls of nothing", func(context.Context, model.Request) (model.Answer, error) {
			return model.Answer{Finish: model.FinishToolCalls}, nil
		}, errcode.LLMCallFailed},
		{"a value that is no JSON", func(context.Context, model.Request) (model.Answer, error) {
			return model.Answer{Finish: model.FinishEnd, Value: json.RawMessage(`nonsense`)}, nil
		}, errcode.LLMCallFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := plan{model: c.work, config: func(c *runtime.Config) { c.Rounds = 3 }}.open(t)
			task := h.run(t, org.TaskSpec{})
			h.want(t, task, "", c.code)
			if task.Status != org.Failed {
				t.Errorf("the task is %s, want failed", task.Status)
			}
		})
	}
}

func TestARoleMayHaveARoundLimitOfItsOwn(t *testing.T) {
	h := open(t, "", brain(func(model.Request) model.Answer { return do("put_artifact", obj{"type": "t", "content": 1}) }))
	if _, err := h.CreateRole(t.Context(), called(operator), org.RoleSpec{Name: "worker", Use: use("artifact"), Limits: org.Limits{Rounds: 2}}); err != nil {
		t.Fatal(err)
	}
	h.want(t, h.run(t, org.TaskSpec{Role: "worker"}), "", errcode.MaxToolRounds)
	if n := len(said[journal.ToolResult](t, h)); n != 2 {
		t.Errorf("%d rounds, want 2", n)
	}
}

func TestArgumentsThatCannotBeReadAreARefusalTheModelReads(t *testing.T) {
	ran := 0
	poke := probe(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) { ran++; return "ok", nil })
	for _, c := range []struct{ name, args string }{
		{"no JSON", `{"a":`},
		{"words", `please`},
		{"brackets that close another's", `1],[2`},
		{"a list", `[1]`},
		{"a text", `"{}"`},
		{"a number", `1`},
		{"null", `null`},
		{"a key twice", `{"a":1,"a":2}`},
		{"a key twice, once escaped", `{"a":1,"\u0061":2}`},
		{"two values", `{} {}`},
		{"deep", `{"a":` + string(nested(65)) + `}`},
		{"deeper", `{"a":` + string(nested(9_990)) + `}`},
		{"as deep as JSON is read", `{"a":` + string(nested(9_998)) + `}`},
		{"deeper than JSON is read", `{"a":` + string(nested(100_000)) + `}`},
		{"very deep", strings.Repeat("[", 4<<20)},
		{"huge", `{"a":"` + strings.Repeat("x", 9<<20) + `"}`},
		{"not UTF-8", "{\"a\":\"\xff\"}"},
		{"half a surrogate", `{"a":"\ud800"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := scratch(t)
			h := plan{dir: dir, tools: []tool.Tool{poke}, model: once(do("poke", json.RawMessage(c.args), "poke", obj{}))}.open(t)
			ran = 0
			h.want(t, h.run(t, h.bound(t, "")), `["invalid_arguments","\"ok\""]`, "")
			if ran != 1 {
				t.Errorf("ran %d times, want once", ran)
			}
			h.leave(t)
			h = open(t, dir, brain(team)) // what was recorded can be read
			h.events(t)
		})
	}
}

func TestArgumentsLeftOutAreNone(t *testing.T) {
	poke := probe(t, "poke", tool.Options{}, func(_ context.Context, in obj) (any, error) { return len(in), nil })
	for _, args := range []string{"", "{}", " { } "} {
		h := plan{tools: []tool.Tool{poke}, model: once(do("poke", json.RawMessage(args)))}.open(t)
		h.want(t, h.run(t, h.bound(t, "")), `["0"]`, "")
		h.leave(t)
	}
}

func TestAToolThatPanicsIsAFailureTheModelReads(t *testing.T) {
	boom := probe(t, "boom", tool.Options{}, func(context.Context, obj) (any, error) { panic("secret") })
	look := probe(t, "look", tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { panic("secret") })
	h := plan{tools: []tool.Tool{boom, look}, model: once(do("boom", obj{}, "look", obj{}, "look", obj{}))}.open(t)
	h.want(t, h.run(t, h.bound(t, "")), `["tool_interrupted","tool_execution_failed","tool_execution_failed"]`, "")
	if strings.Contains(h.story(t), "secret") {
		t.Errorf("the record tells what is inside the process:\n%s", h.story(t))
	}
}

func TestAnAbortIsSilentAndTheAgentAnswersItsNextMessage(t *testing.T) {
	for _, c := range []struct{ name, during string }{{"while a call runs", "slow"}, {"while the model thinks", ""}} {
		t.Run(c.name, func(t *testing.T) {
			free, busy, cut := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			block := func(ctx context.Context) error {
				close(busy)
				<-ctx.Done()
				cut <- context.Cause(ctx)
				return ctx.Err()
			}
			slow := probe(t, "slow", tool.Options{}, func(ctx context.Context, _ obj) (any, error) { return nil, block(ctx) })
			h := plan{tools: []tool.Tool{slow}, model: busyRoot(free, func(ctx context.Context, r model.Request) (model.Answer, error) {
				switch {
				case len(messages(r)) == 2:
					return end("second"), nil
				case c.during == "slow":
					return do("slow", obj{}, "slow", obj{}), nil
				}
				return end("late"), block(ctx)
			})}.open(t)
			id := h.start(t, org.TaskSpec{})
			agent := h.hire(t, h.top(t, id), worker)
			h.tell(t, agent, `"one"`)
			<-busy
			if err := h.Abort(agent); err != nil {
				t.Fatal(err)
			}
			<-cut
			h.until(t, func(e journal.Event) bool {
				f, ok := e.Body.(journal.Failed)
				return ok && f.Code == errcode.TurnAborted
			})
			h.tell(t, agent, `"two"`)
			h.until(t, func(e journal.Event) bool {
				m, ok := e.Body.(journal.MessageSent)
				return ok && m.Message.From == string(agent)
			})
			close(free)
			h.wait(t, id)
			var heard []string
			for _, m := range said[journal.MessageSent](t, h) {
				if m.Message.From == string(agent) {
					heard = append(heard, string(m.Message.Payload))
				}
			}
			if diff := cmp.Diff([]string{`{"text":"second"}`}, heard); diff != "" {
				t.Errorf("what its parent heard (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAbortOfOneWhoRestsIsAConflict(t *testing.T) {
	free := make(chan struct{})
	h := open(t, "", busyRoot(free, waits))
	id := h.start(t, org.TaskSpec{})
	agent := h.hire(t, h.top(t, id), org.RoleSpec{Name: "worker", Use: use()})
	if err := h.Abort(agent); errcode.Of(err) != errcode.Conflict {
		t.Errorf("at rest: %v, want conflict", err)
	}
	if err := h.Abort("nobody"); errcode.Of(err) != errcode.AgentNotFound {
		t.Errorf("nobody: %v, want agent_not_found", err)
	}
	close(free)
	h.wait(t, id)
}

// A context that nobody cancels stays with its parent for ever: one for each
// turn of an agent would be a leak.
func TestTheContextOfATurnEndsWithIt(t *testing.T) {
	var turn context.Context
	h := open(t, "", mind(func(ctx context.Context, r model.Request) (model.Answer, error) {
		turn = ctx
		return end("x"), nil
	}))
	h.run(t, org.TaskSpec{})
	if turn.Err() == nil {
		t.Error("the task is over and the context of its turn goes on")
	}
}

func TestAMessageOfEveryAnswerThatGoesOnReachesTheUser(t *testing.T) {
	h := open(t, "", brain(func(r model.Request) model.Answer {
		if n := answers(r); n < 3 {
			return model.Answer{Finish: model.FinishContinue, Text: fmt.Sprint("part ", n)}
		}
		return end("whole")
	}))
	h.want(t, h.run(t, org.TaskSpec{}), `"whole"`, "")
	var got []string
	ids := map[string]bool{}
	for _, m := range said[journal.MessageSent](t, h)[1:] {
		ids[m.Message.ID] = true
		got = append(got, m.Message.To+" "+string(m.Message.Payload))
	}
	want := []string{`user {"text":"part 0"}`, `user {"text":"part 1"}`, `user {"text":"part 2"}`, `user {"text":"whole"}`}
	if diff := cmp.Diff(want, got); diff != "" || len(ids) != len(want) {
		t.Errorf("%d ids (-want +got):\n%s", len(ids), diff)
	}
}
