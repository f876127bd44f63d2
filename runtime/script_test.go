package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model/script"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// hires is the brain of a root that gives one worker work and hands on what
// it reports.
const hires = `
const brief = {objective: "o", constraints: [], inputs: "i", outputs: "o", completion_criteria: "c"};
function* hire(...groups) {
	const worker = yield call("create_role", {name: "worker", rolePrompt: "", toolGroups: groups});
	return yield call("spawn_agent_with_task", {roleId: worker.id, taskBrief: brief, initialMessage: "go"});
}
role("root", function* (task) {
	yield* hire("artifact", "probe");
	return (yield receive()).payload;
});
`

func scripted(t *testing.T, source string) *script.Model {
	t.Helper()
	return limited(t, source, time.Minute)
}

// limited is scripted with a time for each step.
func limited(t *testing.T, source string, step time.Duration) *script.Model {
	t.Helper()
	m, err := script.Config{StepTimeout: step}.New("brain.js", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestABrainThatFailsFailsItsTurn(t *testing.T) {
	for _, c := range []struct{ name, worker, says string }{
		{"throws", `role("worker", function* () { throw new Error("out of coffee"); });`, "out of coffee"},
		{"throws later", `role("worker", function* () { yield call("put_artifact", {type: "t", content: 1}); null.x; });`, "step 2"},
		{"loops for ever", `role("worker", function* () { for (;;); });`, "ran out of time"},
		{"yields nonsense", `role("worker", function* () { yield 42; });`, "the script yielded 42"},
		{"yields a list of nonsense", `role("worker", function* () { yield [say("x")]; });`, "a list may contain calls only"},
		{"returns a function", `role("worker", function* () { return () => 1; });`, "which JSON cannot represent"},
		{"is missing", ``, `no script for role "worker"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			step := time.Minute
			if c.name == "loops for ever" {
				step = 200 * time.Millisecond
			}
			h := open(t, "", limited(t, hires+c.worker, step))
			got := decode(h.run(t, org.TaskSpec{}).Result)
			if got["errorType"] != "llm_call_failed" || !strings.Contains(fmt.Sprint(got["message"]), c.says) {
				t.Errorf("root hears %v; want llm_call_failed with %q\n%s", got, c.says, h.story(t))
			}
		})
	}
}

func TestABrainThatChangedSinceTheRecordDiverges(t *testing.T) {
	dir := scratch(t)
	reached := make(chan struct{})
	stuck := probe(t, "stuck", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
		close(reached)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	const works = `role("worker", function* () { yield call("stuck", {}); return "done"; });`
	h := plan{dir: dir, tools: []tool.Tool{stuck}, model: scripted(t, hires+works)}.open(t)
	id := h.start(t, org.TaskSpec{})
	h.reach(t, id, reached)
	h.leave(t)

	// The worker still does what it did; root asks for another role first.
	changed := strings.Replace(hires, `name: "worker"`, `name: "painter"`, 1) + works
	h = plan{dir: dir, tools: []tool.Tool{stuck}, model: scripted(t, changed)}.open(t)
	h.resume(t, id)
	task := h.wait(t, id)
	h.want(t, task, "", errcode.ScriptDiverged)
	for _, part := range []string{"step 1:", "worker", "painter"} {
		if !strings.Contains(task.Error.Message, part) {
			t.Errorf("%q does not name %s", task.Error.Message, part)
		}
	}
	for _, e := range said[journal.ToolError](t, h) {
		if e.Tool != "stuck" || e.Code != errcode.ToolInterrupted {
			t.Errorf("%s ended as %s, want stuck as tool_interrupted", e.Tool, e.Code)
		}
	}
}

func TestABrainGoesOnAfterARestartAsIfNothingHappened(t *testing.T) {
	dir := scratch(t)
	reached := make(chan struct{}, 1)
	look := probe(t, "look", tool.Options{Effect: tool.ReadOnly}, func(ctx context.Context, in obj) (any, error) {
		if in["slow"] == nil {
			return in["n"], nil
		}
		select {
		case reached <- struct{}{}:
			<-ctx.Done()
			return nil, ctx.Err()
		default:
			return "slow", nil
		}
	})
	const works = `role("worker", function* (task) {
		const seen = [task.payload.text];
		console.log("begin");
		seen.push(...yield [call("look", {n: 1}), call("look", {n: 2})]);
		yield say("half");
		seen.push(yield call("look", {slow: true}));
		return seen;
	});`
	m := scripted(t, hires+works)
	reached <- struct{}{} // full: look does not wait
	whole := plan{tools: []tool.Tool{look}, model: m}.open(t)
	whole.want(t, whole.run(t, org.TaskSpec{}), `["go",1,2,"slow"]`, "")
	<-reached

	h := plan{dir: dir, tools: []tool.Tool{look}, model: m}.open(t)
	id := h.start(t, org.TaskSpec{})
	h.until(t, func(e journal.Event) bool {
		c, ok := e.Body.(journal.ToolCall)
		return ok && strings.Contains(string(c.Args), "slow")
	})
	h.reach(t, id, reached) // it is in the tool, and
	reached <- struct{}{}   // the next one does not wait there
	h.leave(t)
	h = plan{dir: dir, tools: []tool.Tool{look}, model: scripted(t, hires+works)}.open(t)
	h.resume(t, id)
	h.want(t, h.wait(t, id), `["go",1,2,"slow"]`, "")
	if diff := cmp.Diff(summary(t, whole), summary(t, h)); diff != "" {
		t.Errorf("the two runs differ but for the call decided again (-whole +resumed):\n%s", diff)
	}
}

// summary tells what the worker said and what its calls came to, once each.
func summary(t *testing.T, h *house) []string {
	var list []string
	for _, e := range h.events(t) {
		if e.Role != "worker" {
			continue // others wait for it at one time or another
		}
		switch b := e.Body.(type) {
		case journal.ModelAnswered:
			list = append(list, fmt.Sprint(e.Role, " answers ", b.Answer.Finish, " ", b.Answer.Text, " ", b.Answer.Log, len(b.Answer.Calls)))
		case journal.MessageSent:
			list = append(list, e.Role+" writes")
		case journal.ToolResult:
			list = append(list, e.Role+" has "+b.Tool)
		}
	}
	return list
}

func TestMailThatComesDuringATurnIsReceivedInItOrStartsTheNext(t *testing.T) {
	for _, c := range []struct{ name, reads, want string }{
		{"received", `const more = yield receive(); seen.push(more.payload);`, `[["go","one"],["two"]]`},
		{"left", ``, `[["go"],["one"],["two"]]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			running, run := make(chan struct{}), make(chan struct{})
			slow := probe(t, "slow", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
				close(running)
				<-run
				return nil, ctx.Err()
			})
			h := plan{tools: []tool.Tool{slow}, model: scripted(t, hires[:strings.Index(hires, "role(")]+`
				role("root", function* (task) {
					yield* hire("probe");
					const heard = [];
					while (heard.flat().length < 3) heard.push((yield receive()).payload);
					return heard;
				});
				role("worker", function* (task) {
					const seen = [task.payload.text ?? task.payload];
					if (seen[0] === "go") {
						yield call("slow", {});
						`+c.reads+`
					}
					return seen;
				});`)}.open(t)
			id := h.start(t, org.TaskSpec{})
			<-running
			agent := happened[journal.AgentSpawned](t, h)[1].Agent
			h.tell(t, agent, `"one"`)
			h.tell(t, agent, `"two"`)
			close(run)
			h.want(t, h.wait(t, id), c.want, "")
		})
	}
}

// A turn that fails is over; the mail it had not read yet is not.
func TestABrainThatFailsWithUnreadMailIsAskedAgain(t *testing.T) {
	running, run := make(chan struct{}), make(chan struct{})
	slow := probe(t, "slow", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
		close(running)
		<-run
		return nil, ctx.Err()
	})
	h := plan{tools: []tool.Tool{slow}, model: scripted(t, hires[:strings.Index(hires, "role(")]+`
		role("root", function* (task) {
			yield* hire("probe");
			const heard = [];
			while (heard.length < 2) { const m = yield receive(); heard.push(m.payload.errorType ?? m.payload); }
			return heard;
		});
		role("worker", function* (task) {
			if (task.payload.text !== "go") return task.payload;
			yield call("slow", {});
			throw new Error("no");
		});`)}.open(t)
	id := h.start(t, org.TaskSpec{})
	<-running
	h.tell(t, happened[journal.AgentSpawned](t, h)[1].Agent, `"unread"`)
	close(run)
	h.want(t, h.wait(t, id), `["llm_call_failed","unread"]`, "")
}

func TestSelfAndToolsAreThoseOfTheStep(t *testing.T) {
	open1 := probe(t, "open", tool.Options{State: "open", States: []string{"shut"}}, func(context.Context, obj) (any, error) { return "ok", nil })
	h := plan{tools: []tool.Tool{open1}, model: scripted(t, `role("*", function* (task) {
		const before = [self.state, tools.includes("open")];
		yield call("open", {});
		return [self.role, task.from, before, [self.state, tools.includes("open")]];
	});`)}.open(t)
	h.want(t, h.run(t, h.bound(t, "shut")), `["worker","user",["shut",true],["open",false]]`, "")
}
