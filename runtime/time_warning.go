package runtime

import (
	"fmt"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// timeQuantity is the name of a task's time in warnings. Unlike other quantities, time is used
// whatever agents do, and no agent has a part of it.
const timeQuantity = "seconds"

// taskTime is how much of its time a task has used. Pauses do not count.
type taskTime struct{ used, limit time.Duration }

// timeOf returns the time of a task, the zero taskTime if it has no limit or does not run.
func (rt *Runtime) timeOf(id identity.TaskID) taskTime {
	deadline, running := rt.org.DeadlineOf(id)
	if !running {
		return taskTime{}
	}
	task, _ := rt.org.TaskByID(id)
	return taskTime{used: max(0, task.Timeout-deadline.Sub(rt.now())), limit: task.Timeout}
}

// nearlySpent reports whether at least percent of the limit was used.
func (t taskTime) nearlySpent(percent int) bool {
	return t.limit > 0 && percent > 0 && float64(t.used) >= float64(t.limit)*float64(percent)/100
}

// limitSeconds returns the limit in whole seconds, at least 1.
func (t taskTime) limitSeconds() int64 { return max(1, int64(t.limit/time.Second)) }

// takeTimeWarning returns the warning about the time of a task, and remembers it. It reports false
// if the time is not nearly spent, or if the warning is recorded already.
func (t *tracker) takeTimeWarning(id identity.TaskID, used taskTime, percent int) (journal.BudgetWarning, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.tasks[id]
	if run == nil || !run.spent.loaded || !used.nearlySpent(percent) || run.spent.budgets.warnedTime == used.limitSeconds() {
		return journal.BudgetWarning{}, false
	}
	run.spent.budgets.warnedTime = used.limitSeconds()
	return journal.BudgetWarning{Quantity: timeQuantity, Used: int64(used.used / time.Second), Limit: used.limitSeconds()}, true
}

// timeLine returns what a model reads about the time of its task, "" if it is not nearly spent.
func (t taskTime) timeLine(percent int) string {
	if !t.nearlySpent(percent) {
		return ""
	}
	return fmt.Sprintf("The task: %d of %d seconds are used.", int64(t.used/time.Second), t.limitSeconds())
}
