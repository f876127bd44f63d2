package runtime_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"regexp"
	goruntime "runtime"
	"strings"
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

// withBudget returns a configuration with a budget.
func withBudget(b runtime.TaskBudget) func(*runtime.Config) {
	return func(c *runtime.Config) { c.Budget = b }
}

func TestBudget_TooSmallForFirstRequest(t *testing.T) {
	fx := fixtureConfig{configure: withBudget(runtime.TaskBudget{Tokens: 100}), model: withWindow(100_000, answerFunc(func(model.Request) model.Answer {
		t.Error("the model was called")
		return endWith("done")
	}))}.open(t)
	task := fx.run(t, org.TaskSpec{})
	fx.wantPaused(t, task, errcode.BudgetExceeded)
	want := regexp.MustCompile(`^the task has used 0 of its 100 tokens, and the next request needs about \d{4,}$`)
	if task.Pause != nil && !want.MatchString(task.Pause.Message) {
		t.Errorf("the reason is %q", task.Pause.Message)
	}
}

// twoWorkers is a fixture with two workers whose requests block until the test
// answers them. The budget of the task allows little more than one request.
type twoWorkers struct {
	*fixture
	first, second identity.AgentID
	asked         chan identity.AgentID
	answer        chan error   // the error of the pending request, or nil
	now, most     atomic.Int32 // requests at once
}

func newTwoWorkers(t *testing.T) *twoWorkers {
	c := &twoWorkers{asked: make(chan identity.AgentID), answer: make(chan error)}
	answer := modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
		if r.Self.Role == "root" {
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		}
		c.most.Store(max(c.most.Load(), c.now.Add(1)))
		defer c.now.Add(-1)
		c.asked <- r.Self.ID
		err := <-c.answer
		a := waitForMessage()
		a.Usage = model.TokenUsage{Input: 10, Output: 10}
		return a, err
	})
	c.fixture = fixtureConfig{configure: withBudget(runtime.TaskBudget{Tokens: 150_000}), model: withWindow(1_000_000, answer)}.open(t)
	id := c.start(t, org.TaskSpec{})
	c.first = c.spawnAgent(t, c.topAgent(t, id), org.RoleSpec{Name: "first", Use: groupSet()})
	c.second = c.spawnAgent(t, c.topAgent(t, id), org.RoleSpec{Name: "second", Use: groupSet()})
	return c
}

// sendLarge sends a worker a message of about 100,000 tokens.
func (c *twoWorkers) sendLarge(t *testing.T, to identity.AgentID) {
	c.send(t, to, `"`+strings.Repeat("x", 400_000)+`"`)
}

// Two concurrent requests cannot exceed a limit that allows one of them. The second waits
// until the first ends, with or without an error.
func TestBudget_ReservesConcurrentRequests(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
	}{
		{"the first is answered", nil},
		{"the first fails", errcode.New(errcode.RateLimited, "later")},
	} {
		t.Run(c.name, func(t *testing.T) {
			fx := newTwoWorkers(t)
			fx.sendLarge(t, fx.first)
			<-fx.asked
			fx.sendLarge(t, fx.second)
			for fx.AgentStatus(org.Agent{ID: fx.second, Status: org.Active}) != org.AgentThinking {
				goruntime.Gosched()
			}
			for range 1000 {
				goruntime.Gosched()
			}
			fx.answer <- c.err
			fx.waitEvent(t, func(e journal.Event) bool { return e.Agent == fx.first && endsRequest(e.Body) })
			if id := <-fx.asked; id != fx.second {
				t.Errorf("%s is asked, want %s", id, fx.second)
			}
			fx.answer <- nil
			if most := fx.most.Load(); most != 1 {
				t.Errorf("%d requests at once, want 1", most)
			}
		})
	}
}

// endsRequest reports whether an event ends a model request.
func endsRequest(b journal.EventBody) bool {
	switch b.(type) {
	case journal.ModelAnswered, journal.TurnFailed:
		return true
	}
	return false
}

// The usage of a task before a restart counts after it.
func TestBudget_CountsUsageBeforeRestart(t *testing.T) {
	hangs := make(chan struct{})
	again := false
	look := newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(ctx context.Context, _ obj) (any, error) {
		if again {
			return "seen", nil
		}
		again = true
		close(hangs)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	cfg := fixtureConfig{dir: fastTempDir(t), tools: []tool.Tool{look}, configure: withBudget(runtime.TaskBudget{Tokens: 250_000}), model: withWindow(1_000_000, answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) > 0 {
			t.Error("the model was called beyond the budget")
		}
		return withUsage(callTools("look", obj{}), 150_000)
	}))}
	fx := cfg.open(t)
	id := fx.start(t, fx.groupTask(t, "probe"))
	<-hangs
	fx.shutdown(t)
	fx = cfg.open(t)
	fx.resume(t, id)
	task := fx.wait(t, id)
	fx.wantPaused(t, task, errcode.BudgetExceeded)
	if task.Pause != nil && !strings.HasPrefix(task.Pause.Message, "the task has used 150010 of its 250000 tokens") {
		t.Errorf("the reason is %q", task.Pause.Message)
	}
}

// The usage never decreases: counts of a provider neither lower it nor make it
// overflow, and missing counts are estimated.
func TestBudget_SumsNeitherDecreaseNorOverflow(t *testing.T) {
	for _, c := range []struct {
		name    string
		bound   runtime.TaskBudget
		usage   []model.TokenUsage // of the answers; the last one repeats
		answers int                // before the limit is reached; 0 means some
	}{
		{"counted tokens", runtime.TaskBudget{Tokens: 60_000}, []model.TokenUsage{{Input: 20_000, Output: 1_000}}, 2},
		{"cached tokens", runtime.TaskBudget{Tokens: 60_000}, []model.TokenUsage{{Input: 20_000, Cached: 20_000, Output: 1_000}}, 2},
		{"uncounted tokens", runtime.TaskBudget{Tokens: 20_000}, []model.TokenUsage{{}}, 0},
		{"negative tokens", runtime.TaskBudget{Tokens: 20_000}, []model.TokenUsage{{Input: -1 << 30, Output: -1 << 30, Cached: -1}}, 0},
		{"maximal tokens", runtime.TaskBudget{Tokens: math.MaxInt64 - 5_000}, []model.TokenUsage{{Input: math.MaxInt, Output: math.MaxInt}}, -1},
		{"more tokens than the limit", runtime.TaskBudget{Tokens: 1 << 27}, []model.TokenUsage{{Input: math.MaxInt, Output: math.MaxInt}}, 1},
		{"cost", runtime.TaskBudget{Cost: 1_000}, []model.TokenUsage{{Input: 1, Cost: 400}}, 3},
		{"negative cost", runtime.TaskBudget{Cost: 1_000}, []model.TokenUsage{{Input: 1, Cost: 999}, {Input: 1, Cost: -999}, {Input: 1, Cost: 1}}, 3},
		{"maximal cost", runtime.TaskBudget{Cost: 1_000}, []model.TokenUsage{{Input: 1, Cost: math.MaxInt64}}, 1},
		{"cost, with tokens within the limit", runtime.TaskBudget{Tokens: 1 << 40, Cost: 1_000}, []model.TokenUsage{{Input: 1, Cost: 1_000}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			look := newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil })
			fx := fixtureConfig{tools: []tool.Tool{look}, configure: withBudget(c.bound), model: withWindow(math.MaxInt32, answerFunc(func(r model.Request) model.Answer {
				n := answerCount(r)
				a := callTools("look", obj{"n": n})
				a.Usage = c.usage[min(n, len(c.usage)-1)]
				if n == 100 {
					return endWith("never stopped")
				}
				return a
			}))}.open(t)
			task := fx.run(t, fx.groupTask(t, "probe"))
			if c.answers == -1 { // the limit is larger than the clamped sum of all answers
				fx.wantResult(t, task, `"never stopped"`, "")
				return
			}
			fx.wantPaused(t, task, errcode.BudgetExceeded)
			list := bodiesOf[journal.ModelAnswered](t, fx)
			if c.answers > 0 && len(list) != c.answers {
				t.Errorf("%d answers, want %d", len(list), c.answers)
			}
			var tokens int64
			for _, a := range list {
				u := a.Answer.Usage
				if u.Input <= 0 || u.Output < 0 || u.Cached < 0 || u.Cost < 0 {
					t.Errorf("recorded usage: %+v", u)
				}
				tokens += int64(u.Input + u.Output)
			}
			if c.answers == 0 && (tokens > c.bound.Tokens || len(list) < 2) {
				t.Errorf("%d answers of %d tokens", len(list), tokens)
			}
		})
	}
}

func TestBudget_CostLimitErrorHasAmounts(t *testing.T) {
	fx := fixtureConfig{configure: withBudget(runtime.TaskBudget{Cost: 2_500_000_000}), model: withWindow(100_000, answerFunc(func(model.Request) model.Answer {
		a := callTools("look", obj{})
		a.Usage = model.TokenUsage{Input: 5, Cost: 3_000_000_000}
		return a
	}))}.open(t)
	task := fx.run(t, org.TaskSpec{})
	fx.wantPaused(t, task, errcode.BudgetExceeded)
	if want := "the task has cost 3.000000 of its budget of 2.500000"; task.Pause == nil || task.Pause.Message != want {
		t.Errorf("the reason is %v, want %q", task.Pause, want)
	}
}

func TestBudget_AppliesPerTask(t *testing.T) {
	fx := fixtureConfig{configure: withBudget(runtime.TaskBudget{Tokens: 60_000}), model: withWindow(100_000, answerFunc(func(model.Request) model.Answer {
		return withUsage(endWith("done"), 40_000)
	}))}.open(t)
	for range 3 {
		fx.wantResult(t, fx.run(t, org.TaskSpec{}), `"done"`, "")
	}
}

// followCounter is a store that counts the reads of the log of a task.
type followCounter struct {
	journal.Store
	count atomic.Int32
}

func (s *followCounter) FollowTask(ctx context.Context, task identity.TaskID, after uint64, wait bool) iter.Seq2[journal.Event, error] {
	s.count.Add(1)
	return s.Store.FollowTask(ctx, task, after, wait)
}

// What a new task has used is known without its log.
func TestBudget_NewTaskReadsNoLog(t *testing.T) {
	for _, bound := range []runtime.TaskBudget{{}, {Tokens: 1 << 40}, {Tokens: runtime.NoTokenLimit}} {
		t.Run(fmt.Sprint(bound), func(t *testing.T) {
			log := &followCounter{}
			fx := fixtureConfig{configure: withBudget(bound), wrapStore: func(s journal.Store) journal.Store { log.Store = s; return log }, model: withWindow(100_000, answerFunc(func(r model.Request) model.Answer {
				if answerCount(r) < 3 {
					return callTools("console_print", obj{"text": fmt.Sprint(answerCount(r))})
				}
				return endWith("done")
			}))}.open(t)
			fx.wantResult(t, fx.run(t, org.TaskSpec{}), `"done"`, "")
			if n := log.count.Load(); n != 0 {
				t.Errorf("the log was read %d times", n)
			}
		})
	}
}
