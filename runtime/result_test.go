package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// resultOfTask returns an answer that ends the task with a text.
func resultOfTask(text string) model.Answer {
	return model.Answer{Finish: model.FinishResult, Text: text}
}

// checkEnded checks what the end of a task leaves: one result, at the end of the record,
// no agent below the first, no message and no work.
func (fx *fixture) checkEnded(t *testing.T, id identity.TaskID) {
	t.Helper()
	ends := eventsOf[journal.TaskEnded](t, fx)
	if len(ends) != 1 {
		t.Fatalf("%d results on record\n%s", len(ends), fx.eventLog(t))
	}
	for _, e := range fx.events(t) {
		if e.Seq > ends[0].Seq && e.Task == id {
			t.Errorf("after the end: %s", mustJSON(e))
		}
	}
	if left := fx.Org().ListAgents(id); len(left) != 1 || left[0].ID != fx.topAgent(t, id) {
		t.Errorf("agents after the end: %v; want the first alone", left)
	}
	if spawned, ended := len(bodiesOf[journal.AgentSpawned](t, fx)), len(bodiesOf[journal.AgentTerminated](t, fx)); ended != spawned-1 {
		t.Errorf("%d agents were spawned and %d terminated; want all but the first", spawned, ended)
	}
	for _, a := range eventsOf[journal.AgentSpawned](t, fx) {
		fx.wantNoWork(t, a.Agent)
	}
	if delayed, err := fx.store.DelayedMessages(t.Context()); err != nil || len(delayed) > 0 {
		t.Errorf("delayed messages after the end: %v, %v", delayed, err)
	}
}

// dropped returns what the event mail_dropped counts; zero if there is none.
func (fx *fixture) dropped(t *testing.T) (sum journal.MailDropped) {
	t.Helper()
	list := bodiesOf[journal.MailDropped](t, fx)
	if len(list) > 1 {
		t.Errorf("%d events mail_dropped", len(list))
	}
	for _, m := range list {
		sum.Count, sum.Delayed = sum.Count+m.Count, sum.Delayed+m.Delayed
	}
	return sum
}

// The first agent of a task ends it when its script returns. A late message does not
// start it again, and agents below that never come to an end are stopped.
func TestResult_ReturnOfFirstAgentEndsTask(t *testing.T) {
	for _, c := range []struct{ name, worker, want string }{
		{"a worker that sends a message and returns", `
			yield call("send_message", {to: "root", payload: "hello"});
			return "bye";`, `"hello"`},
		{"a worker that spawns workers without end", `
			const same = yield call("find_role_by_name", {name: "worker"});
			yield call("spawn_agent_with_task", {roleId: same.id, taskBrief: brief, initialMessage: "go"});
			yield call("send_message", {to: "root", payload: "hello"});
			return "again";`, `"hello"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			fx := openFixture(t, "", newScript(t, hireHelpers+`
				role("root", function* () {
					yield* hire("org_management");
					return (yield receive()).payload;
				});
				role("worker", function* () {`+c.worker+`});`))
			id := fx.start(t, org.TaskSpec{})
			fx.wantResult(t, fx.wait(t, id), c.want, "")
			fx.checkEnded(t, id)
			fx.checkCallsStarted(t)
		})
	}
}

// checkCallsStarted checks that every call that has started has exactly one outcome.
func (fx *fixture) checkCallsStarted(t *testing.T) {
	t.Helper()
	open := map[identity.CallID]int{}
	for _, c := range bodiesOf[journal.ToolCall](t, fx) {
		open[c.Call] = 1 // a repeated call is recorded again
	}
	for _, r := range bodiesOf[journal.ToolResult](t, fx) {
		open[r.Call]--
	}
	for _, r := range bodiesOf[journal.ToolError](t, fx) {
		open[r.Call]--
	}
	for id, n := range open {
		if n != 0 {
			t.Errorf("call %s has %d outcomes\n%s", id, 1-n, fx.eventLog(t))
		}
	}
}

// The result of a task waits for the calls of the agents below. They are cancelled. Each
// is recorded with its outcome, or as tool_interrupted.
func TestResult_WaitsForOpenCalls(t *testing.T) {
	running := make(chan struct{}, 3)
	wait := func(name string, effect tool.Effect, after func(context.Context) (any, error)) tool.Tool {
		return newTool(t, name, tool.Options{Effect: effect}, func(ctx context.Context, _ obj) (any, error) {
			running <- struct{}{}
			<-ctx.Done()
			return after(ctx)
		})
	}
	stopped := func(ctx context.Context) (any, error) { return nil, ctx.Err() }
	fx := fixtureConfig{
		tools: []tool.Tool{
			wait("strike", tool.Mutating, stopped), wait("look", tool.ReadOnly, stopped),
			wait("finish", tool.Mutating, func(context.Context) (any, error) { return "finished", nil }),
		},
		model: modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
			if r.Self.Role != "root" {
				return callTools(r.Self.Role, obj{}), nil
			}
			if n := answerCount(r); n == 0 {
				return callTools("find_role_by_name", obj{"name": "strike"}, "find_role_by_name", obj{"name": "look"}, "find_role_by_name", obj{"name": "finish"}), nil
			} else if n == 1 {
				var hires []any
				for _, found := range results(r) {
					hires = append(hires, "spawn_agent_with_task", obj{"roleId": decodeObject(found.Content)["id"], "taskBrief": taskBrief(), "initialMessage": "go"})
				}
				return callTools(hires...), nil
			}
			for range 3 {
				<-running
			}
			return resultOfTask("enough"), nil
		}),
	}.open(t)
	for _, name := range []string{"strike", "look", "finish"} {
		if _, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: name, Use: groupSet("probe")}); err != nil {
			t.Fatal(err)
		}
	}
	id := fx.start(t, org.TaskSpec{})
	fx.wantResult(t, fx.wait(t, id), `"enough"`, "")
	fx.checkEnded(t, id)
	fx.checkCallsStarted(t)
	got := map[string]string{}
	for _, e := range fx.events(t) {
		switch b := e.Body.(type) {
		case journal.ToolError:
			got[b.Tool] = string(b.Code)
		case journal.ToolResult:
			got[b.Tool] = string(b.Result)
		}
	}
	for name, want := range map[string]string{"strike": "tool_interrupted", "look": "tool_interrupted", "finish": `"finished"`} {
		if got[name] != want {
			t.Errorf("%s ended as %s, want %s", name, got[name], want)
		}
	}
}

// The agents below stop in the middle of an answer with three calls: the first ends, the
// others do not start.
func TestResult_StopsAnswerOfThreeCalls(t *testing.T) {
	running, ran := make(chan struct{}), make(chan struct{}, 3)
	poke := newTool(t, "poke", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
		ran <- struct{}{}
		close(running)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	fx := fixtureConfig{tools: []tool.Tool{poke}, model: modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
		switch {
		case r.Self.Role == "worker":
			return callTools("poke", obj{}, "poke", obj{}, "poke", obj{}), nil
		case answerCount(r) < 2:
			return delegate(r, "worker", "probe"), nil
		}
		<-running
		return resultOfTask("enough"), nil
	})}.open(t)
	id := fx.start(t, org.TaskSpec{})
	fx.wantResult(t, fx.wait(t, id), `"enough"`, "")
	fx.checkEnded(t, id)
	fx.checkCallsStarted(t)
	if len(ran) != 1 {
		t.Errorf("%d calls ran, want one", len(ran))
	}
}

// Below the first agent, a result is the end of a turn. The agent starts again with the
// next message.
func TestResult_OfAgentBelowEndsItsTurn(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		switch {
		case r.Self.Role == "worker":
			return resultOfTask(fmt.Sprint("worked ", len(messages(r))))
		case answerCount(r) < 2:
			return delegate(r, "worker")
		case len(messages(r)) == 2 && len(results(r)) == 2:
			return callTools("send_message", obj{"to": decodeObject(results(r)[1].Content)["id"], "payload": "more"})
		case len(messages(r)) < 3:
			return waitForMessage()
		}
		return resultOfTask(string(lastReport(r)))
	}))
	id := fx.start(t, org.TaskSpec{})
	fx.wantResult(t, fx.wait(t, id), `"{\"text\":\"worked 2\"}"`, "")
	fx.checkEnded(t, id)
	for _, e := range eventsOf[journal.ModelAnswered](t, fx) {
		if got := e.Body.(journal.ModelAnswered).Answer.Finish; e.Role == "worker" && got != model.FinishEnd {
			t.Errorf("the worker's answer is recorded with finish %q", got)
		}
	}
}

// The commit that ends a task drops the messages that no agent will read, and counts them.
func TestResult_CountsDroppedMail(t *testing.T) {
	working, asked, sent := make(chan struct{}), make(chan struct{}), make(chan struct{})
	slow := newTool(t, "slow", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
		close(working)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	fx := fixtureConfig{tools: []tool.Tool{slow}, model: modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
		switch {
		case r.Self.Role == "worker":
			return callTools("slow", obj{}), nil
		case answerCount(r) < 2:
			return delegate(r, "worker", "probe"), nil
		}
		close(asked)
		<-sent
		return resultOfTask("enough"), nil
	})}.open(t)
	id := fx.start(t, org.TaskSpec{})
	<-working
	<-asked
	worker := eventsOf[journal.AgentSpawned](t, fx)[1].Agent
	fx.send(t, worker, `"unread"`)
	fx.sendDelayed(t, worker, `"delayed"`)
	fx.send(t, fx.topAgent(t, id), `"unread"`)
	fx.sendDelayed(t, fx.topAgent(t, id), `"delayed"`)
	close(sent)
	fx.wantResult(t, fx.wait(t, id), `"enough"`, "")
	fx.checkEnded(t, id)
	if got, want := fx.dropped(t), (journal.MailDropped{Count: 4, Delayed: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Messages that the first agent has received and not read are dropped, too. An end
// without such messages has no event.
func TestResult_CountsUnreadMessagesOfFirstAgent(t *testing.T) {
	for _, read := range []int{1, 2} {
		fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
			if answerCount(r) == 0 {
				return callTools("send_message", obj{"to": "root", "payload": "to myself"})
			}
			return model.Answer{Finish: model.FinishResult, Text: "enough", MessagesRead: read}
		}))
		id := fx.start(t, org.TaskSpec{})
		fx.wantResult(t, fx.wait(t, id), `"enough"`, "")
		if got, want := fx.dropped(t), 2-read; got.Count != want {
			t.Errorf("with %d of two messages read: %d dropped, want %d", read, got.Count, want)
		}
		fx.shutdown(t)
	}
}

// hangingTool is a tool that ends only when it is released. It reports that it runs, and
// that it was cancelled.
type hangingTool struct{ running, cancelled, released chan struct{} }

func newHangingTool() *hangingTool {
	return &hangingTool{make(chan struct{}), make(chan struct{}), make(chan struct{})}
}

func (h *hangingTool) tool(t *testing.T) tool.Tool {
	return newTool(t, "hang", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
		close(h.running)
		<-ctx.Done()
		close(h.cancelled)
		<-h.released
		return nil, ctx.Err()
	})
}

// endWhileHanging is a root that spawns a worker, whose call hangs, and then returns a
// result. After a further message it returns another one.
func (h *hangingTool) endWhileHanging(_ context.Context, r model.Request) (model.Answer, error) {
	switch {
	case r.Self.Role == "worker" && answerCount(r) == 0:
		return callTools("hang", obj{}), nil
	case r.Self.Role == "worker":
		return callTools("send_message", obj{"to": "root", "payload": "I go on"}), nil
	case answerCount(r) < 2:
		return delegate(r, "worker", "probe", "org_management"), nil
	case len(messages(r)) == 1:
		<-h.running
		return resultOfTask("first"), nil
	}
	return resultOfTask("second"), nil
}

// While a task ends nothing is accepted for it. If the end is aborted, its agents go on.
func TestResult_AbortedEndLetsAgentsGoOn(t *testing.T) {
	h := newHangingTool()
	fx := fixtureConfig{tools: []tool.Tool{h.tool(t)}, model: modelFunc(h.endWhileHanging)}.open(t)
	id := fx.start(t, org.TaskSpec{})
	fx.waitReached(t, id, h.cancelled)
	root := fx.topAgent(t, id)
	if _, err := fx.SendMessage(t.Context(), newCall(operator), string(root), json.RawMessage(`"late"`), 0); errcode.CodeOf(err) != errcode.Conflict || !strings.Contains(err.Error(), "about to end") {
		t.Errorf("a message while the task ends: %v, want a conflict", err)
	}
	if err := fx.AbortTurn(root); err != nil {
		t.Fatal(err)
	}
	fx.waitEvent(t, func(e journal.Event) bool {
		f, ok := e.Body.(journal.TurnFailed)
		return ok && e.Agent == root && f.Code == errcode.TurnAborted
	})
	close(h.released)
	fx.wantResult(t, fx.wait(t, id), `"second"`, "")
	fx.checkEnded(t, id)
	fx.checkCallsStarted(t)
}

// A delayed message that is due while the task ends is delivered if the end is aborted.
func TestResult_AbortedEndDeliversDelayedMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHangingTool()
		fx := fixtureConfig{tools: []tool.Tool{h.tool(t)}, model: modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
			if r.Self.Role == "worker" && answerCount(r) > 0 {
				return waitForMessage(), nil
			}
			return h.endWhileHanging(ctx, r)
		})}.open(t)
		id := fx.start(t, org.TaskSpec{})
		root := fx.topAgent(t, id)
		fx.sendDelayed(t, root, `"in an hour"`)
		<-h.cancelled
		time.Sleep(2 * time.Hour) // in synctest's time
		if got := fx.received(t, root); len(got) != 1 {
			t.Errorf("root received %v while its task ends", got)
		}
		if delayed, err := fx.store.DelayedMessages(t.Context()); err != nil || len(delayed) != 1 {
			t.Errorf("delayed messages while the task ends: %v, %v; want one", delayed, err)
		}
		if err := fx.AbortTurn(root); err != nil {
			t.Fatal(err)
		}
		close(h.released)
		synctest.Wait()
		fx.wantResult(t, fx.wait(t, id), `"second"`, "")
		fx.checkEnded(t, id)
	})
}

// An agent that gets a message while its task ends is not asked.
func TestResult_MessageWhileTaskEndsStartsNoTurn(t *testing.T) {
	var fx *fixture
	var worker, helper identity.AgentID
	spawned, running := make(chan struct{}), make(chan struct{})
	tell := newTool(t, "tell", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
		close(running)
		<-ctx.Done()
		<-spawned
		_, err := fx.SendMessage(context.WithoutCancel(ctx), newCall(identity.ByAgent(worker)), string(helper), json.RawMessage(`"go"`), 0)
		return "told", err
	})
	fx = fixtureConfig{tools: []tool.Tool{tell}, model: modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
		switch {
		case r.Self.Role == "worker":
			return callTools("tell", obj{}), nil
		case r.Self.Role == "helper":
			t.Error("the helper was asked")
			return waitForMessage(), nil
		case answerCount(r) < 2:
			return delegate(r, "worker", "probe", "org_management"), nil
		}
		<-running
		return resultOfTask("enough"), nil
	})}.open(t)
	id := fx.start(t, org.TaskSpec{})
	<-running
	worker = eventsOf[journal.AgentSpawned](t, fx)[1].Agent
	helper = fx.spawnAgent(t, worker, org.RoleSpec{Name: "helper", Use: groupSet("probe")})
	close(spawned)
	fx.wantResult(t, fx.wait(t, id), `"enough"`, "")
	fx.checkEnded(t, id)
	if got := fx.dropped(t); got.Count != 1 {
		t.Errorf("%d messages were dropped, want 1", got.Count)
	}
}

// A task whose end waits for a tool can be cancelled.
func TestResult_CancelWhileTaskEnds(t *testing.T) {
	h := newHangingTool()
	fx := fixtureConfig{tools: []tool.Tool{h.tool(t)}, model: modelFunc(h.endWhileHanging)}.open(t)
	id := fx.start(t, org.TaskSpec{})
	fx.waitReached(t, id, h.cancelled)
	if err := fx.CancelTask(t.Context(), id, "enough"); err != nil {
		t.Fatal(err)
	}
	fx.wantResult(t, fx.wait(t, id), "", errcode.TaskCancelled)
	close(h.released)
	fx.Close()
	if n := len(bodiesOf[journal.TaskEnded](t, fx)); n != 1 {
		t.Errorf("%d results on record", n)
	}
}

// A process that closes while a task ends leaves it to the next one.
func TestResult_CloseWhileTaskEnds(t *testing.T) {
	dir, h := fastTempDir(t), newHangingTool()
	fx := fixtureConfig{dir: dir, tools: []tool.Tool{h.tool(t)}, model: modelFunc(h.endWhileHanging)}.open(t)
	id := fx.start(t, org.TaskSpec{})
	fx.waitReached(t, id, h.cancelled)
	closed := make(chan struct{})
	go func() { defer close(closed); fx.Close() }()
	if _, err := fx.WaitTask(t.Context(), id); err == nil {
		t.Error("Wait returned no error after Close")
	}
	close(h.released)
	<-closed
	fx.shutdown(t)

	h = newHangingTool()
	close(h.running)
	fx = fixtureConfig{dir: dir, tools: []tool.Tool{newTool(t, "hang", tool.Options{}, func(context.Context, obj) (any, error) { return "again", nil })}, model: modelFunc(h.endWhileHanging)}.open(t)
	fx.resume(t, id)
	if task := fx.wait(t, id); task.Status != org.Done {
		t.Errorf("the task is %s: %v", task.Status, task.Error)
	}
	fx.checkEnded(t, id)
	fx.checkCallsStarted(t)
}

// endingWorkload is a root that returns a result while its two workers work. They call tools
// of all effect classes and send messages, and never end.
func endingWorkload(r model.Request) model.Answer {
	switch n := answerCount(r); {
	case r.Self.Role == "worker" && n%2 == 0:
		return callTools("look", obj{}, "look", obj{}, "strike", obj{}, "mark", obj{})
	case r.Self.Role == "worker":
		return callTools("send_message", obj{"to": "root", "payload": "still here"})
	case n == 0:
		return callTools("create_role", obj{"name": "worker", "rolePrompt": "", "toolGroups": []string{"probe", "org_management"}})
	case n == 1:
		hire := obj{"roleId": lastResult(r)["id"], "taskBrief": taskBrief(), "initialMessage": "go"}
		return callTools("spawn_agent_with_task", hire, "spawn_agent_with_task", hire, "send_message", obj{"to": "root", "payload": "later", "delayMs": 3_600_000})
	case len(messages(r)) < 4:
		return waitForMessage()
	}
	return resultOfTask("enough")
}

// The process is killed at each of its commits, and so is the next one. The task ends
// with the result of its first agent. Each call that has started has one outcome, and a
// Mutating call ran at most once.
func TestResult_CrashAtAnyCommitEndsTask(t *testing.T) {
	step := short.Count(6, 1)
	ended := false
	for n := short.SampleRange(t, 1, 1, step)[0]; !ended; n += step {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint("commit ", n, ", written ", after), func(t *testing.T) {
				l := &effectLog{runs: map[string]map[identity.CallID]int{}}
				dir := fastTempDir(t)
				fx, id, err := l.runEnding(t, dir, n, after)
				ended = err == nil
				for again := n%9 + 1; err != nil; again = noCrash {
					if !errors.Is(err, errKilled) {
						t.Fatal(err)
					}
					fx.shutdown(t)
					fx, id, err = l.runEnding(t, dir, again, after)
				}
				l.checkEnding(t, fx, id)
				fx.shutdown(t)
			})
			if t.Failed() || n > 300 {
				t.Fatalf("stopped at commit %d", n)
			}
		}
	}
}

// runEnding runs endingWorkload until its task ends, or the process crashes at its n-th
// commit.
func (l *effectLog) runEnding(t *testing.T, dir string, crashAt int, after bool) (*fixture, identity.TaskID, error) {
	t.Helper()
	l.store = &crashingStore{commitsLeft: crashAt, after: after}
	fx := fixtureConfig{
		dir: dir, model: answerFunc(endingWorkload),
		tools: []tool.Tool{
			l.tool(t, "look", tool.Options{Effect: tool.ReadOnly}, nil), l.tool(t, "strike", tool.Options{}, nil),
			l.tool(t, "mark", tool.Options{Effect: tool.Idempotent}, nil),
		},
		wrapStore: func(s journal.Store) journal.Store { l.store.Store = s; return l.store },
	}.open(t)
	id, err := fx.startOrResume(t)
	if err == nil {
		_, err = fx.WaitTask(t.Context(), id)
	}
	return fx, id, err
}

func (l *effectLog) checkEnding(t *testing.T, fx *fixture, id identity.TaskID) {
	t.Helper()
	task, err := fx.TaskRecord(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	fx.wantResult(t, task, `"enough"`, "")
	fx.checkEnded(t, id)
	fx.checkCallsStarted(t)
	if got := fx.dropped(t); got.Delayed != 1 {
		t.Errorf("dropped: %+v, want one delayed message", got)
	}
	for agent, calls := range l.runs {
		for call, n := range calls {
			if strings.HasPrefix(agent, "strike") && n > 1 {
				t.Errorf("%s ran %d times as call %s", agent, n, call)
			}
		}
	}
	for _, e := range bodiesOf[journal.ToolError](t, fx) {
		if e.Code != errcode.ToolInterrupted {
			t.Errorf("%s ended as %s", e.Tool, e.Code)
		}
	}
}

// earlierScript is a script as earlier versions recorded it: a return ends a turn and
// never a task.
type earlierScript struct{ model.Model }

// Generate implements model.Model.
func (m earlierScript) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		for delta, err := range m.Model.Generate(ctx, r) {
			if delta.Answer != nil && delta.Answer.Finish == model.FinishResult {
				delta.Answer.Finish = model.FinishEnd
			}
			if !yield(delta, err) {
				return
			}
		}
	}
}

// A task that an earlier version has recorded goes on from each of its states. A return
// that it recorded as end is one, so the first agent starts again with a late message, and
// ends the task then.
func TestResult_ResumesTaskOfEarlierVersion(t *testing.T) {
	const source = hireHelpers + `
		role("root", function* (task) {
			if (task.from !== "user") return "a late message";
			yield* hire("probe", "org_management");
			yield call("send_message", {to: "root", payload: "later", delayMs: 1});
			const heard = [];
			while (heard.length < 2) heard.push((yield receive()).payload);
			return "in time";
		});
		role("worker", function* (task) {
			yield [call("look"), call("strike")];
			yield call("send_message", {to: "root", payload: "half"});
			return "worked";
		});`
	tools := func(t *testing.T) []tool.Tool {
		done := func(context.Context, obj) (any, error) { return "done", nil }
		return []tool.Tool{newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, done), newTool(t, "strike", tool.Options{}, done)}
	}
	before, now := earlierScript{newScript(t, source)}, newScript(t, source)
	seen := map[string]bool{}
	ended, step := false, short.Count(3, 1)
	for n := short.SampleRange(t, 1, 1, step)[0]; !ended; n += step {
		for _, after := range []bool{false, true} {
			dir := fastTempDir(t)
			fx := fixtureConfig{dir: dir, tools: tools(t), model: before,
				wrapStore: func(s journal.Store) journal.Store { return &crashingStore{Store: s, commitsLeft: n, after: after} }}.open(t)
			id, err := fx.startOrResume(t)
			if err == nil {
				_, err = fx.WaitTask(t.Context(), id)
			}
			ended = err == nil
			fx.shutdown(t)

			fx = fixtureConfig{dir: dir, tools: tools(t), model: now}.open(t)
			id, err = fx.startOrResume(t)
			if err != nil {
				t.Fatal(err)
			}
			task := fx.wait(t, id)
			seen[string(task.Result)] = true
			if task.Status != org.Done || !slices.Contains([]string{`"in time"`, `"a late message"`}, string(task.Result)) {
				t.Errorf("crash at commit %d: the task is %s with %s, %v\n%s", n, task.Status, task.Result, task.Error, fx.eventLog(t))
			}
			if n := len(bodiesOf[journal.TaskEnded](t, fx)); n != 1 {
				t.Errorf("%d results on record", n)
			}
			fx.checkCallsStarted(t)
			fx.shutdown(t)
		}
		if t.Failed() || n > 100 {
			t.Fatalf("stopped at commit %d", n)
		}
	}
	if len(seen) != 2 {
		t.Errorf("the results are %v; want both", seen)
	}
}

// A child that returns to a task that has ended changes nothing.
func TestResult_ChildReturnsAfterEnd(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	fx := openFixture(t, "", modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
		switch {
		case r.Self.Role == "worker":
			close(asked)
			<-ctx.Done() // its task ends
			close(answer)
			return endWith("late"), nil
		case answerCount(r) < 2:
			return delegate(r, "worker"), nil
		}
		<-asked
		return resultOfTask("enough"), nil
	}))
	id := fx.start(t, org.TaskSpec{})
	fx.wantResult(t, fx.wait(t, id), `"enough"`, "")
	<-answer
	fx.Close()
	fx.checkEnded(t, id)
	for _, e := range eventsOf[journal.ModelAnswered](t, fx) {
		if e.Role == "worker" {
			t.Errorf("the late answer is on record: %s", mustJSON(e))
		}
	}
}

// A task that ends with the turn of its first agent keeps today's rule: it goes on until
// the agents below have ended.
func TestResult_EndOfTurnDoesNotEndTask(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		switch {
		case r.Self.Role == "worker":
			return endWith("worked")
		case answerCount(r) < 2:
			return delegate(r, "worker")
		}
		return endWith(fmt.Sprint("heard ", len(messages(r))))
	}))
	id := fx.start(t, org.TaskSpec{})
	fx.wantResult(t, fx.wait(t, id), `"heard 2"`, "")
	if n := len(bodiesOf[journal.AgentTerminated](t, fx)); n != 0 {
		t.Errorf("%d agents were terminated", n)
	}
}

// A model that leaves MessagesRead at zero, or claims more, has read all messages of its
// request.
func TestAnswer_ReadOfZeroMeansAll(t *testing.T) {
	for _, read := range []int{0, -1, 99} {
		asked := 0
		fx := openFixture(t, "", rawModel(func(model.Request) model.Answer {
			asked++
			return model.Answer{Finish: model.FinishEnd, Text: "x", MessagesRead: read}
		}))
		fx.wantResult(t, fx.run(t, org.TaskSpec{}), `"x"`, "")
		if got := bodiesOf[journal.ModelAnswered](t, fx); asked != 1 || got[0].Answer.MessagesRead != 1 {
			t.Errorf("read %d: asked %d times, recorded %d; want once and 1", read, asked, got[0].Answer.MessagesRead)
		}
		fx.shutdown(t)
	}
}

// rawModel is a model whose answers are not completed.
type rawModel func(r model.Request) model.Answer

// Generate implements model.Model.
func (m rawModel) Generate(_ context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		a := m(r)
		yield(model.AnswerDelta{Answer: &a}, nil)
	}
}
