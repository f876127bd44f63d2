package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// noteBudgets updates the budgets of the task after the events of a batch of the agent. It adds
// warnings about the budgets that are nearly spent. It is called within the commit.
func (a *actor) noteBudgets(b *journal.Batch) {
	if slices.ContainsFunc(b.Events, endsWork) {
		a.rt.tracker.changeBudgets(a.task, func(s *budgetTree) { s.stopKeeping(a.agent.ID) })
	}
	started := countStartedCalls(b)
	if started > 0 {
		a.rt.tracker.changeBudgets(a.task, func(s *budgetTree) {
			s.nodeOf(a.agent.ID, a.rt.tracker.parentOf).used[callQuantity] += int64(started)
		})
	}
	if started == 0 && !slices.ContainsFunc(b.Events, func(e journal.Event) bool { return countsRequests(e.Body) }) {
		return
	}
	most := a.rt.LimitsOf(a.task)
	for _, w := range a.rt.tracker.takeWarnings(a, most) {
		b.Events = append(b.Events, a.event(w))
	}
	if w, ok := a.rt.tracker.takeTimeWarning(a.task, a.rt.timeOf(a.task), most.Budget.WarnAt); ok {
		b.Events = append(b.Events, a.event(w))
	}
}

// takeWarnings returns the warnings about the budgets that an agent uses which are not recorded
// yet, and remembers them.
func (t *tracker) takeWarnings(a *actor, most ActiveLimits) (list []journal.BudgetWarning) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.nearlySpentBudgets(a, most) {
		if n := w.node; n.warned[w.quantity] != n.limit[w.quantity] {
			n.warned[w.quantity] = n.limit[w.quantity]
			list = append(list, journal.BudgetWarning{Owner: n.agent, Quantity: w.quantity.String(), Used: w.used, Limit: n.limit[w.quantity]})
		}
	}
	return list
}

// nearlySpentBudget is a budget of which a large part is used.
type nearlySpentBudget struct {
	node     *budgetNode
	quantity quantity
	used     int64
}

// nearlySpentBudgets lists the budgets of an agent that are largely used. Its own budget comes first, and the
// budget of the task last. warnings must be called with mu held.
func (t *tracker) nearlySpentBudgets(a *actor, most ActiveLimits) (list []nearlySpentBudget) {
	run := t.tasks[a.task]
	if run == nil || !run.spent.loaded {
		return nil
	}
	s := &run.spent.budgets
	s.task.limit = most.amounts()
	for n := s.nodeOf(a.agent.ID, t.parentOf); n != nil; n = n.parent {
		for q := range quantities {
			if n.nearlySpent(q, most.Budget.WarnAt) {
				list = append(list, nearlySpentBudget{n, q, n.sum(q, sumParts{})})
			}
		}
	}
	return list
}

// maxBudgetLines limits the budgets that a note to a model names.
const maxBudgetLines = 4

// budgetNote returns the text for a model about the budgets and the time that are nearly spent. It
// returns "" if none is nearly spent. It loads the usage of a task that was resumed.
func (a *actor) budgetNote(ctx context.Context) (string, error) {
	if _, err := a.rt.loadTaskUsage(ctx, a.task); err != nil {
		return "", err
	}
	most := a.rt.LimitsOf(a.task)
	lines := a.rt.tracker.budgetLines(a, most)
	lines = lines[:min(len(lines), maxBudgetLines)]
	if line := a.rt.timeOf(a.task).timeLine(most.Budget.WarnAt); line != "" {
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return "", nil
	}
	var p strings.Builder
	writeSection(&p, "Your budget", strings.Join(lines, "\n")+"\nFinish with what you have.")
	return p.String(), nil
}

// budgetLines returns a line for each budget that is nearly spent.
func (t *tracker) budgetLines(a *actor, most ActiveLimits) (lines []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.nearlySpentBudgets(a, most) {
		limit := w.node.limit[w.quantity]
		lines = append(lines, fmt.Sprintf("%s: %s of %s %v are used.", w.node.ownerFor(a.agent.ID), amountText(w.quantity, w.used), amountText(w.quantity, limit), w.quantity))
	}
	return lines
}

// ownerFor names the task or the agent that has the budget for one of the agents that use it.
func (n *budgetNode) ownerFor(reader identity.AgentID) string {
	switch n.agent {
	case "":
		return "The task"
	case reader:
		return "You"
	}
	return "An agent above you, with all below it"
}

// noteWarning remembers a recorded warning.
func (t *budgetTree) noteWarning(w journal.BudgetWarning) {
	if w.Quantity == timeQuantity {
		t.warnedTime = w.Limit
		return
	}
	n := &t.task
	if w.Owner != "" {
		n = t.agents[w.Owner]
	}
	for q := range quantities {
		if n != nil && q.String() == w.Quantity {
			n.warned[q] = w.Limit
		}
	}
}
