package org

import (
	"math"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// PauseTask pauses a running task. stored is the record of the task; PauseTask updates it.
// If the task is not running, PauseTask changes nothing and returns no changes.
func (o *Org) PauseTask(stored *Task, reason TaskError) []RecordChange {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, ok := o.tasks[stored.ID]
	if !ok || t.Status != Running {
		return nil
	}
	stored.Status, stored.Pause, stored.Held = Paused, &TaskPause{TaskError: reason, At: o.config.Now().UTC()}, t.Held // stored may be older
	stored.Deadline, stored.PausedBefore = t.Deadline, t.PausedBefore
	*t = *stored.summary()
	return []RecordChange{newRecord(KindTask, string(stored.ID), stored)}
}

// RetryTask makes a task running again that is paused, failed or was cancelled. It does so
// for the operator or the caller that started the task. A task that was cancelled goes on
// for the operator only. Its models may use more than before by extra. The time since it
// stopped does not count against its deadline. A task whose time was over gets its full time
// again. stored is the record of the task; RetryTask updates it.
//
// Errors: TaskNotFound, also for a task of another caller. InsufficientPermissions, also for
// a caller that may not start the task any more. Conflict if the task is running or done.
// LimitExceeded if its agents are more than its caller may have now.
func (o *Org) RetryTask(by identity.Principal, stored *Task, extra ModelAllowance) ([]RecordChange, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, ok := o.tasks[stored.ID]
	switch {
	case !ok || by.Kind != identity.Operator && !t.StartedBy(by):
		return nil, notFound(errcode.TaskNotFound, "task", string(stored.ID))
	case t.Status == Cancelled && by.Kind != identity.Operator:
		return nil, errcode.New(errcode.InsufficientPermissions, "retry task %s: it was cancelled; only the operator may let it go on", t.ID)
	case t.Status == Running && t.Held != nil:
		return nil, errcode.New(errcode.Conflict, "retry task %s: it is paused by %s; \"rolecall resume\" lets it go on", t.ID, t.Held.By).With("task", t.ID)
	case t.Status == Running:
		return nil, errcode.New(errcode.Conflict, "retry task %s: the task has not stopped; if no process works on it, run --resume continues it", t.ID).With("task", t.ID)
	case t.Status == Done:
		return nil, errcode.New(errcode.Conflict, "retry task %s: the task is done and has a result", t.ID).With("task", t.ID)
	}
	if err := o.checkRetry(by, t); err != nil {
		return nil, err
	}
	ended := t.Status.Ended()
	if agents := o.taskAgents[t.ID]; ended && agents > 0 {
		if err := o.checkAgentShare("retry the task", t, agents); err != nil {
			return nil, err
		}
	}
	stored.Held, stored.Deadline, stored.PausedBefore = t.Held, t.Deadline, t.PausedBefore // stored may be older
	o.extendDeadline(stored)
	stored.Status, stored.Pause, stored.Error, stored.EndedAt = Running, nil, nil, time.Time{}
	stored.Extra.Tokens = addClamped(stored.Extra.Tokens, extra.Tokens)
	stored.Extra.Cost = addClamped(stored.Extra.Cost, extra.Cost)
	stored.Extra.Requests = addClamped(stored.Extra.Requests, extra.Requests)
	stored.Extra.Calls = addClamped(stored.Extra.Calls, extra.Calls)
	*t = *stored.summary()
	if ended {
		o.countRunning(t, o.taskAgents[t.ID])
		o.addToScopes(t)
	}
	return []RecordChange{newRecord(KindTask, string(stored.ID), stored)}, nil
}

// checkRetry returns an error unless a caller may still start its task. Its role, the role
// that bounds its tasks and the role of the first agent must be active. Else models would
// answer a suspended caller.
func (o *Org) checkRetry(by identity.Principal, t *Task) error {
	if by.Kind == identity.Operator {
		return nil
	}
	if _, err := o.taskGrantor(by); err != nil {
		return err
	}
	if err := checkTaskNetwork(by, t); err != nil {
		return err
	}
	top, ok := o.agents[t.Top]
	if !ok {
		return notFound(errcode.AgentNotFound, "agent", string(t.Top))
	}
	if role := o.roles[top.role]; role != nil && role.Suspended() {
		return errSuspended("retry a task with", role)
	}
	return nil
}

// extendDeadline moves the deadline of a task that has stopped and goes on now. It must be
// called with mu held.
func (o *Org) extendDeadline(t *Task) {
	if t.Deadline.IsZero() {
		return
	}
	stopped := t.EndedAt
	if t.Pause != nil {
		stopped = t.Pause.At
	}
	left := o.deadline(t).Sub(stopped)
	if left <= 0 {
		left = t.Timeout
	}
	t.Deadline, t.PausedBefore = o.config.Now().UTC().Add(left), o.totalPaused()
}

// addClamped adds two amounts that are not negative, up to the largest int64.
func addClamped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
