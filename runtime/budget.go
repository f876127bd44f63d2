package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// TaskBudget limits the model usage of one task, in tokens and in cost, and its tool calls.
type TaskBudget struct {
	Tokens int64       // 0 is the default, NoTokenLimit none; of a Task, 0 sets no limit of its own
	Cost   model.Money // 0 is not enforced
	Calls  int64       // of tools, that are started; 0 is not enforced
	WarnAt int         // percent of a limit after which a warning is recorded; 0 is the default, NoWarning none
}

// NoWarning as TaskBudget.WarnAt records no warnings.
const NoWarning = -1

// defaultWarnAt is the default of TaskBudget.WarnAt.
const defaultWarnAt = 80

// NoTokenLimit as TaskBudget.Tokens lets the models of a task use any number of tokens.
const NoTokenLimit = -1

// defaultTokens is the default of TaskBudget.Tokens.
const defaultTokens = 5_000_000

// orDefault returns b with the limits of other in place of its zero limits.
func (b TaskBudget) orDefault(other TaskBudget) TaskBudget {
	return TaskBudget{
		Tokens: cmp.Or(b.Tokens, other.Tokens), Cost: cmp.Or(b.Cost, other.Cost), Calls: cmp.Or(b.Calls, other.Calls), WarnAt: cmp.Or(b.WarnAt, other.WarnAt),
	}
}

// taskUsage is the model usage of a task.
type taskUsage struct {
	loaded   bool // usage from before this process is included
	budgets  budgetTree
	released chan struct{} // closed when less is reserved; nil if no request waits for that
}

// answerReserve is the number of tokens reserved for an answer.
const answerReserve = 1024

// reservation is the part of a budget that a request reserves.
type reservation struct {
	run    *taskRun
	t      *tracker
	node   *budgetNode
	tokens int64
}

// reserve reserves tokens for a request of an agent before it is sent, so that concurrent
// requests cannot exceed a limit together. A request that would fit without the
// reservations of others waits for their end. Cost is known only afterwards: once it
// exceeds its limit no further request is sent.
//
// The request counts against the limits of requests, also if it fails.
//
// Errors: budget_exceeded, with errAgentBudget for the budget of an agent; errNoRequests;
// errTaskPaused; errPausedByPerson; the cause of the end of ctx.
func (rt *Runtime) reserve(ctx context.Context, agent org.Agent, tokens int) (reservation, error) {
	limit := rt.LimitsOf(agent.Task)
	run, err := rt.loadTaskUsage(ctx, agent.Task)
	if err != nil {
		return reservation{}, err
	}
	for {
		if rt.org.PauseReason(agent.ID) != "" {
			return reservation{}, errPausedByPerson
		}
		r, released, err := rt.tracker.reserve(run, agent, limit, int64(tokens)+answerReserve)
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

// taskBudget returns the budget of a task. This is the smaller of the organization's budget and its
// own, plus the amount that the operator added.
func (rt *Runtime) taskBudget(task *org.Task) TaskBudget {
	general := rt.settings.Load().Budget
	return TaskBudget{
		Tokens: smallerLimit(max(0, general.Tokens), task.Budget.Tokens, task.Extra.Tokens),
		Cost:   smallerLimit(general.Cost, model.Money(task.Budget.Cost), model.Money(task.Extra.Cost)),
		Calls:  smallerLimit(general.Calls, task.Budget.Calls, task.Extra.Calls),
		WarnAt: general.WarnAt,
	}
}

// smallerLimit returns the smaller limit plus extra. Zero means no limit; extra adds nothing to it.
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

// amounts returns the limits of the task's budget.
func (l ActiveLimits) amounts() amounts {
	return amounts{requestQuantity: int64(l.Requests), tokenQuantity: l.Budget.Tokens, costQuantity: int64(l.Budget.Cost), callQuantity: l.Budget.Calls}
}

// errAgentBudget reports that an agent has spent the budget that it was spawned with, or one
// above it has. The turn of the agent fails, and its parent reads why.
var errAgentBudget = errors.New("the budget of the agent is spent")

// errNoRequests reports that a task has made as many requests to models as it may.
var errNoRequests = errors.New("no requests to models are left")

// reserve reserves tokens of the budget of an agent, and a request. If they are free only
// without the reservations of other requests, it returns a channel that is closed when one of
// these ends. Errors: budget_exceeded; errNoRequests; errTaskPaused.
func (t *tracker) reserve(run *taskRun, agent org.Agent, most ActiveLimits, tokens int64) (reservation, <-chan struct{}, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run.paused {
		return reservation{}, nil, errTaskPaused
	}
	s := &run.spent
	s.budgets.task.limit = most.amounts()
	n := s.budgets.nodeOf(agent.ID, t.parentOf)
	need := amounts{requestQuantity: 1, tokenQuantity: tokens, costQuantity: 1}
	short := n.shortage(need)
	switch {
	case short != nil && short.pending:
		if s.released == nil {
			s.released = make(chan struct{})
		}
		return reservation{}, s.released, nil
	case short != nil:
		return reservation{}, nil, short.error(need)
	}
	n.pending[tokenQuantity] = addSaturated(n.pending[tokenQuantity], tokens)
	n.used[requestQuantity]++
	return reservation{run, t, n, tokens}, nil, nil
}

// parentOf returns the parent of an agent, "" if it has none or has ended.
func (t *tracker) parentOf(id identity.AgentID) identity.AgentID {
	a, _ := t.org.AgentByID(id)
	return a.Parent
}

// error returns the error of a request, or of tool calls, that do not fit.
func (s *shortage) error(need amounts) error {
	limit, used := s.node.limit[s.quantity], s.node.sum(s.quantity, sumParts{})
	owner, kept := s.node.owner(), ""
	if n := s.node.sum(s.quantity, sumParts{kept: true}) - used; n > 0 {
		kept = fmt.Sprintf(" and reserved %v for agents", amountText(s.quantity, n))
	}
	var err *errcode.Error
	switch {
	case s.quantity == requestQuantity && s.node.parent == nil:
		return errcode.Wrap(errcode.LimitExceeded, errNoRequests, "the task has made %d requests to models%s, and at most %d are allowed; retry it if it makes progress, or raise limits.requests", used, kept, limit).With("limit", limit)
	case s.quantity == requestQuantity:
		err = errcode.New(errcode.BudgetExceeded, "%s has made %d%s of its %d requests to models", owner, used, kept, limit)
	case s.quantity == tokenQuantity:
		err = errcode.New(errcode.BudgetExceeded, "%s has used %d%s of its %d tokens, and the next request needs about %d", owner, used, kept, limit, need[tokenQuantity])
	case s.quantity == callQuantity:
		err = errcode.New(errcode.BudgetExceeded, "%s has started %d%s of its %d tool calls, and %d more would start", owner, used, kept, limit, need[callQuantity])
	default:
		err = errcode.New(errcode.BudgetExceeded, "%s has cost %v%s of its budget of %v", owner, model.Money(used), kept, model.Money(limit))
	}
	if s.node.parent != nil {
		err.Err = errAgentBudget
	}
	return err
}

// owner names the task or the agent that has the budget.
func (n *budgetNode) owner() string {
	if n.parent == nil {
		return "the task"
	}
	return "agent " + cmp.Or(n.name, string(n.agent))
}

// amountText returns an amount of a quantity as a text.
func amountText(q quantity, n int64) string {
	if q == costQuantity {
		return model.Money(n).String()
	}
	return strconv.FormatInt(n, 10)
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
	r.node.spend(amounts{tokenQuantity: r.tokens}, usageAmounts(u))
	r.run.spent.wake()
}

// wake lets the requests that wait for reserved tokens look again.
func (s *taskUsage) wake() {
	if s.released != nil {
		close(s.released)
		s.released = nil
	}
}

// loadTaskUsage returns the run of a task with its usage loaded. That of a
// resumed task is summed up from its record first.
func (rt *Runtime) loadTaskUsage(ctx context.Context, id identity.TaskID) (*taskRun, error) {
	run, loaded := rt.tracker.runWithUsage(id)
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
		rt.tracker.setEarlierUsage(run, before.budgets)
	}
	return run, err
}

// runWithUsage returns a tracked task, or nil, and whether its usage is loaded.
func (t *tracker) runWithUsage(id identity.TaskID) (run *taskRun, loaded bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	run = t.tasks[id]
	return run, run != nil && run.spent.loaded
}

// setEarlierUsage sets the usage of earlier processes of a task, once. Agents that have ended
// since it was read have no budget.
func (t *tracker) setEarlierUsage(run *taskRun, before *budgetTree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run.spent.loaded {
		return
	}
	run.spent.loaded, run.spent.budgets = true, *before
	s := &run.spent.budgets
	for _, n := range s.task.children { // they point to the budget of the task that was copied
		n.parent = &s.task
	}
	for id := range s.agents {
		if _, active := t.org.AgentByID(id); !active {
			s.end(id)
		}
	}
}
