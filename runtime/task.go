package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// StartTask creates a task and starts work on it. It returns when the task is
// committed.
//
// The caller may have started a task with the same key and the same spec before. Then
// StartTask returns the id of that task, which may have ended.
//
// The files of the spec become artifacts of the task. The first message names them, and holds
// the content of short texts.
//
// A task of an external caller uses the caller's configured workspace, if there is one.
//
// Errors:
//
//   - the errors of org.PrepareTask and org.Org.StartTask
//   - InvalidArguments for the files
//   - StorageLow and QuotaExceeded
//   - InsufficientPermissions if the workspace contains the data directory, or if an external
//     caller names a directory
//   - WorkspaceNotBound if the caller may not use the workspace that the spec names
//   - Conflict if the key was used with another spec
func (rt *Runtime) StartTask(ctx context.Context, spec org.TaskSpec) (identity.TaskID, error) {
	if spec.Driven {
		return "", errcode.New(errcode.InvalidArguments, "start a task that a program drives: only DriveTask does, which returns its driver")
	}
	return rt.startTask(ctx, identity.TaskID(identity.NewID()), spec)
}

// startTask creates a task with this id and starts work on it. It returns the id of another
// task if that has the key of spec.
func (rt *Runtime) startTask(ctx context.Context, id identity.TaskID, spec org.TaskSpec) (identity.TaskID, error) {
	files, err := rt.newTaskFiles(id, spec.Files)
	if err != nil {
		return "", err
	}
	if err := errors.Join(ctx.Err(), rt.workspaces.assign(ctx, &spec),
		rt.recorded.check(byteOwner{caller: spec.Caller.String()}, int64(len(spec.Text)+len(spec.Input)+files.bytes))); err != nil {
		return "", err
	}
	first := messagePayload{Text: spec.Text, Input: spec.Input, Files: files.list, Images: files.images}.encode()
	hold := diskHold{guard: rt.disk}
	if err := hold.set(taskFactor*int64(len(first)) + int64(files.bytes)); err != nil {
		return "", err
	}
	defer hold.end()
	defer rt.acquireLargeCommit(spec.Caller, files.bytes)()
	if err := CheckResultSchema(spec.Schema); err != nil {
		return "", err
	}
	if err := rt.advanceEpoch(); err != nil {
		return "", err
	}
	prepared, err := org.PrepareTask(spec)
	if err != nil {
		return "", err
	}
	run := rt.tracker.track(id)
	rt.tracker.setOpen(id, spec.Open, spec.Driven)
	return rt.commitTask(ctx, run, prepared, files, first)
}

// commitTask records a tracked task and its first message, and lets its first agent begin. It
// returns as startTask does.
func (rt *Runtime) commitTask(ctx context.Context, run *taskRun, prepared org.PreparedTask, files taskFiles, first json.RawMessage) (identity.TaskID, error) {
	id := run.id
	b := &journal.Batch{Prepare: func(b *journal.Batch) error {
		task, agent, changes, err := rt.org.StartTask(id, rt.store.LastSeq(), prepared)
		if err != nil {
			return err
		}
		rt.addTaskStart(b, task, agent, first)
		rt.tracker.cacheNew(&task, agent)
		for _, hash := range files.blobs {
			rt.artifacts.references.add(hash)
		}
		b.Put = append(append(b.Put, storeRecords(changes)...), files.records...)
		return nil
	}}
	if _, err := rt.flushAndCommit(b); err != nil {
		rt.tracker.untrack(run)
		if used, ok := errors.AsType[*org.DuplicateKeyError](err); ok {
			return used.Task, rt.checkSameTask(ctx, used.Task, prepared)
		}
		return "", errors.Join(err, rt.recordDeniedTask(prepared.Spec(), err))
	}
	rt.enforceDeadline(id)
	rt.releaseOrEnd(run)
	return id, nil
}

// checkSameTask returns an error if a task that was started with the key of a request
// asks for something else. The task is on disk: the commit that found it came later.
func (rt *Runtime) checkSameTask(ctx context.Context, id identity.TaskID, request org.PreparedTask) error {
	task, err := rt.TaskRecord(ctx, id)
	if err != nil || request.HasStarted(&task) {
		return err
	}
	return errcode.New(errcode.Conflict, "start a task: the idempotency key was used for task %s, which asks for something else; use a new key", id).With("task", id)
}

// EnforceDeadlines cancels the unfinished tasks that this process does not work on at their
// deadlines. Those that are paused have none. It is called once, after a start.
func (rt *Runtime) EnforceDeadlines() {
	for _, task := range rt.org.ListTasks() {
		if task.Status == org.Running && rt.tracker.run(task.ID) == nil {
			rt.enforceDeadline(task.ID)
		}
	}
}

// enforceDeadline cancels a task at its deadline, if it has one. The time of a task that is paused stands
// still; the end of the pause calls enforceDeadline again.
func (rt *Runtime) enforceDeadline(id identity.TaskID) {
	deadline, runs := rt.org.DeadlineOf(id)
	if !runs {
		return
	}
	task, _ := rt.org.TaskByID(id)
	rt.tracker.setDeadline(id, deadline.Sub(rt.now()), func() {
		if at, runs := rt.org.DeadlineOf(id); !runs || at.After(deadline) {
			rt.enforceDeadline(id) // it was paused meanwhile
			return
		}
		reason := "timeout of " + task.Timeout.String() + " exceeded"
		if err := rt.CancelTask(rt.uncancelled, id, reason); err != nil && !errors.Is(err, journal.ErrClosed) {
			rt.log.Error("task not cancelled at its deadline", "task", id, "error", err)
		}
	})
}

// addTaskStart adds the events and the first message of a task to a batch.
func (rt *Runtime) addTaskStart(b *journal.Batch, task org.Task, agent org.Agent, payload json.RawMessage) {
	started := journal.TaskStarted{Text: task.Text, Caller: task.Caller, State: toolgroups.StateName(rt.initialState(task)), Asked: task.Asked}
	if task.As != "" {
		as, _ := rt.org.RoleByID(task.As)
		started.As, started.AsID = as.Name, task.As
	}
	if t := task.Trigger; t != nil {
		started.Trigger, started.Chain, started.Missed = t.Name, t.Chain, t.Missed
	}
	if !task.Groups.Set.IsAll() {
		started.Groups = task.Groups.Set.Names()
	}
	if task.Requested != nil {
		started.Requested = task.Requested.Names()
	}
	first := model.Message{
		ID: firstMessageID(task.ID), From: "user", To: string(agent.ID),
		Task: task.ID, Payload: payload, CreatedAt: task.CreatedAt,
	}
	about := func(body journal.EventBody) journal.Event {
		return journal.Event{At: task.CreatedAt, Task: task.ID, Agent: agent.ID, Role: rt.roleName(agent), Body: body}
	}
	b.Events = append(b.Events, about(started), about(rt.spawnedEvent(agent, spawnBudget{})), about(journal.MessageSent{Message: first}))
	b.Send = append(b.Send, journal.Message{Message: first})
}

// ResumeTask continues an unfinished task after a restart. It does nothing for a
// task that has ended or is already running. It returns when the task's agents
// are scheduled. A task that was taken up goes on although ctx ends. Errors:
// TaskNotFound, and Conflict for a task that a program drives (ResumeDriver).
func (rt *Runtime) ResumeTask(ctx context.Context, id identity.TaskID) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("resume task %s: %w", id, err)
	}
	task, ok := rt.org.TaskByID(id)
	if !ok {
		return errcode.New(errcode.TaskNotFound, "resume task %q: task not found", id)
	}
	if task.Status == org.Running {
		if err := rt.checkHasDriver(task); err != nil {
			return err
		}
	}
	if err := rt.advanceEpoch(); err != nil {
		return err
	}
	run := rt.tracker.track(id)
	if run == nil {
		return nil
	}
	defer rt.releaseOrEnd(run)
	if task, ok = rt.org.TaskByID(id); !ok || task.Status != org.Running { // also if it has ended since
		rt.tracker.untrack(run)
		return nil
	}
	rt.tracker.setOpen(id, task.Open, task.Driven)
	rt.enforceDeadline(id)
	err := rt.loadTurns(rt.uncancelled, id)
	if err == nil {
		err = rt.wakeTask(rt.uncancelled, id)
	}
	if err != nil {
		rt.tracker.untrack(run)
		rt.enforceDeadline(id)
		return fmt.Errorf("resume task %s: %w", id, err)
	}
	return nil
}

// wakeTask wakes the runnable agents of a task and schedules its delayed
// messages.
func (rt *Runtime) wakeTask(ctx context.Context, id identity.TaskID) error {
	delayed, err := rt.delayedMessages(ctx)
	if err != nil {
		return err
	}
	rt.tracker.schedule(slices.DeleteFunc(delayed, func(m journal.Message) bool { return m.Task != id }))
	runnable, err := rt.runnableAgents(ctx)
	if err != nil {
		return err
	}
	for _, agent := range runnable {
		if a, ok := rt.org.AgentByID(agent); ok && a.Task == id {
			rt.wake(agent)
		}
	}
	return nil
}

// runRecord returns the record of a tracked task.
func (rt *Runtime) runRecord(ctx context.Context, run *taskRun) (org.Task, error) {
	if record := rt.tracker.record(run); record != nil {
		return *record, nil
	}
	return rt.TaskRecord(ctx, run.id)
}

// WaitTask blocks until a task has ended or is paused, and returns its record. If the task is not
// running in this process, or could not be resumed, it returns the current record at once. It
// returns an error if the runtime closes or its store stops.
func (rt *Runtime) WaitTask(ctx context.Context, id identity.TaskID) (org.Task, error) {
	run := rt.tracker.run(id)
	if run == nil {
		return rt.TaskRecord(ctx, id)
	}
	select {
	case <-run.done:
		return rt.runRecord(ctx, run)
	case <-ctx.Done():
		return org.Task{}, ctx.Err()
	case <-rt.ctx.Done():
		return org.Task{}, context.Cause(rt.ctx)
	}
}

// CancelTask ends a running task and stops its agents. It does nothing if the task
// has ended.
func (rt *Runtime) CancelTask(ctx context.Context, id identity.TaskID, reason string) error {
	task, err := rt.TaskRecord(ctx, id)
	if err != nil {
		return err
	}
	return rt.endTask(&task, org.TaskEnd{Status: org.Cancelled, Error: &org.TaskError{Code: errcode.TaskCancelled, Message: "task cancelled: " + reason}})
}

// errNewMessages reports that a message was sent before the end of an idle task
// was recorded.
var errNewMessages = errors.New("new message")

// finishTask ends a task that has become idle, with the last answer of its top
// agent as the result. It releases the task.
func (rt *Runtime) finishTask(run *taskRun) {
	defer rt.releaseOrEnd(run)
	ctx := rt.uncancelled
	task, err := rt.runRecord(ctx, run)
	if err == nil {
		err = rt.endIdleTask(ctx, run, &task)
	}
	if errors.Is(err, errNewMessages) {
		err = rt.reopen(ctx, run)
	}
	if err == nil || errors.Is(err, journal.ErrClosed) || errors.Is(err, errClosing) { // storeStopped handles a stopped store; after a restart the task ends
		return
	}
	rt.log.Error("task not ended", "task", run.id, "error", err)
	rt.tracker.end(run.id, run, nil) // WaitTask returns the stored record
}

// endIdleTask records the end of an idle task. If its result does not fit its schema, the
// top agent is asked once more.
//
// Errors: errNewMessages if the task goes on; errClosing.
func (rt *Runtime) endIdleTask(ctx context.Context, run *taskRun, task *org.Task) error {
	end := rt.taskOutcome(ctx, *task)
	if end.Status == org.Done {
		typed, problem := typedResult(task.Schema, end.Result)
		if problem != nil {
			asked, err := rt.askForResult(ctx, task, problem)
			if asked {
				return errNewMessages
			}
			if err != nil {
				return err
			}
			end = failedEnd(errcode.InvalidResult, errcode.Message(problem))
		}
		end.Result = typed
	}
	hold := diskHold{guard: rt.disk}
	defer hold.end()
	if n := len(end.Result); n > outcomeBytes && hold.wait(rt.ctx, endFactor*int64(n)) != nil {
		return errClosing
	}
	ending := rt.prepareTaskEnd(task, end)
	return rt.commitTaskEnd(task, func(b *journal.Batch) error {
		if rt.tracker.hasNewMessages(run) {
			return errNewMessages
		}
		return ending(b)
	})
}

// reopen continues a task that had become idle.
func (rt *Runtime) reopen(ctx context.Context, run *taskRun) error {
	rt.tracker.reopen(run)
	return rt.wakeTask(ctx, run.id)
}

// taskOutcome returns how an idle task ends, read from the journal of its top agent.
func (rt *Runtime) taskOutcome(ctx context.Context, task org.Task) org.TaskEnd {
	last, err := rt.lastOutcome(ctx, task.ID, task.Top)
	if err != nil {
		rt.log.Error("result of task not read", "task", task.ID, "error", err)
		return failedEnd(errcode.Internal, errcode.Message(err))
	}
	switch b := last.(type) {
	case journal.TurnFailed:
		return failedEnd(b.Code, b.Message)
	case journal.ModelAnswered:
		if b.Answer.Finish == model.FinishEnd {
			return doneEnd(b.Answer)
		}
	}
	return failedEnd(errcode.TaskStalled, "task stalled: no agent is active and the top agent waits for a message that no agent will send")
}

// failedEnd returns the end of a task that fails.
func failedEnd(code errcode.Code, message string) org.TaskEnd {
	return org.TaskEnd{Status: org.Failed, Error: &org.TaskError{Code: code, Message: message}}
}

// doneEnd returns the end of a task with an answer as its result.
func doneEnd(a model.Answer) org.TaskEnd {
	return org.TaskEnd{Status: org.Done, Result: resultOf(a), Incomplete: a.Stop}
}

// lastOutcome returns the last ModelAnswered or TurnFailed event of an agent.
func (rt *Runtime) lastOutcome(ctx context.Context, task identity.TaskID, id identity.AgentID) (journal.EventBody, error) {
	s, err := rt.agentState(ctx, task, id)
	if err != nil {
		return nil, err
	}
	return s.last, nil
}

// agentState returns the state of an idle agent, from the cache if possible.
func (rt *Runtime) agentState(ctx context.Context, task identity.TaskID, id identity.AgentID) (*state, error) {
	if known := rt.tracker.cachedState(task, id); known != nil {
		return known, nil
	}
	return rt.fold(ctx, id)
}

// resultOf returns a final answer as JSON: its value, or its text.
func resultOf(a model.Answer) json.RawMessage {
	if a.Value != nil {
		return a.Value
	}
	text, _ := json.Marshal(a.Text) // a string always marshals
	return text
}

// endTask records the end of a task, unless it has ended. It stops the agents of the task and
// releases goroutines that wait for the task.
func (rt *Runtime) endTask(task *org.Task, end org.TaskEnd) error {
	return rt.commitTaskEnd(task, rt.prepareTaskEnd(task, end))
}

func (rt *Runtime) commitTaskEnd(task *org.Task, ending func(*journal.Batch) error) error {
	var run *taskRun
	_, err := rt.commit(&journal.Batch{Prepare: func(b *journal.Batch) error {
		run = rt.tracker.run(task.ID)
		return ending(b)
	}})
	if err != nil {
		return fmt.Errorf("end task %s: %w", task.ID, err)
	}
	rt.tracker.end(task.ID, run, task)
	return nil
}

// prepareTaskEnd returns a Prepare function that adds a task's end to a batch. If the
// task is done it purges the inboxes of its agents. It adds nothing if the task has ended. It
// updates task to the new record.
func (rt *Runtime) prepareTaskEnd(task *org.Task, end org.TaskEnd) func(*journal.Batch) error {
	e := journal.TaskEnded{Status: string(end.Status), Result: end.Result, Incomplete: end.Incomplete}
	if end.Error != nil {
		e.Code, e.Error = end.Error.Code, end.Error.Message
	}
	return func(b *journal.Batch) error {
		if now, ok := rt.org.TaskByID(task.ID); !ok || now.Status.Ended() {
			return nil
		}
		if end.Status == org.Done { // else the task may be retried
			b.Purge = append(b.Purge, rt.org.AgentTree(task.Top)...)
		}
		rt.voidApprovals(b, task.ID, "its task has ended", func(a *Approval) bool { return a.Task == task.ID })
		rt.voidStanding(b, "its task has ended", func(s *StandingApproval) bool { return s.Task == task.ID })
		b.Events = append(b.Events, journal.Event{At: rt.now(), Task: task.ID, Agent: task.Top, Role: rt.topRoleName(task), Body: e})
		b.Put = append(b.Put, journal.Record{Kind: kindTurns, Key: string(task.ID)})
		b.Put = append(b.Put, storeRecords(rt.org.EndTask(task, end, rt.store.LastSeq()))...)
		return nil
	}
}

// delayedMessages lists the delayed messages of all tasks. Damaged entries are logged
// and skipped, so that they do not block the others.
func (rt *Runtime) delayedMessages(ctx context.Context) ([]journal.Message, error) {
	list, err := rt.store.DelayedMessages(ctx)
	return list, rt.logDamaged(err, "damaged delayed messages skipped")
}

// runnableAgents lists the agents of all tasks that have unfinished work. Damaged
// entries are logged and skipped.
func (rt *Runtime) runnableAgents(ctx context.Context) ([]identity.AgentID, error) {
	list, err := rt.store.RunnableAgents(ctx)
	return list, rt.logDamaged(err, "damaged entries of runnable agents skipped")
}

// logDamaged logs a journal.ErrDamaged and returns nil; it returns other errors
// unchanged.
func (rt *Runtime) logDamaged(err error, what string) error {
	if !errors.Is(err, journal.ErrDamaged) {
		return err
	}
	rt.log.Error(what, "error", err)
	return nil
}

func (rt *Runtime) topRoleName(task *org.Task) string {
	a, _ := rt.org.AgentByID(task.Top)
	return rt.roleName(a)
}
