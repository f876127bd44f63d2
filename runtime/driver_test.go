package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// worker is a model that ends each turn of an agent below root with "did it". It fails the
// test if root asks it.
func worker(t *testing.T) model.Model {
	return answerFunc(func(r model.Request) model.Answer {
		if r.Self.Parent == "" {
			t.Error("the model was asked to answer for the driven agent")
		}
		return endWith("did it")
	})
}

// busyWorker is a model that answers when the turn of its agent is cancelled.
var busyWorker = modelFunc(func(ctx context.Context, _ model.Request) (model.Answer, error) {
	<-ctx.Done()
	return model.Answer{}, ctx.Err()
})

func (fx *fixture) drive(t *testing.T, spec org.TaskSpec) *runtime.Driver {
	t.Helper()
	if spec.Caller.Kind == identity.None {
		spec.Caller = operator
	}
	d, err := fx.DriveTask(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// mustCall makes a call that is allowed, and returns its result.
func mustCall(t *testing.T, d *runtime.Driver, name string, args obj) obj {
	t.Helper()
	result, err := d.Call(t.Context(), name, mustJSON(args))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return decodeObject(result)
}

func wantCode(t *testing.T, what string, err error, code errcode.Code) {
	t.Helper()
	if errcode.CodeOf(err) != code || err == nil {
		t.Errorf("%s: got the error %v, want %s", what, err, code)
	}
}

// spawnWorker creates a role and one agent of it with a first message.
func spawnWorker(t *testing.T, d *runtime.Driver, role string) identity.AgentID {
	t.Helper()
	created := mustCall(t, d, "create_role", obj{"name": role, "rolePrompt": "work", "toolGroups": []string{}})
	agent := mustCall(t, d, "spawn_agent_with_task", obj{"roleId": created["id"], "taskBrief": taskBrief(), "initialMessage": "go"})
	return identity.AgentID(agent["id"].(string))
}

func TestDriver_MakesCallsAndEndsTheTask(t *testing.T) {
	fx := openFixture(t, "", worker(t))
	d := fx.drive(t, org.TaskSpec{Text: "do it"})
	defer d.Close()
	agent := spawnWorker(t, d, "clerk")
	list, err := d.Receive(t.Context())
	if err != nil || len(list) != 1 || list[0].From != string(agent) || string(list[0].Payload) != `{"text":"did it"}` {
		t.Fatalf("received %+v, %v", list, err)
	}
	if err := d.End(t.Context(), json.RawMessage(`{"n": 1}`)); err != nil {
		t.Fatal(err)
	}
	fx.wantResult(t, fx.wait(t, d.TaskID()), `{"n":1}`, "")
	calls := bodiesOf[journal.ToolCall](t, fx)
	if len(calls) != 2 || calls[0].Tool != "create_role" || calls[1].Decision != journal.Allowed {
		t.Errorf("recorded the calls %+v", calls)
	}
	answers := bodiesOf[journal.ModelAnswered](t, fx)
	if len(answers) != 4 || !slices.Contains(answers[0].Answer.Tools, "create_role") {
		t.Errorf("recorded %d answers, want two of calls, one of the agent below and the result; the first offered %v", len(answers), answers[0].Answer.Tools)
	}
	_, err = d.Call(t.Context(), "create_role", nil)
	wantCode(t, "call after the end", err, errcode.Conflict)
	_, err = d.Receive(t.Context())
	wantCode(t, "receive after the end", err, errcode.Conflict)
	wantCode(t, "second end", d.End(t.Context(), json.RawMessage(`1`)), errcode.Conflict)
}

// Root has org_management only, and grants no more than the caller of its task may.
func TestDriver_PassesTheGate(t *testing.T) {
	poke := newTool(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) { return 1, nil })
	fx := fixtureConfig{model: worker(t), tools: []tool.Tool{poke}}.open(t)
	role, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "member", Use: groupSet("org_management")})
	if err != nil {
		t.Fatal(err)
	}
	d := fx.drive(t, org.TaskSpec{Caller: identity.ByCaller("ann", role.ID)})
	defer d.Close()
	_, err = d.Call(t.Context(), "poke", nil)
	wantCode(t, "a tool that root has not", err, errcode.ToolNotAvailable)
	_, err = d.Call(t.Context(), "create_role", mustJSON(obj{"name": "puppet", "rolePrompt": "x", "toolGroups": []string{"probe"}}))
	if err == nil {
		t.Error("root granted a group that its caller has not")
	}
	_, err = d.Call(t.Context(), "nothing", json.RawMessage(`{`))
	wantCode(t, "arguments that are not JSON", err, errcode.InvalidArguments)
	var denied int
	for _, c := range bodiesOf[journal.ToolCall](t, fx) {
		if c.Decision == journal.Denied {
			denied++
		}
	}
	if failed := len(bodiesOf[journal.ToolError](t, fx)); denied != 2 || failed != 3 {
		t.Errorf("recorded %d denials and %d failures, want 2 and 3", denied, failed)
	}
}

func TestDriver_OnlyTheStarterHasIt(t *testing.T) {
	fx := openFixture(t, "", worker(t))
	_, err := fx.StartTask(t.Context(), org.TaskSpec{Caller: operator, Driven: true})
	wantCode(t, "StartTask of a driven task", err, errcode.InvalidArguments)
	d := fx.drive(t, org.TaskSpec{})
	defer d.Close()
	_, err = fx.ResumeDriver(t.Context(), operator, d.TaskID())
	wantCode(t, "a second driver", err, errcode.Conflict)
	_, err = fx.ResumeDriver(t.Context(), identity.ByCaller("eve", "role"), d.TaskID())
	wantCode(t, "a driver of another caller", err, errcode.TaskNotFound)
	for _, spec := range []org.TaskSpec{{Role: "x"}, {Key: "x"}, {Open: true}} {
		spec.Caller = operator
		_, err = fx.DriveTask(t.Context(), spec)
		wantCode(t, "a driven task with role, key or open", err, errcode.InvalidArguments)
	}
}

func TestDriver_CloseCancelsTheTask(t *testing.T) {
	fx := openFixture(t, "", worker(t))
	d := fx.drive(t, org.TaskSpec{})
	if err := errors.Join(d.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	if task := fx.wait(t, d.TaskID()); task.Status != org.Cancelled {
		t.Errorf("the task is %s, want cancelled", task.Status)
	}
	_, err := d.Call(t.Context(), "create_role", nil)
	wantCode(t, "call after Close", err, errcode.Conflict)
}

// A context that has ended, or ends while a step waits, leaves the task as it was.
func TestDriver_ContextEnds(t *testing.T) {
	fx := openFixture(t, "", busyWorker)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fx.DriveTask(ended, org.TaskSpec{Caller: operator}); !errors.Is(err, context.Canceled) || len(fx.Org().ListTasks()) != 0 {
		t.Fatalf("DriveTask returned %v and left %d tasks", err, len(fx.Org().ListTasks()))
	}
	d := fx.drive(t, org.TaskSpec{})
	defer d.Close()
	before := len(fx.events(t))
	_, call := d.Call(ended, "create_role", mustJSON(obj{"name": "x", "rolePrompt": "x"}))
	_, receive := d.Receive(ended)
	for _, err := range []error{call, receive, d.End(ended, json.RawMessage(`1`))} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got the error %v", err)
		}
	}
	if after := len(fx.events(t)); after != before {
		t.Errorf("%d events were recorded", after-before)
	}
	spawnWorker(t, d, "clerk")
	waiting, stop := context.WithCancel(t.Context())
	received := make(chan error)
	go func() { _, err := d.Receive(waiting); received <- err }()
	stop()
	if err := <-received; !errors.Is(err, context.Canceled) {
		t.Errorf("Receive returned %v", err)
	}
	spawnWorker(t, d, "another clerk")
}

// A call whose context ends while its intent is being recorded has an outcome on record, and
// the driver goes on.
func TestDriver_ContextEndsDuringCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg := fixtureConfig{model: worker(t)}
	cfg.wrapStore = func(s journal.Store) journal.Store {
		return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
			for _, e := range b.Events {
				if call, ok := e.Body.(journal.ToolCall); ok && call.Tool == "create_role" {
					cancel()
				}
			}
			return s.Commit(ctx, b)
		}}
	}
	fx := cfg.open(t)
	d := fx.drive(t, org.TaskSpec{})
	defer d.Close()
	_, err := d.Call(ctx, "create_role", mustJSON(obj{"name": "x", "rolePrompt": "x"}))
	if err == nil {
		t.Fatal("the call succeeded")
	}
	if calls, failed := bodiesOf[journal.ToolCall](t, fx), bodiesOf[journal.ToolError](t, fx); len(calls) != 1 || len(failed) != 1 || failed[0].Call != calls[0].Call {
		t.Errorf("recorded the calls %+v and the outcomes %+v", calls, failed)
	}
	mustCall(t, d, "create_role", obj{"name": "x", "rolePrompt": "x"})
}

func TestDriver_IsResumedByItsCallerOnly(t *testing.T) {
	dir := fastTempDir(t)
	fx := openFixture(t, dir, worker(t))
	d := fx.drive(t, org.TaskSpec{})
	mustCall(t, d, "create_role", obj{"name": "clerk", "rolePrompt": "work", "toolGroups": []string{}})
	fx.shutdown(t)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	fx = openFixture(t, dir, worker(t))
	wantCode(t, "ResumeTask", fx.ResumeTask(t.Context(), d.TaskID()), errcode.Conflict)
	task, err := fx.TaskRecord(t.Context(), d.TaskID())
	if status := fx.TaskStatus(task); err != nil || status != org.Interrupted {
		t.Errorf("the task is %s (%v), want interrupted", status, err)
	}
	_, err = fx.ResumeDriver(t.Context(), identity.ByCaller("eve", "role"), d.TaskID())
	wantCode(t, "ResumeDriver for another caller", err, errcode.TaskNotFound)
	again, err := fx.ResumeDriver(t.Context(), operator, d.TaskID())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	mustCall(t, again, "spawn_agent_with_task", obj{"roleId": "clerk", "taskBrief": taskBrief(), "initialMessage": "go"})
	if list, err := again.Receive(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("received %+v, %v", list, err)
	}
	_, err = d.Call(t.Context(), "create_role", nil)
	if err == nil {
		t.Error("the driver of the closed runtime made a call")
	}
	if err := again.End(t.Context(), json.RawMessage(`"ok"`)); err != nil {
		t.Fatal(err)
	}
}

// A call that was open at a crash gets the outcome of one that was interrupted.
func TestDriver_ResumeDropsOpenCalls(t *testing.T) {
	dir := fastTempDir(t)
	fx := openFixture(t, dir, worker(t))
	d := fx.drive(t, org.TaskSpec{})
	call := model.Call{ID: identity.CallID(identity.NewID()), Name: "create_role", Args: json.RawMessage(`{}`)}
	_, err := fx.store.Commit(t.Context(), &journal.Batch{Stream: d.AgentID(), Events: []journal.Event{
		{Task: d.TaskID(), Agent: d.AgentID(), Body: journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{call}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	fx.shutdown(t)
	fx = openFixture(t, dir, worker(t))
	again, err := fx.ResumeDriver(t.Context(), operator, d.TaskID())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	mustCall(t, again, "create_role", obj{"name": "clerk", "rolePrompt": "work"})
	if failed := bodiesOf[journal.ToolError](t, fx); len(failed) != 1 || failed[0].Call != call.ID || failed[0].Code != errcode.TurnAborted {
		t.Errorf("recorded the outcomes %+v", failed)
	}
}

// Cancelling the task ends a Receive that waits, and a result that does not fit the schema
// leaves the task as it is.
func TestDriver_EndsWithItsTask(t *testing.T) {
	fx := openFixture(t, "", busyWorker)
	d := fx.drive(t, org.TaskSpec{Schema: json.RawMessage(`{"type": "integer"}`)})
	defer d.Close()
	wantCode(t, "a result that does not fit", d.End(t.Context(), json.RawMessage(`{}`)), errcode.InvalidResult)
	wantCode(t, "a result that is not JSON", d.End(t.Context(), json.RawMessage(`{`)), errcode.InvalidArguments)
	spawnWorker(t, d, "clerk")
	received := make(chan error)
	go func() { _, err := d.Receive(t.Context()); received <- err }()
	if err := fx.CancelTask(t.Context(), d.TaskID(), "enough"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "Receive", <-received, errcode.Conflict)
	wantCode(t, "End", d.End(t.Context(), json.RawMessage(`1`)), errcode.Conflict)
}

// Budgets pause a driven task as any other; the driver goes on when it is retried.
func TestDriver_GoesOnAfterPause(t *testing.T) {
	failing := true
	fx := openFixture(t, "", modelFunc(func(context.Context, model.Request) (model.Answer, error) {
		if failing {
			return model.Answer{}, &model.Error{NeedsOperator: true, Err: errcode.New(errcode.LLMCallFailed, "no credit")}
		}
		return endWith("did it"), nil
	}))
	d := fx.drive(t, org.TaskSpec{})
	defer d.Close()
	spawnWorker(t, d, "clerk")
	_, err := d.Receive(t.Context())
	wantCode(t, "Receive of a paused task", err, errcode.Conflict)
	failing = false
	if err := fx.RetryTask(t.Context(), d.TaskID(), operator, org.ModelAllowance{}); err != nil {
		t.Fatal(err)
	}
	if list, err := d.Receive(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("received %+v, %v", list, err)
	}
}

// Steps of one driver run one at a time, in any goroutine.
func TestDriver_ConcurrentCalls(t *testing.T) {
	fx := openFixture(t, "", worker(t))
	d := fx.drive(t, org.TaskSpec{})
	defer d.Close()
	mustCall(t, d, "create_role", obj{"name": "clerk", "rolePrompt": "work", "toolGroups": []string{}})
	const n = 8
	failed := make(chan error, n)
	for range n {
		go func() {
			_, err := d.Call(t.Context(), "spawn_agent_with_task", mustJSON(obj{"roleId": "clerk", "taskBrief": taskBrief(), "initialMessage": "go"}))
			failed <- err
		}()
	}
	for range n {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	for got := 0; got < n; {
		list, err := d.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got += len(list)
	}
}

// A driver that was closed makes no call, also if its task could not be cancelled and goes
// on with another driver.
func TestDriver_ClosedMakesNoCall(t *testing.T) {
	var full atomic.Bool
	cfg := fixtureConfig{model: worker(t)}
	cfg.wrapStore = func(s journal.Store) journal.Store {
		return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
			if full.Load() {
				return 0, errors.New("the disk is full")
			}
			return s.Commit(ctx, b)
		}}
	}
	fx := cfg.open(t)
	d := fx.drive(t, org.TaskSpec{})
	full.Store(true)
	if err := d.Close(); err == nil {
		t.Fatal("the task was cancelled")
	}
	full.Store(false)
	_, err := d.Call(t.Context(), "create_role", nil)
	wantCode(t, "call after Close", err, errcode.Conflict)
	again, err := fx.ResumeDriver(t.Context(), operator, d.TaskID())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	_, err = d.Call(t.Context(), "create_role", mustJSON(obj{"name": "x", "rolePrompt": "x"}))
	wantCode(t, "call of the driver before", err, errcode.Conflict)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	spawnWorker(t, again, "clerk")
}

// A call whose outcome could not be recorded is one that was interrupted.
func TestDriver_OutcomeNotRecorded(t *testing.T) {
	var commits atomic.Int32
	cfg := fixtureConfig{model: worker(t)}
	cfg.wrapStore = func(s journal.Store) journal.Store {
		return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
			for _, e := range b.Events {
				if _, ok := e.Body.(journal.ToolResult); ok && commits.Add(1) == 1 {
					return 0, errors.New("the disk is full")
				}
			}
			return s.Commit(ctx, b)
		}}
	}
	fx := cfg.open(t)
	d := fx.drive(t, org.TaskSpec{})
	defer d.Close()
	_, err := d.Call(t.Context(), "create_role", mustJSON(obj{"name": "x", "rolePrompt": "x"}))
	if err == nil {
		t.Error("the call succeeded")
	}
	if failed := bodiesOf[journal.ToolError](t, fx); len(failed) != 1 || failed[0].Code != errcode.ToolInterrupted {
		t.Errorf("recorded the outcomes %+v", failed)
	}
}

// A program hires as many agents as its task may have: the limit of one agent ends loops of
// models only.
func TestDriver_HiresWithoutLimitOfModels(t *testing.T) {
	fx := fixtureConfig{model: worker(t), configure: func(c *runtime.Config) { c.Limits.Hires, c.Limits.Agents = 1, 5 }}.open(t)
	d := fx.drive(t, org.TaskSpec{})
	defer d.Close()
	role := mustCall(t, d, "create_role", obj{"name": "clerk", "rolePrompt": "work", "toolGroups": []string{}})
	for range 4 {
		mustCall(t, d, "spawn_agent", obj{"roleId": role["id"], "taskBrief": "wait"})
	}
	_, err := d.Call(t.Context(), "spawn_agent", mustJSON(obj{"roleId": role["id"], "taskBrief": "wait"}))
	wantCode(t, "a sixth agent of the task", err, errcode.LimitExceeded)
}

// Receive waits while a message may come: from an agent at work, or one that is delayed. It
// fails when none can come, and the driver goes on.
func TestDriver_ReceiveNoticesStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := openFixture(t, "", worker(t))
		defer fx.shutdown(t)
		d := fx.drive(t, org.TaskSpec{})
		defer d.Close()
		receive := func(what string, want errcode.Code) {
			t.Helper()
			list, err := d.Receive(t.Context())
			if errcode.CodeOf(err) != want || (want == "") != (len(list) == 1) {
				t.Errorf("%s: received %+v, %v", what, list, err)
			}
		}
		receive("without agents", errcode.TaskStalled)
		agent := spawnWorker(t, d, "clerk")
		receive("an agent at work", "")
		receive("after its answer", errcode.TaskStalled)
		mustCall(t, d, "spawn_agent", obj{"roleId": "clerk", "taskBrief": taskBrief()})
		receive("an agent without a message", errcode.TaskStalled)
		mustCall(t, d, "send_message", obj{"to": agent, "payload": "go", "delayMs": 60_000})
		receive("a delayed message", "")
		mustCall(t, d, "send_message", obj{"to": agent, "payload": "go", "delayMs": 60_000})
		failed := make(chan error)
		for range 2 {
			go func() { _, err := d.Receive(t.Context()); failed <- err }()
		}
		synctest.Wait()
		if err := fx.TerminateAgent(t.Context(), newCall(operator), agent, "enough"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			wantCode(t, "the agent is terminated while Receive waits", <-failed, errcode.TaskStalled)
		}
	})
}

// A step does not begin while one of the driver before has not ended.
func TestDriver_StepsDoNotOverlap(t *testing.T) {
	var full atomic.Bool
	begun, free, refused := make(chan struct{}), make(chan struct{}), make(chan struct{})
	cfg := fixtureConfig{model: worker(t)}
	cfg.wrapStore = func(s journal.Store) journal.Store {
		return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
			for _, e := range b.Events {
				if call, ok := e.Body.(journal.ToolCall); ok && call.Tool == "create_role" {
					close(begun)
					<-free
				}
			}
			if full.Load() {
				close(refused)
				return 0, errors.New("the disk is full")
			}
			return s.Commit(ctx, b)
		}}
	}
	fx := cfg.open(t)
	d := fx.drive(t, org.TaskSpec{})
	ended := make(chan error, 2)
	go func() {
		_, err := d.Call(t.Context(), "create_role", mustJSON(obj{"name": "x", "rolePrompt": "x"}))
		ended <- err
	}()
	<-begun
	full.Store(true)
	go func() { ended <- d.Close() }()
	<-refused // the task could not be cancelled
	full.Store(false)
	again, err := fx.ResumeDriver(t.Context(), operator, d.TaskID())
	if err != nil {
		t.Fatal(err)
	}
	_, err = again.Call(t.Context(), "find_role_by_name", mustJSON(obj{"name": "x"}))
	wantCode(t, "a call during a step of the driver before", err, errcode.Conflict)
	close(free)
	<-ended
	<-ended
	mustCall(t, again, "find_role_by_name", obj{"name": "x"})
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
