package runtime

import (
	"context"
	"errors"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
)

// The first agent of a task ends the task with an answer of finish result:
//
//  1. The agents below are stopped. Their open calls are cancelled, and have ended and are
//     recorded before the next step.
//  2. One commit records the answer, terminates the agents below, drops the messages that
//     no agent has read, counts them, and ends the task.
//
// A process that ends before the commit leaves the task running. After the restart the
// agents go on and the first agent is asked again.

// isFirst reports whether the agent is the first one of its task.
func (a *actor) isFirst() bool {
	task, ok := a.rt.org.TaskByID(a.task)
	return ok && task.Top == a.agent.ID
}

// endWithValue ends the turn with the value that a script returns, or the task if the agent is
// the first. A value that does not fit its schema fails the turn: the script would return it
// again.
func (a *actor) endWithValue(ctx context.Context, answer *model.Answer) error {
	if err := a.setTypedResult(answer); err != nil {
		if known, ok := errors.AsType[*errcode.Error](err); ok {
			err = known.With("read", answer.MessagesRead) // later messages start the script again
		}
		return a.fail(err)
	}
	if a.isFirst() {
		return a.endWithResult(ctx, answer)
	}
	answer.Finish = model.FinishEnd
	return a.finish(answer)
}

// endWithResult ends the task with the answer of its first agent. If it fails before the
// commit, the agents below go on.
func (a *actor) endWithResult(ctx context.Context, answer *model.Answer) error {
	run, err := a.rt.tracker.stopBelow(ctx, a)
	if err != nil {
		return a.goOnBelow(err)
	}
	task, err := a.rt.runRecord(ctx, run)
	if err != nil {
		return a.goOnBelow(err)
	}
	b := &journal.Batch{Idle: true, Events: a.answerEvents(answer)}
	a.reportAnswer(b, answer)
	ending := a.rt.prepareTaskEnd(&task, doneEnd(*answer))
	b.Prepare = func(b *journal.Batch) error {
		mail := a.unreadMail(answer)
		a.terminateBelow(b)
		if mail.Count > 0 {
			b.Events = append(b.Events, a.event(mail))
		}
		return ending(b)
	}
	if err := a.commit(b); err != nil {
		return err
	}
	a.rt.tracker.end(task.ID, a.taskRun, &task)
	return errTerminated
}

// goOnBelow lets the agents below go on after the task could not be ended because of err,
// which it returns.
func (a *actor) goOnBelow(err error) error {
	if !a.rt.tracker.undoEnding(a.task) {
		return err
	}
	if err := a.rt.wakeTask(a.rt.uncancelled, a.task); err != nil {
		a.rt.log.Error("agents of the task not woken", "task", a.task, "error", err)
	}
	return err
}

// unreadMail counts the messages of the task that no model has read when the first agent
// answers. It is called within the commit.
func (a *actor) unreadMail(answer *model.Answer) journal.MailDropped {
	unread := a.state.messages - answer.MessagesRead - len(a.inboxSeqs) // the last are counted as waiting
	for _, id := range a.rt.org.AgentTree(a.agent.ID) {
		unread += a.rt.mail.waiting(id)
	}
	return journal.MailDropped{Count: unread, Delayed: a.rt.tracker.delayedCount(a.task)}
}

// terminateBelow adds the termination of the agents below to a batch. It is called within
// the commit.
func (a *actor) terminateBelow(b *journal.Batch) {
	ended, changes := a.rt.org.TerminateBelow(a.agent.ID, "the task has ended", a.rt.storedAgent)
	b.Put = append(b.Put, storeRecords(changes)...)
	a.rt.recordTerminations(b, identity.ByAgent(a.agent.ID), ended)
}

// interruptCalls records the outcome of the calls that an earlier process has started. The
// agent is stopped because its task ends, so they are not decided again.
func (a *actor) interruptCalls() error {
	b := &journal.Batch{}
	for _, c := range a.state.pending {
		if _, started := a.state.started[c.ID]; started {
			result := interruptedResult(c.Name)
			b.Events = append(b.Events, a.event(journal.ToolError{Call: c.ID, Tool: c.Name, Code: errcode.ToolInterrupted, Result: result.JSON()}))
		}
	}
	if len(b.Events) == 0 {
		return nil
	}
	return a.commit(b)
}

// interruptedResult returns the result of a call that was cancelled because its task ends.
func interruptedResult(name string) tool.Result {
	return tool.Failure(name, errcode.New(errcode.ToolInterrupted, "%s was started and its task ended: it may or may not have taken effect", name))
}
