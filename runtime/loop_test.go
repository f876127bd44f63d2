package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// A model that goes round in a loop is told, and its turn ends within twenty requests of the
// task. The record says which calls it repeated.
func TestLoop_EndsTask(t *testing.T) {
	hire := func(r model.Request, n int) model.Answer {
		return callTools("spawn_agent_with_task", obj{"roleId": "worker", "taskBrief": taskBrief(), "initialMessage": "go"})
	}
	send := func(r model.Request, n int) model.Answer {
		return callTools("send_message", obj{"to": "user", "payload": "still here"})
	}
	cycle := func(length int) func(model.Request, int) model.Answer {
		return func(_ model.Request, n int) model.Answer { return callTools("stamp", obj{"n": n % length}) }
	}
	for name, c := range map[string]struct {
		answer func(r model.Request, n int) model.Answer
		told   int      // answers that root has given when it is told
		ended  int      // answers of root
		calls  []string // of the record
		times  int
	}{
		"hires by the same call":   {hire, 3, 6, []string{"spawn_agent_with_task"}, 6},
		"sends the same message":   {send, 3, 6, []string{"send_message"}, 6},
		"makes the same call":      {cycle(1), 3, 6, []string{"stamp"}, 6},
		"alternates two calls":     {cycle(2), 6, 12, []string{"stamp", "stamp"}, 6},
		"goes round through three": {cycle(3), 9, 16, []string{"stamp", "stamp", "stamp"}, 5},
		"goes round through four":  {cycle(4), 12, 16, []string{"stamp", "stamp", "stamp", "stamp"}, 4},
		"sends among other calls": {func(r model.Request, n int) model.Answer {
			if n%2 == 0 {
				return send(r, n)
			}
			return callTools("stamp", obj{"n": n})
		}, 5, 11, []string{"send_message"}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			told := 0
			fx := fixtureConfig{tools: []tool.Tool{stampTool(t)}, model: withWindow(100_000, answerFunc(func(r model.Request) model.Answer {
				if requests.Add(1) > 40 {
					return endWith("no loop was found")
				}
				if r.Self.Role == "worker" {
					return endWith("worked")
				}
				if told == 0 && strings.Contains(r.Note, "## You repeat yourself") {
					told = answerCount(r)
				}
				return c.answer(r, answerCount(r))
			}))}.open(t)
			fx.declare(t, org.RoleSpec{Name: "worker", Use: groupSet()})
			lead := fx.declare(t, org.RoleSpec{Name: "lead", Use: groupSet("org_management", "probe"), Grant: groupSet("org_management", "probe")})
			task := fx.run(t, org.TaskSpec{Role: string(lead.ID)})
			fx.wantResult(t, task, "", errcode.MaxToolRounds)
			if n := requests.Load(); n > 20 || told != c.told {
				t.Errorf("%d requests, told after %d answers; want at most 20 and %d", n, told, c.told)
			}
			failed := bodiesOf[journal.TurnFailed](t, fx)
			if len(failed) != 1 || failed[0].Times != c.times || !slices.Equal(toolsOf(failed[0].Repeated), c.calls) {
				t.Fatalf("recorded %+v, want the calls %v, %d times", failed, c.calls, c.times)
			}
			wantLastCalls(t, fx, failed[0], c.ended, name)
		})
	}
}

// toolsOf returns the names of the tools of calls.
func toolsOf(calls []journal.RepeatedCall) (names []string) {
	for _, c := range calls {
		names = append(names, c.Tool)
	}
	return names
}

// wantLastCalls checks that a lead returned so many answers, and that an event names calls that its
// last answers made.
func wantLastCalls(t *testing.T, fx *fixture, failed journal.TurnFailed, answers int, name string) {
	t.Helper()
	var calls []identity.CallID
	n := 0
	for _, e := range eventsOf[journal.ModelAnswered](t, fx) {
		if e.Role != "lead" {
			continue
		}
		n++
		for _, c := range e.Body.(journal.ModelAnswered).Answer.Calls {
			calls = append(calls, c.ID)
		}
	}
	if n != answers {
		t.Errorf("%d answers, want %d", n, answers)
	}
	last := failed.Repeated[len(failed.Repeated)-1].Call
	if !slices.Contains(calls[len(calls)-2:], last) {
		t.Errorf("%s: the event names call %s, not one of the last", name, last)
	}
}

// stampTool returns a tool whose results differ in ids and times.
func stampTool(t *testing.T) tool.Tool {
	n := 0
	return newTool(t, "stamp", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) {
		n++
		return obj{
			"n": in["n"], "id": n, "requestId": fmt.Sprint("r", n), "tookMs": n, "latency": n, "createdAt": fmt.Sprint(n), "unix": 1_790_000_000 + n,
			"text": fmt.Sprintf("done at 2026-11-23T20:%02d:07.%dZ (%d.%d ms, %ds) by %s in %032x", n%60, n, n, n, n, identity.NewID(), n),
		}, nil
	})
}

// Two results are the same if they differ in ids and times only.
func TestLoop_ResultsThatDifferInSubstance(t *testing.T) {
	for _, c := range []struct {
		name string
		// result is the n-th result of a poll, from 1.
		result func(n int) any
		loop   bool
	}{
		{"the same", func(int) any { return obj{"status": "running"} }, true},
		{"another time", func(n int) any { return obj{"status": "running", "elapsedMs": n} }, true},
		{"another time in a text", func(n int) any { return fmt.Sprintf("%02d:15:30 still running, 1m%ds so far", n, n) }, true},
		{"another date", func(n int) any { return []any{fmt.Sprintf("2026-01-%02d", n)} }, true},
		{"another Unix time", func(n int) any { return []any{1_790_000_000_000 + int64(n)} }, true},
		{"another id", func(n int) any { return obj{"agentId": n, "ref": "artifact:" + identity.NewID()} }, true},
		{"progress", func(n int) any { return obj{"status": "running", "percent": n} }, false},
		{"progress in a text", func(n int) any { return fmt.Sprintf("%d of 20 done", n) }, false},
		{"another status", func(n int) any { return obj{"status": strings.Repeat("x", n)} }, false},
		{"a longer list", func(n int) any { return make([]any, n) }, false},
		{"a hash of a content", func(n int) any { return obj{"sha256": fmt.Sprintf("%064x", n)} }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			polls := 0
			poll := newTool(t, "poll", tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { polls++; return c.result(polls), nil })
			fx := fixtureConfig{tools: []tool.Tool{poll}, model: withWindow(100_000, answerFunc(func(r model.Request) model.Answer {
				if answerCount(r) == 12 {
					return endWith("done")
				}
				return callTools("poll", json.RawMessage([]string{`{"job":"a","n":1}`, `{ "n": 1, "job": "a" }`}[answerCount(r)%2]))
			}))}.open(t)
			task := fx.run(t, fx.groupTask(t, "probe"))
			if c.loop {
				fx.wantResult(t, task, "", errcode.MaxToolRounds)
			} else {
				fx.wantResult(t, task, `"done"`, "")
			}
		})
	}
}

// The same message counts across turns, as long as the agent receives nothing new.
func TestLoop_MessagesAcrossTurns(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply func(n int) string // the n-th answer of the worker, from 1
		send  obj                // what is added to the message
		loop  bool
	}{
		{"the same reply", func(int) string { return "hello" }, nil, true},
		{"a reply with another time", func(n int) string { return fmt.Sprintf("hello at 10:00:%02d", n) }, nil, true},
		{"replies that alternate", func(n int) string { return []string{"hello", "hi"}[n%2] }, nil, true},
		{"other replies", func(n int) string { return fmt.Sprint("page ", n) }, nil, false},
		{"a delay", func(int) string { return "hello" }, obj{"delayMs": 1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			fx := fixtureConfig{model: withWindow(100_000, answerFunc(func(r model.Request) model.Answer {
				n := len(messages(r))
				switch {
				case r.Self.Role == "worker":
					return endWith(c.reply(n))
				case answerCount(r) < 2:
					return delegate(r, "worker")
				case n < 2:
					return waitForMessage()
				case n > 10:
					return endWith("done")
				case lastItemIsMessage(r):
					message := obj{"to": messages(r)[1].From, "payload": "next"}
					for name, value := range c.send {
						message[name] = value
					}
					return callTools("send_message", message)
				}
				return waitForMessage()
			}))}.open(t)
			task := fx.run(t, org.TaskSpec{})
			if !c.loop {
				fx.wantResult(t, task, `"done"`, "")
				return
			}
			fx.wantResult(t, task, "", errcode.MaxToolRounds)
			failed := bodiesOf[journal.TurnFailed](t, fx)
			if len(failed) != 1 || failed[0].Times != 6 || cmp.Diff([]string{"send_message"}, toolsOf(failed[0].Repeated)) != "" {
				t.Errorf("recorded %+v", failed)
			}
		})
	}
}

// Scripts and other models that are no language models may repeat anything.
func TestLoop_IgnoresScripts(t *testing.T) {
	fx := fixtureConfig{tools: []tool.Tool{stampTool(t)}, model: answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 30 || r.Note != "" {
			return endWith(r.Note)
		}
		return callTools("send_message", obj{"to": "user", "payload": "x"}, "stamp", obj{"n": answerCount(r) % 2})
	})}.open(t)
	lead := fx.declare(t, org.RoleSpec{Name: "lead", Use: groupSet("org_management", "probe")})
	fx.wantResult(t, fx.run(t, org.TaskSpec{Role: string(lead.ID)}), `""`, "")
}

// A model that says the same to the user again and again is in a loop, too.
func TestLoop_SaysTheSame(t *testing.T) {
	fx := fixtureConfig{model: withWindow(100_000, answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 12 {
			return endWith("done")
		}
		return model.Answer{Finish: model.FinishContinue, Text: "Working on it."}
	}))}.open(t)
	fx.wantResult(t, fx.run(t, org.TaskSpec{}), "", errcode.MaxToolRounds)
	if n := len(bodiesOf[journal.ModelAnswered](t, fx)); n != 6 {
		t.Errorf("%d answers, want 6", n)
	}
}
