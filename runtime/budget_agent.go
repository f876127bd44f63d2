package runtime

import (
	"context"
	"errors"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// spawnBudget is the budget of a new agent. It has the part that its parent gives it, and the
// maximum that its role allows. The smaller amount of each quantity holds. Only the part is
// reserved.
type spawnBudget struct {
	part, most org.ModelAllowance
}

// limits returns the limits, and how much of them is reserved in the budget of the parent.
func (b spawnBudget) limits() (limit, reserved amounts) {
	limit = amountsOf(b.part.Within(b.most))
	for q, n := range amountsOf(b.part) {
		if n > 0 {
			reserved[q] = limit[q]
		}
	}
	return limit, reserved
}

// budgetOf returns the budget of an agent that is to be spawned below parent.
func (rt *Runtime) budgetOf(parent identity.AgentID, s org.SpawnSpec) spawnBudget {
	return spawnBudget{part: s.Budget, most: rt.org.SpawnLimit(parent, s.Role)}
}

// prepareBudget checks the part of a budget that an agent is to be given. It also loads the usage
// of the task, which the commit cannot read. Errors: invalid_arguments; conflict.
func (rt *Runtime) prepareBudget(ctx context.Context, parent identity.AgentID, s org.SpawnSpec) error {
	budget := s.Budget
	if rt.budgetOf(parent, s) == (spawnBudget{}) {
		return nil
	}
	if !budget.IsValid() {
		return errcode.New(errcode.InvalidArguments, "spawn an agent: its budget is out of range; tokens, requests, calls and cost are not negative and at most %d", int64(org.MaxAllowance)).With("field", "budget")
	}
	a, ok := rt.org.AgentByID(parent)
	if !ok {
		return errcode.New(errcode.AgentNotFound, "spawn an agent: agent %q is terminated", parent)
	}
	_, err := rt.loadTaskUsage(ctx, a.Task)
	if errors.Is(err, errTerminated) {
		return errBudgetStopped
	}
	return err
}

// errBudgetStopped is the error of a spawn in a task on which no process works.
var errBudgetStopped = errcode.New(errcode.Conflict, "spawn an agent with a budget: its task has stopped; retry or resume the task first")

// takeBudget takes the budget of a new agent from the budget of its parent. It returns a
// function that gives the budget back. takeBudget is called within the commit. Errors:
// budget_exceeded; conflict if no process works on the task any more.
func (rt *Runtime) takeBudget(parent, id identity.AgentID, budget spawnBudget) (undo func(), err error) {
	if budget == (spawnBudget{}) {
		return func() {}, nil
	}
	if _, exists := rt.org.AgentByID(id); exists {
		return func() {}, nil // an earlier attempt of the call has taken it
	}
	a, _ := rt.org.AgentByID(parent)
	if err := rt.tracker.takeBudget(a, id, budget, rt.LimitsOf(a.Task)); err != nil {
		return nil, err
	}
	return func() { rt.tracker.endBudget(a.Task, id) }, nil
}

// takeBudget adds the budget of an agent below parent if there is room for it.
func (t *tracker) takeBudget(parent org.Agent, id identity.AgentID, budget spawnBudget, most ActiveLimits) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.tasks[parent.Task]
	if run == nil || !run.spent.loaded {
		return errBudgetStopped
	}
	s := &run.spent.budgets
	s.task.limit = most.amounts()
	n := s.nodeOf(parent.ID, t.parentOf)
	limit, reserved := budget.limits()
	if short := n.shortage(reserved); short != nil {
		return short.spawnError(reserved)
	}
	s.addAgent(n, id, "", limit, reserved)
	return nil
}

// spawnError returns the error of a budget for an agent that does not fit.
func (s *shortage) spawnError(want amounts) error {
	q := s.quantity
	return errcode.New(errcode.BudgetExceeded, "spawn an agent with a budget of %s %v: %s has %s left of %s; ask for less, or terminate agents that are not needed",
		amountText(q, want[q]), q, s.node.owner(), amountText(q, s.left), amountText(q, s.node.limit[q])).
		With("quantity", q.String()).With("left", s.left)
}

// nameBudget sets the name of the agent that has a budget, for errors and warnings.
func (t *tracker) nameBudget(a org.Agent) {
	t.changeBudgets(a.Task, func(s *budgetTree) {
		if n := s.agents[a.ID]; n != nil {
			n.name = a.Name
		}
	})
}

// endBudget returns the unused budget of an agent that has ended to its parent.
func (t *tracker) endBudget(task identity.TaskID, id identity.AgentID) {
	t.changeBudgets(task, func(s *budgetTree) { s.end(id) })
}

// changeBudgets changes the budgets of a task, if they are loaded. Requests that wait for a part of
// the budgets then look again.
func (t *tracker) changeBudgets(task identity.TaskID, change func(*budgetTree)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run := t.tasks[task]; run != nil && run.spent.loaded {
		change(&run.spent.budgets)
		run.spent.wake()
	}
}

// recordedBudget returns a budget as the event of an agent records it.
func recordedBudget(b org.ModelAllowance) *journal.ModelBudget {
	if b == (org.ModelAllowance{}) {
		return nil
	}
	recorded := journal.ModelBudget(b)
	return &recorded
}

// allowanceOf returns a recorded budget. Nil means no budget.
func allowanceOf(b *journal.ModelBudget) org.ModelAllowance {
	if b == nil {
		return org.ModelAllowance{}
	}
	return org.ModelAllowance(*b)
}

// foldBudgets updates budgets after an event of the record. What requests have used is in
// events of their own (TaskTally.add).
func (t *TaskTally) foldBudgets(e journal.Event) {
	switch b := e.Body.(type) {
	case journal.AgentSpawned:
		t.parents[e.Agent] = b.Parent
		limit, reserved := spawnBudget{part: allowanceOf(b.Budget), most: allowanceOf(b.Most)}.limits()
		t.budgets.addAgent(t.nodeOf(b.Parent), e.Agent, b.Name, limit, reserved)
	case journal.AgentTerminated:
		t.budgets.end(e.Agent)
	case journal.TaskRetried:
		t.budgets.resetRequests()
	case journal.BudgetWarning:
		t.budgets.noteWarning(b)
	}
	if endsWork(e) {
		t.budgets.stopKeeping(e.Agent)
	}
}

// listBudgets lists the limits of the budgets of a task. Nothing of a task that has ended is
// reserved.
func (rt *Runtime) listBudgets(task *org.Task, t *budgetTree) (list []BudgetTally) {
	t.task.limit = rt.LimitsOf(task.ID).amounts()
	for n := range t.all {
		for q, limit := range n.limit {
			if limit == 0 {
				continue
			}
			q, used := quantity(q), n.sum(quantity(q), sumParts{})
			one := BudgetTally{Agent: n.agent, Name: n.name, Quantity: q.String(), Limit: limit, Used: used, Warned: n.warned[q] == limit}
			if !task.Status.Ended() {
				one.Reserved = n.sum(q, sumParts{kept: true}) - used
			}
			list = append(list, one)
		}
	}
	return list
}

// nodeOf returns the budget that an agent uses.
func (t *TaskTally) nodeOf(id identity.AgentID) *budgetNode {
	return t.budgets.nodeOf(id, func(id identity.AgentID) identity.AgentID { return t.parents[id] })
}

// endsWork reports whether an event is the answer or the failure of its agent, after which the
// rest of its budget is no longer reserved.
func endsWork(e journal.Event) bool {
	switch b := e.Body.(type) {
	case journal.ModelAnswered:
		return b.Answer.Finish.EndsTurn()
	case journal.TurnFailed:
		return true
	}
	return false
}
