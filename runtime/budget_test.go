package runtime_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"regexp"
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

func budget(b runtime.Budget) func(*runtime.Config) {
	return func(c *runtime.Config) { c.Budget = b }
}

func TestABudgetTooSmallForTheFirstRequestAsksNobody(t *testing.T) {
	h := plan{config: budget(runtime.Budget{Tokens: 100}), model: fluent(100_000, brain(func(model.Request) model.Answer {
		t.Error("the model is asked")
		return end("done")
	}))}.open(t)
	task := h.run(t, org.TaskSpec{})
	h.want(t, task, "", errcode.BudgetExceeded)
	want := regexp.MustCompile(`^the task has used 0 of its 100 tokens, 0 are reserved for requests in progress, and the next request needs about \d{4,}$`)
	if task.Error != nil && !want.MatchString(task.Error.Message) {
		t.Errorf("the reason is %q", task.Error.Message)
	}
}

// crowd is a house in which root and two workers think, each as long as
// the test wants: the task may use a little more than one request of theirs.
type crowd struct {
	*house
	first, second identity.AgentID
	asked         chan identity.AgentID
	answer        chan error // what the worker that is asked comes to
}

func newCrowd(t *testing.T) *crowd {
	c := &crowd{asked: make(chan identity.AgentID), answer: make(chan error)}
	think := mind(func(ctx context.Context, r model.Request) (model.Answer, error) {
		if r.Self.Role == "root" {
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		}
		c.asked <- r.Self.ID
		err := <-c.answer
		a := wait()
		a.Usage = model.Usage{Input: 10, Output: 10}
		return a, err
	})
	c.house = plan{config: budget(runtime.Budget{Tokens: 150_000}), model: fluent(1_000_000, think)}.open(t)
	id := c.start(t, org.TaskSpec{})
	c.first = c.hire(t, c.top(t, id), org.RoleSpec{Name: "first", Use: use()})
	c.second = c.hire(t, c.top(t, id), org.RoleSpec{Name: "second", Use: use()})
	return c
}

// give has a worker read about 100,000 tokens.
func (c *crowd) give(t *testing.T, to identity.AgentID) {
	c.tell(t, to, `"`+strings.Repeat("x", 400_000)+`"`)
}

// refused waits until a turn of an agent has ended for want of tokens.
func (c *crowd) refused(t *testing.T, id identity.AgentID) string {
	e := c.until(t, func(e journal.Event) bool {
		_, failed := e.Body.(journal.Failed)
		return failed && e.Agent == id
	})
	failed := e.Body.(journal.Failed)
	if failed.Code != errcode.BudgetExceeded {
		t.Errorf("the turn fails with %s: %s", failed.Code, failed.Message)
	}
	return failed.Message
}

// Two requests at once do not pass a bound that one of them keeps, and what was
// set aside for a request is given back when it has ended, however it ends.
func TestRequestsUnderWayAreSetAside(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
	}{
		{"the first is answered", nil},
		{"the first fails", errcode.New(errcode.RateLimited, "later")},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newCrowd(t)
			h.give(t, h.first)
			<-h.asked
			h.give(t, h.second)
			reason := h.refused(t, h.second)
			if want := regexp.MustCompile(`^the task has used \d{1,5} of its 150000 tokens, 10\d{4} are reserved for requests in progress, and the next request needs about 10\d{4}$`); !want.MatchString(reason) {
				t.Errorf("the reason is %q", reason)
			}
			h.answer <- c.err
			h.until(t, func(e journal.Event) bool { return e.Agent == h.first && ends(e.Body) })
			h.tell(t, h.second, `"again"`)
			if id := <-h.asked; id != h.second {
				t.Errorf("%s is asked, want %s", id, h.second)
			}
			h.answer <- nil
		})
	}
}

func ends(b journal.Body) bool {
	switch b.(type) {
	case journal.ModelAnswered, journal.Failed:
		return true
	}
	return false
}

// What a task used up before the process ended counts in the next one.
func TestAResumedTaskHasUsedWhatIsOnItsRecord(t *testing.T) {
	hangs := make(chan struct{})
	again := false
	look := probe(t, "look", tool.Options{Effect: tool.ReadOnly}, func(ctx context.Context, _ obj) (any, error) {
		if again {
			return "seen", nil
		}
		again = true
		close(hangs)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	p := plan{dir: scratch(t), tools: []tool.Tool{look}, config: budget(runtime.Budget{Tokens: 250_000}), model: fluent(1_000_000, brain(func(r model.Request) model.Answer {
		if answers(r) > 0 {
			t.Error("the model is asked past the bound")
		}
		return counted(do("look", obj{}), 150_000)
	}))}
	h := p.open(t)
	id := h.start(t, h.role(t, "probe"))
	<-hangs
	h.leave(t)
	h = p.open(t)
	h.resume(t, id)
	task := h.wait(t, id)
	h.want(t, task, "", errcode.BudgetExceeded)
	if task.Error != nil && !strings.HasPrefix(task.Error.Message, "the task has used 150010 of its 250000 tokens") {
		t.Errorf("the reason is %q", task.Error.Message)
	}
}

// The sums only grow: no count of a provider lowers them or makes them
// overflow, and one that counts nothing is estimated.
func TestWhatCountsAgainstABudget(t *testing.T) {
	for _, c := range []struct {
		name    string
		bound   runtime.Budget
		usage   []model.Usage // of the answers, the last one again and again
		answers int           // before the bound is reached; 0 is some
	}{
		{"tokens that were counted", runtime.Budget{Tokens: 60_000}, []model.Usage{{Input: 20_000, Output: 1_000}}, 2},
		{"what was cached", runtime.Budget{Tokens: 60_000}, []model.Usage{{Input: 20_000, Cached: 20_000, Output: 1_000}}, 2},
		{"tokens that nobody counted", runtime.Budget{Tokens: 20_000}, []model.Usage{{}}, 0},
		{"tokens below nothing", runtime.Budget{Tokens: 20_000}, []model.Usage{{Input: -1 << 40, Output: -1 << 40, Cached: -1}}, 0},
		{"tokens past every number", runtime.Budget{Tokens: math.MaxInt64 - 5_000}, []model.Usage{{Input: math.MaxInt, Output: math.MaxInt}}, -1},
		{"more tokens than the bound", runtime.Budget{Tokens: 1 << 27}, []model.Usage{{Input: math.MaxInt, Output: math.MaxInt}}, 1},
		{"cost", runtime.Budget{Cost: 1_000}, []model.Usage{{Input: 1, Cost: 400}}, 3},
		{"cost below nothing", runtime.Budget{Cost: 1_000}, []model.Usage{{Input: 1, Cost: 999}, {Input: 1, Cost: -999}, {Input: 1, Cost: 1}}, 3},
		{"cost past every number", runtime.Budget{Cost: 1_000}, []model.Usage{{Input: 1, Cost: math.MaxInt64}}, 1},
		{"cost, and tokens within the bound", runtime.Budget{Tokens: 1 << 40, Cost: 1_000}, []model.Usage{{Input: 1, Cost: 1_000}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			look := probe(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil })
			h := plan{tools: []tool.Tool{look}, config: budget(c.bound), model: fluent(1<<40, brain(func(r model.Request) model.Answer {
				n := answers(r)
				a := do("look", obj{"n": n})
				a.Usage = c.usage[min(n, len(c.usage)-1)]
				if n == 100 {
					return end("never stopped")
				}
				return a
			}))}.open(t)
			task := h.run(t, h.role(t, "probe"))
			if c.answers == -1 { // the bound is past what all answers may come to
				h.want(t, task, `"never stopped"`, "")
				return
			}
			h.want(t, task, "", errcode.BudgetExceeded)
			list := said[journal.ModelAnswered](t, h)
			if c.answers > 0 && len(list) != c.answers {
				t.Errorf("%d answers, want %d", len(list), c.answers)
			}
			var tokens int64
			for _, a := range list {
				u := a.Answer.Usage
				if u.Input <= 0 || u.Output < 0 || u.Cached < 0 || u.Cost < 0 {
					t.Errorf("on record: %+v", u)
				}
				tokens += int64(u.Input + u.Output)
			}
			if c.answers == 0 && (tokens > c.bound.Tokens || len(list) < 2) {
				t.Errorf("%d answers of %d tokens", len(list), tokens)
			}
		})
	}
}

func TestACostBoundSaysWhatTheTaskHasCost(t *testing.T) {
	h := plan{config: budget(runtime.Budget{Cost: 2_500_000_000}), model: fluent(100_000, brain(func(model.Request) model.Answer {
		a := do("look", obj{})
		a.Usage = model.Usage{Input: 5, Cost: 3_000_000_000}
		return a
	}))}.open(t)
	task := h.run(t, org.TaskSpec{})
	h.want(t, task, "", errcode.BudgetExceeded)
	if want := "the task has cost 3.000000 of its budget of 2.500000"; task.Error == nil || task.Error.Message != want {
		t.Errorf("the reason is %v, want %q", task.Error, want)
	}
}

func TestEveryTaskHasABudgetOfItsOwn(t *testing.T) {
	h := plan{config: budget(runtime.Budget{Tokens: 60_000}), model: fluent(100_000, brain(func(model.Request) model.Answer {
		return counted(end("done"), 40_000)
	}))}.open(t)
	for range 3 {
		h.want(t, h.run(t, org.TaskSpec{}), `"done"`, "")
	}
}

// unread is a store whose log is not to be read.
type unread struct {
	journal.Store
	reads atomic.Int32
}

func (s *unread) FollowTask(ctx context.Context, task identity.TaskID, after uint64, wait bool) iter.Seq2[journal.Event, error] {
	s.reads.Add(1)
	return s.Store.FollowTask(ctx, task, after, wait)
}

func TestWithoutABudgetTheLogIsNotRead(t *testing.T) {
	for _, c := range []struct {
		bound runtime.Budget
		reads int32
	}{{runtime.Budget{}, 0}, {runtime.Budget{Tokens: 1 << 40}, 1}} {
		t.Run(fmt.Sprint(c.bound), func(t *testing.T) {
			log := &unread{}
			h := plan{config: budget(c.bound), store: func(s journal.Store) journal.Store { log.Store = s; return log }, model: fluent(100_000, brain(func(r model.Request) model.Answer {
				if answers(r) < 3 {
					return do("console_print", obj{"text": fmt.Sprint(answers(r))})
				}
				return end("done")
			}))}.open(t)
			h.want(t, h.run(t, org.TaskSpec{}), `"done"`, "")
			if n := log.reads.Load(); n != c.reads {
				t.Errorf("it is read %d times, want %d", n, c.reads)
			}
		})
	}
}
