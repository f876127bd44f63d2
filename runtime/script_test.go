package runtime_test

import (
	"context"
	"fmt"
	"log/slog"
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

// hireHelpers is a function for scripts. It creates the role worker and spawns an agent
// of it.
const hireHelpers = `
const brief = {objective: "o", constraints: [], inputs: "i", outputs: "o", completion_criteria: "c"};
function* hire(...groups) {
	const worker = yield call("create_role", {name: "worker", rolePrompt: "", toolGroups: groups});
	return yield call("spawn_agent_with_task", {roleId: worker.id, taskBrief: brief, initialMessage: "go"});
}
`

// hireScript is the script of a root that spawns one worker and ends with its
// report.
const hireScript = hireHelpers + `
role("root", function* (task) {
	yield* hire("artifact", "probe");
	return (yield receive()).payload;
});
`

// newScript returns a script model without a tight time limit.
func newScript(t *testing.T, source string) *script.Model {
	t.Helper()
	return newScriptWithTimeout(t, source, time.Minute)
}

// newScriptWithTimeout returns a script model with a time limit for each step.
func newScriptWithTimeout(t *testing.T, source string, step time.Duration) *script.Model {
	t.Helper()
	m, err := script.Config{StepTimeout: step, Log: slog.New(slog.DiscardHandler)}.New("agents.js", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestScript_FailureFailsTurn(t *testing.T) {
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
				if testing.Short() {
					t.Skip("-short: it loops for two seconds; the tests of model/script do so for less")
				}
				step = 2 * time.Second // also for loading the script
			}
			fx := openFixture(t, "", newScriptWithTimeout(t, hireScript+c.worker, step))
			got := decodeObject(fx.run(t, org.TaskSpec{}).Result)
			if got["errorType"] != "llm_call_failed" || !strings.Contains(fmt.Sprint(got["message"]), c.says) {
				t.Errorf("root receives %v; want llm_call_failed with %q\n%s", got, c.says, fx.eventLog(t))
			}
		})
	}
}

func TestScript_ChangedScriptDiverges(t *testing.T) {
	dir := fastTempDir(t)
	reached := make(chan struct{})
	stuck := newTool(t, "stuck", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
		close(reached)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	const works = `role("worker", function* () { yield call("stuck", {}); return "done"; });`
	fx := fixtureConfig{dir: dir, tools: []tool.Tool{stuck}, model: newScript(t, hireScript+works)}.open(t)
	id := fx.start(t, org.TaskSpec{})
	fx.waitReached(t, id, reached)
	fx.shutdown(t)

	// The worker is unchanged; root asks for another role first.
	changed := strings.Replace(hireScript, `name: "worker"`, `name: "painter"`, 1) + works
	fx = fixtureConfig{dir: dir, tools: []tool.Tool{stuck}, model: newScript(t, changed)}.open(t)
	fx.resume(t, id)
	task := fx.wait(t, id)
	fx.wantResult(t, task, "", errcode.ScriptDiverged)
	for _, part := range []string{"step 1:", "worker", "painter"} {
		if !strings.Contains(task.Error.Message, part) {
			t.Errorf("%q does not name %s", task.Error.Message, part)
		}
	}
	for _, e := range bodiesOf[journal.ToolError](t, fx) {
		if e.Tool != "stuck" || e.Code != errcode.ToolInterrupted {
			t.Errorf("%s ended as %s, want stuck as tool_interrupted", e.Tool, e.Code)
		}
	}
}

func TestScript_ContinuesAfterRestart(t *testing.T) {
	dir := fastTempDir(t)
	reached := make(chan struct{}, 1)
	look := newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(ctx context.Context, in obj) (any, error) {
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
	m := newScript(t, hireScript+works)
	reached <- struct{}{} // full, so look does not wait
	whole := fixtureConfig{tools: []tool.Tool{look}, model: m}.open(t)
	whole.wantResult(t, whole.run(t, org.TaskSpec{}), `["go",1,2,"slow"]`, "")
	<-reached

	fx := fixtureConfig{dir: dir, tools: []tool.Tool{look}, model: m}.open(t)
	id := fx.start(t, org.TaskSpec{})
	fx.waitEvent(t, func(e journal.Event) bool {
		c, ok := e.Body.(journal.ToolCall)
		return ok && strings.Contains(string(c.Args), "slow")
	})
	fx.waitReached(t, id, reached) // it is in the tool,
	reached <- struct{}{}          // and does not wait there after the restart
	fx.shutdown(t)
	fx = fixtureConfig{dir: dir, tools: []tool.Tool{look}, model: newScript(t, hireScript+works)}.open(t)
	fx.resume(t, id)
	fx.wantResult(t, fx.wait(t, id), `["go",1,2,"slow"]`, "")
	if diff := cmp.Diff(workerSummary(t, whole), workerSummary(t, fx)); diff != "" {
		t.Errorf("the runs differ (-uninterrupted +resumed):\n%s", diff)
	}
}

// workerSummary lists the answers, messages and results of the worker, each
// once.
func workerSummary(t *testing.T, fx *fixture) []string {
	var list []string
	for _, e := range fx.events(t) {
		if e.Role != "worker" {
			continue // the order of other agents may differ
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

func TestScript_MessageDuringTurn(t *testing.T) {
	for _, c := range []struct{ name, reads, want string }{
		{"received", `const more = yield receive(); seen.push(more.payload);`, `[["go","one"],["two"]]`},
		{"left", ``, `[["go"],["one"],["two"]]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			running, run := make(chan struct{}), make(chan struct{})
			slow := newTool(t, "slow", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
				close(running)
				<-run
				return nil, ctx.Err()
			})
			fx := fixtureConfig{tools: []tool.Tool{slow}, model: newScript(t, hireHelpers+`
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
			id := fx.start(t, org.TaskSpec{})
			<-running
			agent := eventsOf[journal.AgentSpawned](t, fx)[1].Agent
			fx.send(t, agent, `"one"`)
			fx.send(t, agent, `"two"`)
			close(run)
			fx.wantResult(t, fx.wait(t, id), c.want, "")
		})
	}
}

// After a failed turn the messages that it had not read start a new one.
func TestScript_UnreadMessageAfterFailure(t *testing.T) {
	running, run := make(chan struct{}), make(chan struct{})
	slow := newTool(t, "slow", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
		close(running)
		<-run
		return nil, ctx.Err()
	})
	fx := fixtureConfig{tools: []tool.Tool{slow}, model: newScript(t, hireHelpers+`
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
	id := fx.start(t, org.TaskSpec{})
	<-running
	fx.send(t, eventsOf[journal.AgentSpawned](t, fx)[1].Agent, `"unread"`)
	close(run)
	fx.wantResult(t, fx.wait(t, id), `["llm_call_failed","unread"]`, "")
}

// A first agent that fails leaves no work, also if it has not read all messages.
func TestScript_FailureOfFirstAgentLeavesNoWork(t *testing.T) {
	fx := openFixture(t, "", newScript(t, `role("root", function* () {
		yield call("send_message", {to: "root", payload: "unread"});
		throw new Error("no");
	});`))
	id := fx.start(t, org.TaskSpec{})
	fx.wantResult(t, fx.wait(t, id), "", errcode.LLMCallFailed)
	fx.wantNoWork(t, fx.topAgent(t, id))
}

func TestScript_SelfAndToolsAreCurrent(t *testing.T) {
	open1 := newTool(t, "open", tool.Options{State: "open", States: []string{"shut"}}, func(context.Context, obj) (any, error) { return "ok", nil })
	fx := fixtureConfig{tools: []tool.Tool{open1}, model: newScript(t, `role("*", function* (task) {
		const before = [self.state, tools.includes("open")];
		yield call("open", {});
		return [self.role, task.from, before, [self.state, tools.includes("open")]];
	});`)}.open(t)
	fx.wantResult(t, fx.run(t, fx.workerTask(t, "shut")), `["worker","user",["shut",true],["open",false]]`, "")
}

// A script hires agents by the names of their roles. Their answers are messages to it.
func TestScript_HiresByName(t *testing.T) {
	fx := openFixture(t, "", newScript(t, `
role("root", function* (task) {
	const missing = yield hire("nobody", "Work.");
	const agents = yield [hire("reader", "Read.", {path: "notes.txt"}), hire("writer", "Write.")];
	const answers = {};
	for (const a of agents) {
		const report = yield receive();
		answers[agents.find((b) => b.id === report.from).roleName] = report.payload;
	}
	return {missing: missing.error, fields: Object.keys(agents[0]).sort(), reader: answers.reader, writer: answers.writer};
});
role("reader", function* (task) { return "read " + task.payload.data.path + ": " + task.payload.text; });
role("writer", function* (task) { return task.payload.data === undefined ? task.payload.text : "data"; });
`))
	fx.declare(t, org.RoleSpec{Name: "reader", Use: groupSet()})
	fx.declare(t, org.RoleSpec{Name: "writer", Use: groupSet()})
	fx.wantResult(t, fx.run(t, org.TaskSpec{}), `{"missing":"role_not_found","fields":["id","messageId","name","roleId","roleName"],"reader":"read notes.txt: Read.","writer":"Write."}`, "")
}
