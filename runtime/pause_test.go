package runtime_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

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

func TestRetry_OnlyPausedTasks(t *testing.T) {
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
