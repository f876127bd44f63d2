package runtime_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// keyRejected is the error of a provider that does not accept the key of a model.
func keyRejected() error {
	return model.OperatorError(errcode.LLMCallFailed, nil, "the key is not accepted")
}

// A rejected key pauses the task. After the retry it goes on where it was: no answer is
// asked for twice, and nothing failed.
func TestPause_GoesOnAfterRetry(t *testing.T) {
	for _, restart := range []bool{false, true} {
		rejected := atomic.Bool{}
		rejected.Store(true)
		m := modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
			switch {
			case answerCount(r) == 0:
				return callTools("look", obj{}), nil
			case rejected.Load():
				return model.Answer{}, keyRejected()
			}
			return endWith("done"), nil
		})
		looks := atomic.Int32{}
		look := newTool(t, "look", tool.Options{}, func(context.Context, obj) (any, error) { return looks.Add(1), nil })
		cfg := fixtureConfig{dir: fastTempDir(t), model: m, tools: []tool.Tool{look}}
		fx := cfg.open(t)
		task := fx.run(t, fx.groupTask(t, "probe"))
		fx.wantPaused(t, task, errcode.LLMCallFailed)
		if restart {
			fx.shutdown(t)
			fx = cfg.open(t)
			fx.resume(t, task.ID) // does nothing
			if got := fx.TaskStatus(task); got != org.Paused {
				t.Errorf("after the restart: %s", got)
			}
		}
		rejected.Store(false)
		if err := fx.RetryTask(t.Context(), task.ID, operator, org.ModelAllowance{}); err != nil {
			t.Fatal(err)
		}
		fx.wantResult(t, fx.wait(t, task.ID), `"done"`, "")
		if n := looks.Load(); n != 1 {
			t.Errorf("look was called %d times", n)
		}
		var types []journal.EventType
		for _, e := range fx.events(t) {
			switch e.Body.(type) {
			case journal.TaskPaused, journal.TaskRetried, journal.TaskEnded, journal.TurnFailed:
				types = append(types, e.Body.EventType())
			}
		}
		if want := []journal.EventType{"task_paused", "task_retried", "result"}; !slices.Equal(types, want) {
			t.Errorf("got %v, want %v", types, want)
		}
	}
}

// An agent below pauses the whole task. A call of another agent that runs meanwhile keeps
// its outcome and is not repeated.
func TestPause_ByAgentBelowKeepsOutcomes(t *testing.T) {
	rejected := atomic.Bool{}
	rejected.Store(true)
	begin, started, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	calls := atomic.Int32{}
	slow := newTool(t, "slow", tool.Options{}, func(context.Context, obj) (any, error) {
		if calls.Add(1) == 1 {
			close(started)
			<-release
		}
		return "kept", nil
	})
	m := modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
		switch {
		case r.Self.Role == "root" && answerCount(r) == 0:
			<-begin
			return waitForMessage(), nil
		case r.Self.Role == "root":
			return endWith("done"), nil
		case r.Self.Role == "slow" && answerCount(r) == 0:
			return callTools("slow", obj{}), nil
		case r.Self.Role == "slow":
			return endWith(string(results(r)[0].Content)), nil
		}
		<-started
		if rejected.Load() {
			return model.Answer{}, keyRejected()
		}
		return waitForMessage(), nil
	})
	fx := fixtureConfig{model: m, tools: []tool.Tool{slow}}.open(t)
	id := fx.start(t, org.TaskSpec{})
	top := fx.topAgent(t, id)
	busy, faulty := fx.spawnAgent(t, top, org.RoleSpec{Name: "slow", Use: groupSet("probe")}), fx.spawnAgent(t, top, org.RoleSpec{Name: "faulty", Use: groupSet()})
	fx.send(t, busy, `"go"`)
	fx.send(t, faulty, `"go"`)
	close(begin)
	fx.waitEvent(t, func(e journal.Event) bool { _, paused := e.Body.(journal.TaskPaused); return paused })
	retried := make(chan error)
	go func() { retried <- fx.RetryTask(t.Context(), id, operator, org.ModelAllowance{}) }() // waits for the running call
	rejected.Store(false)
	close(release)
	if err := <-retried; err != nil {
		t.Fatal(err)
	}
	fx.wantResult(t, fx.wait(t, id), `"done"`, "")
	if n := calls.Load(); n != 1 {
		t.Errorf("slow was called %d times", n)
	}
	if failed := bodiesOf[journal.TurnFailed](t, fx); len(failed) > 0 {
		t.Errorf("failures: %+v", failed)
	}
}

// More tokens let a task go on that has spent its budget; without them it pauses again.
func TestPause_BudgetGrowsByRetry(t *testing.T) {
	fx := fixtureConfig{configure: withBudget(runtime.TaskBudget{Tokens: 1 << 40}), model: withWindow(100_000, answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 2 {
			return withUsage(endWith("done"), 100)
		}
		return withUsage(callTools("console_print", obj{"text": "x"}), 30_000)
	}))}.open(t)
	task := fx.run(t, org.TaskSpec{Budget: org.ModelAllowance{Tokens: 20_000}})
	fx.wantPaused(t, task, errcode.BudgetExceeded)
	for _, extra := range []int64{0, 20_000, 60_000} {
		if err := fx.RetryTask(t.Context(), task.ID, operator, org.ModelAllowance{Tokens: extra}); err != nil {
			t.Fatal(err)
		}
		task = fx.wait(t, task.ID)
		if extra < 60_000 {
			fx.wantPaused(t, task, errcode.BudgetExceeded)
		}
	}
	fx.wantResult(t, task, `"done"`, "")
}

func TestRetry_OnlyStoppedTasks(t *testing.T) {
	rejected := atomic.Bool{}
	rejected.Store(true)
	hold := make(chan struct{})
	fx := openFixture(t, "", modelFunc(func(context.Context, model.Request) (model.Answer, error) {
		if rejected.Load() {
			return model.Answer{}, keyRejected()
		}
		<-hold
		return endWith("done"), nil
	}))
	retry := func(id identity.TaskID) errcode.Code {
		return errcode.CodeOf(fx.RetryTask(context.Background(), id, operator, org.ModelAllowance{}))
	}
	if got := retry("nothing"); got != errcode.TaskNotFound {
		t.Errorf("unknown: %q", got)
	}
	paused, cancelled := fx.run(t, org.TaskSpec{}), fx.run(t, org.TaskSpec{})
	if err := fx.CancelTask(t.Context(), cancelled.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	if task := fx.wait(t, cancelled.ID); task.Status != org.Cancelled || task.Pause != nil {
		t.Errorf("cancelled: %+v", task)
	}
	rejected.Store(false)
	var codes [8]errcode.Code
	var all sync.WaitGroup
	for i := range codes {
		all.Go(func() { codes[i] = retry(paused.ID) })
	}
	all.Wait()
	accepted := 0
	for _, code := range codes {
		switch code {
		case "":
			accepted++
		case errcode.Conflict:
		default:
			t.Errorf("one of several retries: %q", code)
		}
	}
	if accepted != 1 {
		t.Errorf("%d retries at once were accepted, want 1", accepted)
	}
	close(hold)
	fx.wantResult(t, fx.wait(t, paused.ID), `"done"`, "")
	if got := retry(paused.ID); got != errcode.Conflict {
		t.Errorf("done: %q", got)
	}
}

// A task that failed or was cancelled goes on from its last answer. Mail that was not read
// is read, and a call without an outcome is told as after a crash.
func TestRetry_AfterFailure(t *testing.T) {
	for _, restart := range []bool{false, true} {
		failing, calls := atomic.Bool{}, atomic.Int32{}
		failing.Store(true)
		look := newTool(t, "look", tool.Options{}, func(context.Context, obj) (any, error) { return calls.Add(1), nil })
		cfg := fixtureConfig{dir: fastTempDir(t), tools: []tool.Tool{look}, model: modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
			switch {
			case answerCount(r) == 0:
				return callTools("look", obj{}), nil
			case failing.Load():
				return model.Answer{}, errcode.New(errcode.LLMCallFailed, "no luck")
			}
			if n := answerCount(r); n != 1 {
				t.Errorf("the model is asked with %d answers, want 1", n)
			}
			return endWith("done"), nil
		})}
		fx := cfg.open(t)
		task := fx.run(t, fx.groupTask(t, "probe"))
		fx.wantResult(t, task, "", errcode.LLMCallFailed)
		if restart {
			fx.shutdown(t)
			fx = cfg.open(t)
		}
		for range 2 { // it fails once more
			if err := fx.RetryTask(t.Context(), task.ID, operator, org.ModelAllowance{}); err != nil {
				t.Fatal(err)
			}
			if failing.Load() {
				fx.wantResult(t, fx.wait(t, task.ID), "", errcode.LLMCallFailed)
				failing.Store(false)
			}
		}
		fx.wantResult(t, fx.wait(t, task.ID), `"done"`, "")
		if n := calls.Load(); n != 1 {
			t.Errorf("look was called %d times", n)
		}
		var results []string
		for e, err := range fx.WatchTask(t.Context(), task.ID, 0) { // ends with the last result
			if err != nil {
				t.Fatal(err)
			}
			if b, ok := e.Body.(journal.TaskEnded); ok {
				results = append(results, b.Status)
			}
		}
		if want := []string{"failed", "failed", "done"}; !slices.Equal(results, want) {
			t.Errorf("results %v, want %v", results, want)
		}
		if agents := fx.Org().ListAgents(task.ID); len(agents) != 1 || fx.AgentStatus(agents[0]) != org.AgentFinished {
			t.Errorf("agents: %+v", agents)
		}
	}
}

// A cancelled task keeps its unread mail. A mutating call whose outcome is unknown is not
// repeated.
func TestRetry_AfterCancellation(t *testing.T) {
	started, calls := make(chan struct{}), atomic.Int32{}
	slow := newTool(t, "slow", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
		calls.Add(1)
		close(started)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	dir := fastTempDir(t)
	cfg := fixtureConfig{dir: dir, tools: []tool.Tool{slow}, model: answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 0 {
			return callTools("slow", obj{})
		}
		return endWith(string(results(r)[0].Content) + "; " + string(r.Items[len(r.Items)-1].Message.Payload))
	})}
	fx := cfg.open(t)
	id := fx.start(t, fx.groupTask(t, "probe"))
	<-started
	fx.send(t, fx.topAgent(t, id), `"unread"`)
	if err := fx.CancelTask(t.Context(), id, "enough"); err != nil {
		t.Fatal(err)
	}
	fx.shutdown(t)
	fx = cfg.open(t)
	if err := fx.RetryTask(t.Context(), id, operator, org.ModelAllowance{}); err != nil {
		t.Fatal(err)
	}
	task := fx.wait(t, id)
	if text := string(task.Result); task.Status != org.Done || !strings.Contains(text, "tool_interrupted") || !strings.Contains(text, "unread") {
		t.Errorf("%s: %s %v\n%s", task.Status, text, task.Error, fx.eventLog(t))
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("slow was called %d times", n)
	}
}

// A task that was cancelled goes on when its agents have stopped. One that stops late does
// not end it.
func TestRetry_WaitsForStoppingAgents(t *testing.T) {
	asked, release := make(chan struct{}, 1), make(chan struct{})
	requests := atomic.Int32{}
	fx := fixtureConfig{model: modelFunc(func(ctx context.Context, _ model.Request) (model.Answer, error) {
		if requests.Add(1) > 1 {
			return endWith("done"), nil
		}
		asked <- struct{}{}
		<-ctx.Done()
		<-release
		return model.Answer{}, ctx.Err()
	})}.open(t)
	id := fx.start(t, org.TaskSpec{})
	<-asked
	if err := fx.CancelTask(t.Context(), id, "enough"); err != nil {
		t.Fatal(err)
	}
	hurried, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := fx.RetryTask(hurried, id, operator, org.ModelAllowance{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a retry while the agent stops: %v", err)
	}
	if task, _ := fx.Org().TaskByID(id); task.Status != org.Cancelled {
		t.Errorf("the task is %s", task.Status)
	}
	close(release)
	if err := fx.RetryTask(t.Context(), id, operator, org.ModelAllowance{}); err != nil {
		t.Fatal(err)
	}
	fx.wantResult(t, fx.wait(t, id), `"done"`, "")
}

// A task that became idle is cancelled before its end is recorded. A retry waits until that
// end was given up, which then does not end the retried task.
func TestRetry_WaitsForIdleEnd(t *testing.T) {
	requests, started, ending, release := atomic.Int32{}, make(chan struct{}), make(chan struct{}), make(chan struct{})
	held := atomic.Bool{}
	hold := func(s journal.Store) journal.Store {
		return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
			if requests.Load() == 1 && b.Stream == "" { // the end of the idle task
				if held.CompareAndSwap(false, true) {
					close(ending)
					<-release
				}
			}
			return s.Commit(ctx, b)
		}}
	}
	fx := fixtureConfig{wrapStore: hold, model: answerFunc(func(model.Request) model.Answer {
		<-started // else StartTask itself may record the end, and be held
		if requests.Add(1) == 1 {
			return waitForMessage()
		}
		return endWith("done")
	})}.open(t)
	id := fx.start(t, org.TaskSpec{})
	close(started)
	<-ending
	fx.send(t, fx.topAgent(t, id), `"go on"`)
	if err := fx.CancelTask(t.Context(), id, "enough"); err != nil {
		t.Fatal(err)
	}
	hurried, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := fx.RetryTask(hurried, id, operator, org.ModelAllowance{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a retry before the end of the idle task was given up: %v", err)
	}
	close(release)
	if err := fx.RetryTask(t.Context(), id, operator, org.ModelAllowance{}); err != nil {
		t.Fatal(err)
	}
	fx.wantResult(t, fx.wait(t, id), `"done"`, "")
}

// The agents of a task that goes on count for its caller again.
func TestRetry_CountsAgents(t *testing.T) {
	failing := atomic.Bool{}
	failing.Store(true)
	fx := fixtureConfig{configure: func(c *runtime.Config) { c.Limits.Agents = 1 }, model: modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
		if failing.Load() {
			return model.Answer{}, errcode.New(errcode.LLMCallFailed, "no luck")
		}
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	})}.open(t)
	lead, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "lead"})
	if err != nil {
		t.Fatal(err)
	}
	caller := identity.ByCaller("ann", lead.ID)
	var ids []identity.TaskID
	for range 40 {
		id, err := fx.StartTask(t.Context(), org.TaskSpec{Text: "x", Caller: caller})
		if err != nil {
			t.Fatal(err)
		}
		fx.wait(t, id)
		ids = append(ids, id)
	}
	failing.Store(false)
	retried := 0
	for _, id := range ids {
		switch err := fx.RetryTask(t.Context(), id, caller, org.ModelAllowance{}); errcode.CodeOf(err) {
		case "":
			retried++
		case errcode.LimitExceeded:
		default:
			t.Fatal(err)
		}
	}
	if retried == 0 || retried == len(ids) {
		t.Errorf("%d of %d tasks of one caller go on", retried, len(ids))
	}
}

// A retry keeps a message that came after an aborted turn. The agent answers it once.
func TestRetry_KeepsMessageAfterAbortedTurn(t *testing.T) {
	asked, rejected := make(chan struct{}, 1), atomic.Bool{}
	rejected.Store(true)
	fx := openFixture(t, "", modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
		switch {
		case answerCount(r) == 0 && rejected.Load():
			asked <- struct{}{}
			<-ctx.Done()
			return model.Answer{}, context.Cause(ctx)
		case rejected.Load():
			return model.Answer{}, keyRejected()
		}
		list := messages(r)
		return endWith(string(list[len(list)-1].Payload)), nil
	}))
	id := fx.start(t, org.TaskSpec{Text: "one", Open: true})
	top := fx.topAgent(t, id)
	<-asked
	if err := fx.AbortTurn(top); err != nil {
		t.Fatal(err)
	}
	fx.waitEvent(t, func(e journal.Event) bool { _, failed := e.Body.(journal.TurnFailed); return failed })
	fx.send(t, top, `"two"`)
	fx.wantPaused(t, fx.wait(t, id), errcode.LLMCallFailed)
	rejected.Store(false)
	if err := fx.RetryTask(t.Context(), id, operator, org.ModelAllowance{}); err != nil {
		t.Fatal(err)
	}
	e := fx.waitEvent(t, func(e journal.Event) bool { _, answered := e.Body.(journal.ModelAnswered); return answered })
	if a := e.Body.(journal.ModelAnswered).Answer; a.Text != `"two"` || a.MessagesRead != 2 {
		t.Errorf("the agent answers %s and has read %d messages, want \"two\" and 2", a.Text, a.MessagesRead)
	}
}

// A task goes on if the request for the retry ends after its commit.
func TestRetry_GoesOnAfterRequestEnds(t *testing.T) {
	rejected := atomic.Bool{}
	rejected.Store(true)
	request, disconnect := context.WithCancel(t.Context())
	defer disconnect()
	fx := fixtureConfig{
		wrapStore: func(s journal.Store) journal.Store {
			return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
				seq, err := s.Commit(ctx, b)
				if slices.ContainsFunc(b.Events, func(e journal.Event) bool { _, retried := e.Body.(journal.TaskRetried); return retried }) {
					disconnect()
				}
				return seq, err
			}}
		},
		model: modelFunc(func(context.Context, model.Request) (model.Answer, error) {
			if rejected.Load() {
				return model.Answer{}, keyRejected()
			}
			return endWith("done"), nil
		}),
	}.open(t)
	task := fx.run(t, org.TaskSpec{})
	fx.wantPaused(t, task, errcode.LLMCallFailed)
	rejected.Store(false)
	if err := fx.RetryTask(request, task.ID, operator, org.ModelAllowance{}); err != nil {
		t.Errorf("the retry was committed: %v", err)
	}
	fx.wantResult(t, fx.wait(t, task.ID), `"done"`, "")
}
