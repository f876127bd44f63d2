package runtime

import (
	"context"
	"errors"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// errTaskPaused is the reason why the agents of a paused task stop between two steps. They
// go on when the task is retried.
var errTaskPaused = errors.New("task is paused")

// needsOperator reports whether only the operator can fix the cause of an error. The operator
// may have to change a key or an account, or allow a larger budget of the task or more requests.
// The task is paused then, and nothing of it is lost.
func needsOperator(err error) bool {
	if failed, ok := errors.AsType[*model.Error](err); ok && failed.NeedsOperator {
		return true
	}
	return errcode.CodeOf(err) == errcode.BudgetExceeded && !errors.Is(err, errAgentBudget) || errors.Is(err, errNoRequests)
}

// pauseTask pauses the agent's task. The agent asks its model again when the task is retried.
func (a *actor) pauseTask(cause error) error {
	task, err := a.rt.TaskRecord(a.rt.ctx, a.task)
	if err != nil {
		return err
	}
	reason := org.TaskError{Code: errcode.CodeOf(cause), Message: errcode.Message(cause)}
	b := &journal.Batch{Prepare: func(b *journal.Batch) error {
		changes := a.rt.org.PauseTask(&task, reason)
		if len(changes) > 0 { // else another agent has paused the task
			b.Events = append(b.Events, a.event(journal.TaskPaused{Code: reason.Code, Reason: reason.Message}))
			b.Put = append(b.Put, storeRecords(changes)...)
			a.rt.tracker.pauseTask(a.task)
		}
		return nil
	}}
	if err := a.commit(b); err != nil {
		return err
	}
	return errTaskPaused
}

// pauseTask stops the agents of a task before their next step. The task is dropped when they
// have stopped. It is called within the commit that records the pause, so that a retry
// finds the task paused.
func (t *tracker) pauseTask(id identity.TaskID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run := t.tasks[id]; run != nil {
		run.paused, run.record = true, nil
		run.stopTimer()
	}
}

// isPaused reports whether the agents of a task stop before their next step.
func (t *tracker) isPaused(id identity.TaskID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.tasks[id]
	return run != nil && run.paused
}

// RetryTask lets a task go on that is paused, failed or was cancelled. Its agents repeat the
// requests that were not answered, and read the mail that they have not read. Calls without an
// outcome are handled as after a crash. The turns and requests are counted from zero, and the
// models of the task may use more than before by extra. by is the operator or the caller that
// started the task. RetryTask waits until the agents have stopped, and returns when they are
// scheduled.
//
// Errors: the errors of org.Org.RetryTask, and Conflict for a task that a program drives no
// more.
func (rt *Runtime) RetryTask(ctx context.Context, id identity.TaskID, by identity.Principal, extra org.ModelAllowance) error {
	err := errNotStopped
	for errors.Is(err, errNotStopped) {
		if err = rt.waitStopped(ctx, id); err == nil {
			err = rt.commitRetry(ctx, id, by, extra)
		}
	}
	if err != nil {
		return err
	}
	return rt.ResumeTask(rt.uncancelled, id) // the retry is committed, also if the request ends now
}

// errNotStopped reports that an agent of a task is still active, or that the task has changed since its
// record was read.
var errNotStopped = errors.New("task has not stopped")

// commitRetry commits the retry of a task that has stopped. It fails with errNotStopped if RetryTask must
// wait again.
func (rt *Runtime) commitRetry(ctx context.Context, id identity.TaskID, by identity.Principal, extra org.ModelAllowance) error {
	task, err := rt.TaskRecord(ctx, id)
	if err != nil {
		return err
	}
	if err := rt.checkHasDriver(task); err != nil {
		return err
	}
	_, err = rt.flushAndCommit(&journal.Batch{Stream: task.Top, Prepare: func(b *journal.Batch) error {
		if now, ok := rt.org.TaskByID(id); ok && (now.Status != task.Status || now.Status != org.Running && rt.tracker.isTracked(id)) {
			return errNotStopped
		}
		changes, err := rt.org.RetryTask(by, &task, extra)
		if err != nil {
			return err
		}
		rt.voidApprovals(b, id, "its task was retried", func(a *Approval) bool { return a.Task == id })
		rt.voidStanding(b, "its task was retried", func(s *StandingApproval) bool { return s.Task == id })
		b.Events = append(b.Events, journal.Event{At: rt.now(), Task: id, Agent: task.Top, Role: rt.topRoleName(&task),
			Body: journal.TaskRetried{By: by.String(), Tokens: extra.Tokens, Cost: extra.Cost, Requests: extra.Requests, Calls: extra.Calls}})
		b.Put = append(b.Put, append(storeRecords(changes), journal.Record{Kind: kindTurns, Key: string(id)})...)
		return nil
	}})
	return err
}

// waitStopped waits until no agent of a task that is paused or has ended is active. An agent
// that stops late would end the task again.
func (rt *Runtime) waitStopped(ctx context.Context, id identity.TaskID) error {
	task, _ := rt.org.TaskByID(id)
	if rt.tracker.isPaused(id) || task.Status.Ended() {
		if _, err := rt.WaitTask(ctx, id); err != nil {
			return err
		}
	}
	stopped := rt.tracker.stoppedOf(id)
	if stopped == nil {
		return nil
	}
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-rt.ctx.Done():
		return context.Cause(rt.ctx)
	}
}

// EndsTask reports whether an event is the end of its task. An end that a retry undid does not
// count.
func (rt *Runtime) EndsTask(e journal.Event) bool {
	if _, ended := e.Body.(journal.TaskEnded); !ended {
		return false
	}
	task, ok := rt.org.TaskByID(e.Task)
	return !ok || task.Status.Ended() && e.Seq > task.EndSeq
}
