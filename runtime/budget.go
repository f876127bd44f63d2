package runtime

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
)

// TaskBudget limits the model usage of one task, in tokens and in cost.
type TaskBudget struct {
	Tokens int64       // 0 is the default, NoTokenLimit none; of a Task, 0 sets no limit of its own
	Cost   model.Money // 0 is not enforced
}

// NoTokenLimit as TaskBudget.Tokens lets the models of a task use any number of tokens.
const NoTokenLimit = -1

// defaultTokens is the default of TaskBudget.Tokens.
const defaultTokens = 5_000_000

// orDefault returns b with its zero limits replaced by those of other.
func (b TaskBudget) orDefault(other TaskBudget) TaskBudget {
	return TaskBudget{Tokens: cmp.Or(b.Tokens, other.Tokens), Cost: cmp.Or(b.Cost, other.Cost)}
}

// taskUsage is the model usage of a task.
type taskUsage struct {
	loaded   bool // usage from before this process is included
	tokens   int64
	reserved int64 // for requests in progress
	cost     model.Money
	requests int           // that were begun, since the last retry
	released chan struct{} // closed when reserved becomes less; nil if no request waits for that
}

// answerReserve is the number of tokens reserved for an answer.
const answerReserve = 1024

// reservation is the part of its task's budget that a request reserves.
type reservation struct {
	run    *taskRun
	t      *tracker
	tokens int64
}

// reserve reserves tokens for a request before it is sent, so that concurrent
// requests cannot exceed the limit together. A request that would fit without the
// reservations of others waits for their end. Cost is known only afterwards: once it
// exceeds its limit no further request is sent.
//
// The request counts against Limits.Requests, also if it fails.
//
// Errors: budget_exceeded; errNoRequests; errTaskPaused; errHeld; the cause of the end of ctx.
func (rt *Runtime) reserve(ctx context.Context, id identity.TaskID, agent identity.AgentID, tokens int) (reservation, error) {
	limit := rt.LimitsOf(id)
	run, err := rt.taskSpending(ctx, id)
	if err != nil {
		return reservation{}, err
	}
	for {
		if rt.org.HeldBy(agent) != "" {
			return reservation{}, errHeld
		}
		r, released, err := rt.tracker.reserve(run, limit, int64(tokens)+answerReserve)
		if released == nil {
			return r, err
		}
		select {
		case <-released:
		case <-ctx.Done():
			return reservation{}, context.Cause(ctx)
		}
	}
}

// taskBudget returns the budget of a task: the smaller one of the organization's and its
// own, and what the operator added.
func (rt *Runtime) taskBudget(id identity.TaskID) TaskBudget {
	task, _ := rt.org.TaskByID(id)
	general := rt.settings.Load().Budget
	return TaskBudget{
		Tokens: smallerLimit(max(0, general.Tokens), task.Budget.Tokens, task.Extra.Tokens),
		Cost:   smallerLimit(general.Cost, model.Money(task.Budget.Cost), model.Money(task.Extra.Cost)),
	}
}

// smallerLimit returns the smaller limit plus extra. A zero limit is none; extra adds
// nothing to it.
func smallerLimit[T ~int64](a, b, extra T) T {
	limit := min(a, b)
	if limit == 0 {
		limit = max(a, b)
	}
	if limit == 0 || limit > math.MaxInt64-extra {
		return limit
	}
	return limit + extra
}

// errNoRequests reports that a task has made as many requests to models as it may.
var errNoRequests = errors.New("no requests to models are left")

// reserve reserves tokens of a task's budget, and a request. If they are free only without the
// reservations of other requests, it returns a channel that is closed when one of these
// ends. Errors: budget_exceeded; errNoRequests; errTaskPaused.
func (t *tracker) reserve(run *taskRun, most ActiveLimits, need int64) (reservation, <-chan struct{}, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, limit := &run.spent, most.Budget
	switch {
	case run.paused:
		return reservation{}, nil, errTaskPaused
	case s.requests >= most.Requests:
		return reservation{}, nil, errcode.Wrap(errcode.LimitExceeded, errNoRequests, "the task has made %d requests to models, and at most %d are allowed; retry it if it makes progress, or raise limits.requests", s.requests, most.Requests).With("limit", most.Requests)
	case limit.Tokens > 0 && s.tokens > limit.Tokens-need:
		return reservation{}, nil, errcode.New(errcode.BudgetExceeded, "the task has used %d of its %d tokens, and the next request needs about %d", s.tokens, limit.Tokens, need)
	case limit.Cost > 0 && s.cost >= limit.Cost:
		return reservation{}, nil, errcode.New(errcode.BudgetExceeded, "the task has cost %v of its budget of %v", s.cost, limit.Cost)
	case limit.Tokens > 0 && s.tokens+s.reserved > limit.Tokens-need:
		if s.released == nil {
			s.released = make(chan struct{})
		}
		return reservation{}, s.released, nil
	}
	s.reserved += need
	s.requests++
	return reservation{run, t, need}, nil, nil
}

// release returns the reserved tokens of a failed request.
func (r reservation) release() { r.spend(model.TokenUsage{}) }

// spend replaces the reservation by the actual usage.
func (r reservation) spend(u model.TokenUsage) {
	if r.run == nil {
		return
	}
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	r.run.spent.add(u)
	r.run.spent.reserved -= r.tokens
	if r.run.spent.released != nil {
		close(r.run.spent.released)
		r.run.spent.released = nil
	}
}

// add adds usage. Usage is clamped by collect, so the sums do not overflow.
func (s *taskUsage) add(u model.TokenUsage) {
	s.tokens += int64(u.Input) + int64(u.Output)
	s.cost += u.Cost
}

// taskSpending returns the run of a task with its usage loaded. That of a
// resumed task is summed up from its record first.
func (rt *Runtime) taskSpending(ctx context.Context, id identity.TaskID) (*taskRun, error) {
	run, loaded := rt.tracker.spending(id)
	switch {
	case run == nil:
		return nil, errTerminated
	case loaded:
		return run, nil
	}
	task, err := rt.TaskRecord(ctx, id)
	if err != nil {
		return nil, err
	}
	before, err := rt.tally(ctx, task)
	if err == nil {
		rt.tracker.setSpendingBefore(run, before)
	}
	return run, err
}

// spending returns a tracked task, or nil, and whether its usage is loaded.
func (t *tracker) spending(id identity.TaskID) (run *taskRun, loaded bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	run = t.tasks[id]
	return run, run != nil && run.spent.loaded
}

// setSpendingBefore adds the usage of earlier processes to that of a task, once.
func (t *tracker) setSpendingBefore(run *taskRun, before TaskTally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !run.spent.loaded {
		run.spent.loaded = true
		run.spent.add(before.Usage)
		run.spent.requests += before.requests
	}
}
