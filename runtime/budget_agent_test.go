package runtime_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
)

// budgetTask is an open task whose agents use what the messages of the operator ask for.
type budgetTask struct {
	*fixture
	id   identity.TaskID
	root identity.AgentID
	role identity.RoleID
}

func newBudgetTask(t *testing.T, m model.Model, budget org.ModelAllowance) *budgetTask {
	b := &budgetTask{fixture: fixtureConfig{model: m, configure: withBudget(runtime.TaskBudget{Tokens: runtime.NoTokenLimit})}.open(t)}
	b.id = b.start(t, org.TaskSpec{Text: "go", Open: true, Budget: budget})
	b.root = b.topAgent(t, b.id)
	b.waitEvent(t, func(e journal.Event) bool { return e.Agent == b.root && endsRequest(e.Body) })
	role, err := b.CreateRole(t.Context(), newCall(identity.ByAgent(b.root)), org.RoleSpec{Name: "worker", Use: groupSet()})
	if err != nil {
		t.Fatal(err)
	}
	b.role = role.ID
	return b
}

// spawn spawns a worker below an agent.
func (b *budgetTask) spawn(t *testing.T, by identity.AgentID, budget org.ModelAllowance) (identity.AgentID, error) {
	s := org.SpawnSpec{Role: b.role, Budget: budget, Brief: org.TaskBrief{Objective: "o", Constraints: org.TextLines{}, Inputs: "i", Outputs: "o", CompletionCriteria: "c"}}
	out, err := b.SpawnAgent(t.Context(), newCall(identity.ByAgent(by)), s, nil)
	return out.ID, err
}

func (b *budgetTask) mustSpawn(t *testing.T, by identity.AgentID, budget org.ModelAllowance) identity.AgentID {
	t.Helper()
	id, err := b.spawn(t, by, budget)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// ask sends an agent a message and waits until its model has answered, or its turn has failed.
func (b *budgetTask) ask(t *testing.T, id identity.AgentID, payload string) journal.EventBody {
	t.Helper()
	after := b.store.LastSeq()
	b.send(t, id, payload)
	e := b.waitEvent(t, func(e journal.Event) bool { return e.Seq > after && e.Agent == id && endsRequest(e.Body) })
	return e.Body
}

// wantLeft requires that a spawn is rejected because so much is left.
func wantLeft(t *testing.T, err error, quantity string, left int64) {
	t.Helper()
	if errcode.CodeOf(err) != errcode.BudgetExceeded {
		t.Fatalf("got %v, want budget_exceeded", err)
	}
	known, _ := errors.AsType[*errcode.Error](err)
	d := mustJSON(known.Details)
	if got := gjson.GetBytes(d, "left"); got.Int() != left || gjson.GetBytes(d, "quantity").Str != quantity {
		t.Errorf("%v: details %s, want %d %s", err, d, left, quantity)
	}
}

// A budget is taken from that of the parent when an agent is spawned. What is not used returns when
// the agent is terminated, and when it has answered.
func TestBudget_SpawnTakesFromParent(t *testing.T) {
	b := newBudgetTask(t, budgetModel, org.ModelAllowance{Tokens: 100_000, Requests: 20})
	first := b.mustSpawn(t, b.root, org.ModelAllowance{Tokens: 60_000, Requests: 10})
	_, err := b.spawn(t, b.root, org.ModelAllowance{Tokens: 60_000})
	wantLeft(t, err, "tokens", 100_000-2-60_000)
	_, err = b.spawn(t, b.root, org.ModelAllowance{Requests: 10})
	wantLeft(t, err, "requests", 20-1-10)
	if want := "spawn an agent with a budget of 10 requests: the task has 9 left of 20; ask for less, or terminate agents that are not needed"; err.Error() != want && !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %q", err)
	}
	below := b.mustSpawn(t, first, org.ModelAllowance{Tokens: 50_000})
	_, err = b.spawn(t, first, org.ModelAllowance{Tokens: 10_001})
	wantLeft(t, err, "tokens", 10_000)
	shared := b.mustSpawn(t, first, org.ModelAllowance{}) // shares what its parent has
	_, err = b.spawn(t, shared, org.ModelAllowance{Tokens: 10_001})
	wantLeft(t, err, "tokens", 10_000)

	if err := b.TerminateAgent(t.Context(), newCall(identity.ByAgent(first)), below, "enough"); err != nil {
		t.Fatal(err)
	}
	b.mustSpawn(t, first, org.ModelAllowance{Tokens: 40_000})
	if answer, ok := b.ask(t, first, `{"use":999,"end":true}`).(journal.ModelAnswered); !ok || answer.Answer.Finish != model.FinishEnd {
		t.Fatalf("got %+v", answer)
	}
	tally, err := b.TaskTally(t.Context(), b.id)
	if err != nil || len(tally.Budgets) != 5 {
		t.Fatalf("%+v, %v", tally.Budgets, err)
	}
	for _, one := range tally.Budgets {
		if one.Agent == "" && one.Quantity == "requests" && one.Reserved != 0 {
			t.Errorf("after the answer: %+v", one)
		}
	}
}

// A budget that is no amount is rejected, and so is one in a task that no process works on.
func TestBudget_SpawnRejectsAmounts(t *testing.T) {
	b := newBudgetTask(t, budgetModel, org.ModelAllowance{})
	for _, bad := range []org.ModelAllowance{{Tokens: -1}, {Cost: -1}, {Requests: -1}, {Calls: -1}, {Tokens: math.MaxInt64}, {Calls: math.MaxInt64}, {Cost: org.MaxAllowance + 1}} {
		if _, err := b.spawn(t, b.root, bad); errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for range 3 { // the task has no limit of tokens, so no sum overflows
		b.mustSpawn(t, b.root, org.ModelAllowance{Tokens: org.MaxAllowance, Cost: org.MaxAllowance})
	}
}

// A spawn that is rejected for another reason takes nothing.
func TestBudget_RejectedSpawnTakesNothing(t *testing.T) {
	b := newBudgetTask(t, budgetModel, org.ModelAllowance{Tokens: 100_000})
	role := b.role
	b.role = "nowhere"
	if _, err := b.spawn(t, b.root, org.ModelAllowance{Tokens: 60_000}); errcode.CodeOf(err) != errcode.RoleNotFound {
		t.Fatal(err)
	}
	b.role = role
	b.mustSpawn(t, b.root, org.ModelAllowance{Tokens: 60_000})
}

// An agent that has spent its own budget fails, and its parent reads why. The task goes on.
func TestBudget_AgentFailsWithoutItsTask(t *testing.T) {
	b := newBudgetTask(t, budgetModel, org.ModelAllowance{Tokens: 1 << 40})
	worker := b.mustSpawn(t, b.root, org.ModelAllowance{Cost: 1, Requests: 2})
	b.ask(t, worker, `{"use":10}`)
	failed, ok := b.ask(t, worker, `{"use":10}`).(journal.TurnFailed)
	if want := "agent worker-1 has cost 0.000000 of its budget of 0.000000"; !ok || failed.Code != errcode.BudgetExceeded || failed.Message != want {
		t.Fatalf("got %+v, want %q", failed, want)
	}
	told := b.waitEvent(t, func(e journal.Event) bool {
		sent, ok := e.Body.(journal.MessageReceived)
		return ok && e.Agent == b.root && sent.Message.From == string(worker)
	})
	if got := gjson.GetBytes(told.Body.(journal.MessageReceived).Message.Payload, "errorType").Str; got != string(errcode.BudgetExceeded) {
		t.Errorf("the parent reads %q", got)
	}
	if task, _ := b.Org().TaskByID(b.id); task.Status != org.Running {
		t.Errorf("the task is %s", task.Status)
	}
	b.ask(t, b.root, `{"use":10}`)
}

// Two agents that ask for the last remainder at once cannot both have it.
func TestBudget_ConcurrentSpawnsShareRemainder(t *testing.T) {
	b := newBudgetTask(t, budgetModel, org.ModelAllowance{Tokens: 100_000})
	for range len(short.SampleRange(t, 20, 1, 300)) {
		var made atomic.Int32
		var ids [4]identity.AgentID
		var group sync.WaitGroup
		for i := range ids {
			group.Go(func() {
				id, err := b.spawn(t, b.root, org.ModelAllowance{Tokens: 60_000})
				if err == nil {
					made.Add(1)
					ids[i] = id
				} else if errcode.CodeOf(err) != errcode.BudgetExceeded {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if n := made.Load(); n != 1 {
			t.Fatalf("%d of 4 agents have the last remainder", n)
		}
		for _, id := range ids {
			if id != "" {
				if err := b.TerminateAgent(t.Context(), newCall(operator), id, "enough"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// After four fifths of a budget a warning is recorded once. The task pauses when the rest is too
// little, and a retry with more tokens lets it go on without a warning.
func TestBudget_WarnsOnce(t *testing.T) {
	var mu sync.Mutex // guards notes
	var notes []string
	m := withWindow(1_000_000, answerFunc(func(r model.Request) model.Answer {
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, r.Note)
		a := waitForMessage()
		a.Usage = model.TokenUsage{Input: 10_000}
		return a
	}))
	b := newBudgetTask(t, m, org.ModelAllowance{Tokens: 60_000})
	for range 4 {
		b.ask(t, b.root, `"more"`)
	}
	list := bodiesOf[journal.BudgetWarning](t, b.fixture)
	if want := (journal.BudgetWarning{Quantity: "tokens", Used: 50_000, Limit: 60_000}); len(list) != 1 || list[0] != want {
		t.Errorf("warnings %+v, want %+v", list, want)
	}
	b.send(t, b.root, `"once more"`) // about 11,000 tokens are needed, and 10,000 are left
	b.waitEvent(t, func(e journal.Event) bool { _, paused := e.Body.(journal.TaskPaused); return paused })
	if err := b.RetryTask(t.Context(), b.id, operator, org.ModelAllowance{Tokens: 60_000}); err != nil {
		t.Fatal(err)
	}
	b.waitEvent(t, func(e journal.Event) bool {
		a, ok := e.Body.(journal.ModelAnswered)
		return ok && a.Answer.MessagesRead == 6
	})
	mu.Lock()
	defer mu.Unlock()
	if text := strings.Join(notes, ""); len(notes) != 6 || strings.Contains(text, "Your budget") {
		t.Errorf("%d requests with the notes %q", len(notes), text)
	}
	b.wantTaskTokens(t, runtime.BudgetTally{Quantity: "tokens", Limit: 120_000, Used: 60_000})
}

// wantTaskTokens compares what was used of the task's tokens.
func (b *budgetTask) wantTaskTokens(t *testing.T, want runtime.BudgetTally) {
	t.Helper()
	tally, err := b.TaskTally(t.Context(), b.id)
	if err != nil || !slices.Contains(tally.Budgets, want) {
		t.Errorf("%+v, %v; want %+v", tally.Budgets, err, want)
	}
}

// A model reads that its budget is nearly spent, with its own first. Without warnings it does not.
func TestBudget_NoteNamesBudgets(t *testing.T) {
	for _, c := range []struct {
		name   string
		warnAt int
		want   string
	}{
		{"by default", 0, "You: 4 of 5 requests are used.\nFinish with what you have."},
		{"at half", 50, "You: 4 of 5 requests are used.\nThe task: 13 of 20 requests are used.\nFinish with what you have."},
		{"never", runtime.NoWarning, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var note atomic.Value
			m := withWindow(1_000_000, answerFunc(func(r model.Request) model.Answer {
				if r.Self.Role == "worker" {
					note.Store(r.Note)
				}
				a := waitForMessage()
				a.Usage = model.TokenUsage{Input: 5}
				return a
			}))
			fx := fixtureConfig{model: m, configure: withBudget(runtime.TaskBudget{WarnAt: c.warnAt})}.open(t)
			b := &budgetTask{fixture: fx}
			b.id = b.start(t, org.TaskSpec{Text: "go", Open: true, Budget: org.ModelAllowance{Requests: 20}})
			b.root = b.topAgent(t, b.id)
			b.waitEvent(t, func(e journal.Event) bool { return e.Agent == b.root && endsRequest(e.Body) })
			role, err := b.CreateRole(t.Context(), newCall(identity.ByAgent(b.root)), org.RoleSpec{Name: "worker", Use: groupSet()})
			if err != nil {
				t.Fatal(err)
			}
			b.role = role.ID
			for range 8 {
				b.ask(t, b.root, `"more"`)
			}
			worker := b.mustSpawn(t, b.root, org.ModelAllowance{Requests: 5})
			for range 5 {
				b.ask(t, worker, `"more"`)
			}
			got, _ := note.Load().(string)
			if !strings.HasSuffix(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("note %q, want %q", got, c.want)
			}
		})
	}
}
