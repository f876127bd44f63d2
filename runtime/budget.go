package runtime

import (
	"context"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
)

// Budget bounds what the models of one task may use up. A zero bound is not
// set.
type Budget struct {
	Tokens int64
	Cost   model.Money
}

// taskUsage is what a task has used up; the sum of the usage on its record.
type taskUsage struct {
	known    bool // what was on record before this process is in it
	tokens   int64
	reserved int64 // for requests under way
	cost     model.Money
}

// answerShare is what an answer is reserved before it is known.
const answerShare = 1024

// reservation is a request's part of its task's budget. The zero reservation
// is of a task without one.
type reservation struct {
	run    *taskRun
	rt     *Runtime
	tokens int64
}

// reserve puts aside the tokens of a request before it is made, so that agents
// that ask at once do not pass the bound together. What it costs is known only
// afterwards: past its bound no further request is made.
//
// Errors: budget_exceeded.
func (rt *Runtime) reserve(ctx context.Context, id identity.TaskID, tokens int) (reservation, error) {
	limit := rt.rules.Load().Budget
	if limit == (Budget{}) {
		return reservation{}, nil
	}
	run, err := rt.taskSpending(ctx, id)
	if err != nil {
		return reservation{}, err
	}
	need := int64(tokens) + answerShare
	rt.mu.Lock()
	defer rt.mu.Unlock()
	s := &run.spent
	switch {
	case limit.Tokens > 0 && s.tokens+s.reserved > limit.Tokens-need:
		return reservation{}, errcode.New(errcode.BudgetExceeded, "the task has used %d of its %d tokens, %d are set aside for requests under way, and the next request needs about %d", s.tokens, limit.Tokens, s.reserved, need)
	case limit.Cost > 0 && s.cost >= limit.Cost:
		return reservation{}, errcode.New(errcode.BudgetExceeded, "the task has cost %v of the %v it may cost", s.cost, limit.Cost)
	}
	s.reserved += need
	return reservation{run, rt, need}, nil
}

// release gives back what a request that came to nothing had put aside.
func (r reservation) release() {
	if r.run == nil {
		return
	}
	r.rt.mu.Lock()
	defer r.rt.mu.Unlock()
	r.run.spent.reserved -= r.tokens
}

// spend puts what an answer used in the place of what was reserved for it.
func (r reservation) spend(u model.Usage) {
	if r.run == nil {
		return
	}
	r.release()
	r.rt.mu.Lock()
	defer r.rt.mu.Unlock()
	r.run.spent.add(u)
}

func (s *taskUsage) add(u model.Usage) { // sums of what is sane do not overflow
	s.tokens += int64(u.Input) + int64(u.Output)
	s.cost += u.Cost
}

// taskSpending finds a task's spending; that of a task taken up again is read from
// its record first.
func (rt *Runtime) taskSpending(ctx context.Context, id identity.TaskID) (*taskRun, error) {
	rt.mu.Lock()
	run := rt.tasks[id]
	known := run != nil && run.spent.known
	rt.mu.Unlock()
	switch {
	case run == nil:
		return nil, errTerminated
	case known:
		return run, nil
	}
	task, err := rt.TaskRecord(ctx, id)
	if err != nil {
		return nil, err
	}
	before, err := rt.usage(ctx, task)
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err == nil && !run.spent.known {
		run.spent.known = true
		run.spent.add(before)
	}
	return run, err
}
