package runtime_test

import (
	"context"
	"encoding/json"
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

// callsFixture has the tools look, which only reads, and act. Both count their calls.
func callsFixture(t *testing.T, dir string, m model.Model, look, act *atomic.Int32) *fixture {
	count := func(n *atomic.Int32) func(context.Context, obj) (any, error) {
		return func(context.Context, obj) (any, error) { n.Add(1); return obj{}, nil }
	}
	return fixtureConfig{dir: dir, model: m, tools: []tool.Tool{
		newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, count(look)), newTool(t, "act", tool.Options{}, count(act)),
	}}.open(t)
}

// Calls that do not fit the budget of the task pause it. No call of theirs starts, the answer is
// kept, and after a retry with more each of them runs once, also in another process.
func TestBudget_CallsPauseTask(t *testing.T) {
	var look, act, asked atomic.Int32
	m := answerFunc(func(r model.Request) model.Answer {
		if len(results(r)) > 0 {
			return endWith("done")
		}
		asked.Add(1)
		return callTools("act", obj{}, "look", obj{}, "look", obj{}, "nowhere", obj{}, "look", obj{})
	})
	dir := fastTempDir(t)
	fx := callsFixture(t, dir, m, &look, &act)
	spec := fx.groupTask(t, "probe")
	spec.Budget.Calls = 3
	id := fx.start(t, spec)
	task := fx.wait(t, id)
	fx.wantPaused(t, task, errcode.BudgetExceeded)
	if want := "the task has started 1 of its 3 tool calls, and 3 more would start"; task.Pause == nil || task.Pause.Message != want {
		t.Fatalf("paused: %+v, want %q", task.Pause, want)
	}
	if look.Load() != 0 || act.Load() != 1 {
		t.Errorf("%d and %d calls ran, want 0 and 1", look.Load(), act.Load())
	}
	fx.shutdown(t)

	fx = callsFixture(t, dir, m, &look, &act)
	if err := fx.RetryTask(t.Context(), id, operator, org.ModelAllowance{Calls: 1}); err != nil {
		t.Fatal(err)
	}
	if task := fx.wait(t, id); task.Status != org.Done {
		t.Errorf("the task is %s", task.Status)
	}
	if look.Load() != 3 || act.Load() != 1 || asked.Load() != 1 {
		t.Errorf("%d and %d calls ran, %d times asked; want 3, 1 and 1", look.Load(), act.Load(), asked.Load())
	}
	tally, err := fx.TaskTally(t.Context(), id)
	want := runtime.BudgetTally{Quantity: "calls", Limit: 4, Used: 4, Warned: true}
	if err != nil || tally.Budgets[len(tally.Budgets)-1] != want {
		t.Errorf("%+v, %v; want %+v", tally.Budgets, err, want)
	}
}

// The limit of the organization holds for a task that asks for more, and for one that asks for
// nothing.
func TestBudget_CallsOfOrganization(t *testing.T) {
	for _, own := range []int64{0, 5} {
		var ran atomic.Int32
		fx := fixtureConfig{
			configure: withBudget(runtime.TaskBudget{Calls: 2}),
			tools:     []tool.Tool{newTool(t, "act", tool.Options{}, func(context.Context, obj) (any, error) { ran.Add(1); return obj{}, nil })},
			model:     answerFunc(func(model.Request) model.Answer { return callTools("act", obj{}) }),
		}.open(t)
		spec := fx.groupTask(t, "probe")
		spec.Budget.Calls = own
		fx.wantPaused(t, fx.wait(t, fx.start(t, spec)), errcode.BudgetExceeded)
		if n := len(eventsOf[journal.ModelAnswered](t, fx)); n != 3 {
			t.Errorf("%d answers are on record, want 3", n)
		}
		if ran.Load() != 2 {
			t.Errorf("%d calls ran, want 2", ran.Load())
		}
	}
}

// An agent that has spent its calls fails, and its parent reads why. The task goes on.
func TestBudget_CallsOfAgent(t *testing.T) {
	var look, act atomic.Int32
	b := &budgetTask{fixture: callsFixture(t, "", budgetModel, &look, &act)}
	b.id = b.start(t, org.TaskSpec{Text: "go", Open: true})
	b.root = b.topAgent(t, b.id)
	role, err := b.CreateRole(t.Context(), newCall(identity.ByAgent(b.root)), org.RoleSpec{Name: "worker", Use: groupSet("probe"), Grant: groupSet("probe")})
	if err != nil {
		t.Fatal(err)
	}
	b.role = role.ID
	worker := b.mustSpawn(t, b.root, org.ModelAllowance{Calls: 5})
	below := b.mustSpawn(t, worker, org.ModelAllowance{Calls: 2})
	_, err = b.spawn(t, worker, org.ModelAllowance{Calls: 4})
	wantLeft(t, err, "calls", 3)
	b.send(t, worker, `{"use":1,"calls":4}`) // three fit, and the fourth is what below has
	failed := b.waitEvent(t, func(e journal.Event) bool {
		_, failed := e.Body.(journal.TurnFailed)
		return failed && e.Agent == worker
	})
	if got, want := failed.Body.(journal.TurnFailed).Message, "agent worker-1 has started 3 and reserved 2 for agents of its 5 tool calls, and 1 more would start"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.send(t, below, `{"use":1,"calls":2,"end":true}`)
	b.waitEvent(t, func(e journal.Event) bool {
		a, ok := e.Body.(journal.ModelAnswered)
		return ok && e.Agent == below && a.Answer.Finish.EndsTurn()
	})
	if look.Load() != 4 || act.Load() != 1 {
		t.Errorf("%d and %d calls ran, want 4 and 1", look.Load(), act.Load())
	}
	if task, _ := b.Org().TaskByID(b.id); task.Status != org.Running {
		t.Errorf("the task is %s", task.Status)
	}
}

// A program that drives an agent gets the error, and its task is paused.
func TestBudget_CallsOfDriver(t *testing.T) {
	fx := openFixture(t, "", worker(t))
	d := fx.drive(t, org.TaskSpec{Budget: org.ModelAllowance{Calls: 1}})
	defer d.Close()
	args := func(name string) json.RawMessage {
		return mustJSON(obj{"name": name, "rolePrompt": "work", "toolGroups": []string{}})
	}
	if _, err := d.Call(t.Context(), "create_role", args("one")); err != nil {
		t.Fatal(err)
	}
	_, err := d.Call(t.Context(), "create_role", args("two"))
	wantCode(t, "a call beyond the budget", err, errcode.BudgetExceeded)
	if task, _ := fx.Org().TaskByID(d.TaskID()); task.Status != org.Paused {
		t.Errorf("the task is %s", task.Status)
	}
	if err := fx.RetryTask(t.Context(), d.TaskID(), operator, org.ModelAllowance{Calls: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Call(t.Context(), "create_role", args("two")); err != nil {
		t.Error(err)
	}
}
