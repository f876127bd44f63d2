package runtime

import (
	"errors"

	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/journal"
)

// checkCallBudget returns an error unless the budgets have room for the calls that are to start.
// It checks the budget of the agent and all budgets above it. It is called in the commit that
// would start the calls. The commit counts them (noteBudgets), so agents that share a budget
// cannot exceed it together.
//
// Errors: budget_exceeded, with errAgentBudget for the budget of an agent; errTerminated.
func (a *actor) checkCallBudget(calls []*gate.Admission) error {
	n := int64(0)
	for _, c := range calls {
		if c.Allowed() {
			n++
		}
	}
	return a.rt.tracker.checkCalls(a, n, a.rt.LimitsOf(a.task))
}

// checkCalls returns an error unless n calls fit the budgets of an agent.
func (t *tracker) checkCalls(a *actor, n int64, most ActiveLimits) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.tasks[a.task]
	if run == nil || !run.spent.loaded {
		return errTerminated
	}
	s := &run.spent.budgets
	s.task.limit = most.amounts()
	need := amounts{callQuantity: n}
	if short := s.nodeOf(a.agent.ID, t.parentOf).shortage(need); short != nil {
		return short.error(need)
	}
	return nil
}

// countStartedCalls returns how many calls a batch starts.
func countStartedCalls(b *journal.Batch) (n int) {
	for _, e := range b.Events {
		if c, ok := e.Body.(journal.ToolCall); ok && c.Decision == journal.Allowed {
			n++
		}
	}
	return n
}

// stopOverBudget stops an agent whose calls do not fit a budget. At the limit of the task it pauses the
// task: the answer is recorded, and its calls are decided when the task is retried. At the limit
// of an agent the turn fails. A program that drives the agent gets the error.
func (a *actor) stopOverBudget(r *recorder, cause error) error {
	if !r.driven {
		if err := r.recordAnswer(); err != nil {
			return err
		}
	}
	switch {
	case needsOperator(cause):
		if err := a.pauseTask(cause); !r.driven || !errors.Is(err, errTaskPaused) {
			return err
		}
		return cause
	case r.driven:
		return cause
	}
	return a.fail(cause)
}
