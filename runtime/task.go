package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// Start gives a task to the organization and begins to work on it.
//
// Errors: those of org.StartTask.
func (rt *Runtime) Start(ctx context.Context, spec org.TaskSpec) (identity.TaskID, error) {
	if err := errors.Join(ctx.Err(), rt.mayServe(spec.Workspace)); err != nil {
		return "", err
	}
	if spec.Workspace != "" { // what its name leads to now is the task's, whatever it leads to later
		dir, err := resolved(spec.Workspace)
		if err != nil {
			return "", err
		}
		spec.Workspace = dir
	}
	if err := rt.advance(); err != nil {
		return "", err
	}
	id := identity.TaskID(identity.NewID())
	rt.trackTask(id)
	b := &journal.Batch{Prepare: func(b *journal.Batch) error {
		spec.FirstSeq = rt.store.Seq()
		task, agent, changes, err := rt.org.StartTask(id, spec)
		if err != nil {
			return err
		}
		rt.taskStartEvents(b, task, agent)
		rt.cacheNewTask(&task, agent)
		b.Put = append(b.Put, records(changes)...)
		return nil
	}}
	if _, err := rt.flushAndCommit(b); err != nil {
		rt.untrackTask(id)
		return "", err
	}
	rt.release(id)
	return id, nil
}

// taskStartEvents adds the events and the first message of a task.
func (rt *Runtime) taskStartEvents(b *journal.Batch, task org.Task, agent org.Agent) {
	started := journal.TaskStarted{Text: task.Text, Caller: task.Caller, State: task.State}
	if !task.Groups.Set.IsAll() {
		started.Groups = []string{}
		for _, g := range task.Groups.Set.IDs() {
			started.Groups = append(started.Groups, string(g))
		}
	}
	first := model.Message{
		ID: identity.Derive(string(task.ID), "first"), From: "user", To: string(agent.ID),
		Task: task.ID, Payload: textPayload(task.Text), CreatedAt: task.CreatedAt,
	}
	about := func(body journal.Body) journal.Event {
		return journal.Event{At: task.CreatedAt, Task: task.ID, Agent: agent.ID, Role: rt.roleName(agent), Body: body}
	}
	b.Events = append(b.Events, about(started), about(rt.spawned(agent)), about(journal.MessageSent{Message: first}))
	b.Send = append(b.Send, journal.Message{Message: first})
}

// cacheNewTask remembers what was just made: it is about to be worked on.
func (rt *Runtime) cacheNewTask(task *org.Task, agent org.Agent) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.tasks[task.ID].record = task
	rt.cacheAgent(&idleAgent{agent, &state{}})
}

// Resume takes up an unfinished task again; a task that has ended stays so.
// It returns when the task is being worked on.
func (rt *Runtime) Resume(ctx context.Context, id identity.TaskID) error {
	task, ok := rt.org.Task(id)
	if !ok {
		return errcode.New(errcode.TaskNotFound, "resume task %q: there is no such task", id)
	}
	if err := rt.advance(); err != nil {
		return err
	}
	if task.Status != org.Running || !rt.trackTask(id) {
		return nil
	}
	defer rt.release(id)
	if err := rt.wakeTask(ctx, id); err != nil {
		rt.untrackTask(id)
		return fmt.Errorf("resume task %s: %w", id, err)
	}
	return nil
}

// wakeTask wakes a task's agents that have unfinished business and schedules its
// delayed messages.
func (rt *Runtime) wakeTask(ctx context.Context, id identity.TaskID) error {
	delayed, err := rt.delayed(ctx)
	if err != nil {
		return err
	}
	for _, m := range delayed {
		if m.Task == id {
			rt.schedule(m)
		}
	}
	runnable, err := rt.runnable(ctx)
	if err != nil {
		return err
	}
	for _, agent := range runnable {
		if a, ok := rt.org.Agent(agent); ok && a.Task == id {
			rt.wake(agent)
		}
	}
	return nil
}

// trackTask makes a task one that is worked on, held until release; false when it
// is already.
func (rt *Runtime) trackTask(id identity.TaskID) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.tasks[id] != nil {
		return false
	}
	rt.tasks[id] = &taskRun{id: id, live: 1, done: make(chan struct{})}
	return true
}

func (rt *Runtime) untrackTask(id identity.TaskID) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if run := rt.tasks[id]; run != nil {
		rt.untrackRun(run)
	}
}

// recordOf gives the record of a task that is worked on.
func (rt *Runtime) recordOf(ctx context.Context, run *taskRun) (org.Task, error) {
	rt.mu.Lock()
	record := run.record
	rt.mu.Unlock()
	if record != nil {
		return *record, nil
	}
	return rt.TaskRecord(ctx, run.id)
}

// Wait returns when a task has ended, with its record; at once, with the record
// as it is, when the task is not worked on. When the runtime closes, or its
// store has stopped, it returns with an error that says so.
func (rt *Runtime) Wait(ctx context.Context, id identity.TaskID) (org.Task, error) {
	rt.mu.Lock()
	run := rt.tasks[id]
	rt.mu.Unlock()
	if run == nil {
		return rt.TaskRecord(ctx, id)
	}
	select {
	case <-run.done:
		return rt.recordOf(ctx, run)
	case <-ctx.Done():
		return org.Task{}, ctx.Err()
	case <-rt.ctx.Done():
		return org.Task{}, context.Cause(rt.ctx)
	}
}

// Cancel ends a task: its agents stop at once. A task that has ended stays as
// it is.
func (rt *Runtime) Cancel(ctx context.Context, id identity.TaskID, reason string) error {
	task, err := rt.TaskRecord(ctx, id)
	if err != nil {
		return err
	}
	return rt.end(&task, org.Cancelled, nil, &org.TaskError{Code: errcode.TaskCancelled, Message: "the task was cancelled: " + reason})
}

// errNewMail: a task that had come to rest got mail before its end was recorded.
var errNewMail = errors.New("mail came")

// finishTask ends a task that has come to rest, by what its top agent said last.
func (rt *Runtime) finishTask(run *taskRun) {
	ctx := rt.uncancelled
	task, err := rt.recordOf(ctx, run)
	if err == nil {
		status, result, failure := rt.outcome(ctx, task)
		ending := rt.taskEndBatch(&task, status, result, failure)
		err = rt.commitTaskEnd(&task, func(b *journal.Batch) error {
			if rt.hasNewMail(run) {
				return errNewMail
			}
			return ending(b)
		})
	}
	if errors.Is(err, errNewMail) {
		err = rt.reopen(ctx, run)
	}
	if err == nil || errors.Is(err, journal.ErrClosed) { // a store that has stopped ends the process
		return
	}
	rt.log.Error("task not ended", "task", run.id, "error", err)
	rt.closeRun(run.id, nil) // who waits is told what the record says
}

func (rt *Runtime) hasNewMail(run *taskRun) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return run.mailed
}

// reopen goes on with a task that had come to rest.
func (rt *Runtime) reopen(ctx context.Context, run *taskRun) error {
	rt.mu.Lock()
	run.ended = false
	run.live++
	rt.mu.Unlock()
	defer rt.release(run.id)
	return rt.wakeTask(ctx, run.id)
}

// outcome reads from the top agent's journal how its task has ended.
func (rt *Runtime) outcome(ctx context.Context, task org.Task) (org.TaskStatus, json.RawMessage, *org.TaskError) {
	last, err := rt.lastAnswer(ctx, task.ID, task.Top)
	if err != nil {
		return org.Failed, nil, &org.TaskError{Code: errcode.Internal, Message: errcode.Message(err)}
	}
	switch b := last.(type) {
	case journal.Failed:
		return org.Failed, nil, &org.TaskError{Code: b.Code, Message: b.Message}
	case journal.ModelAnswered:
		if b.Answer.Finish == model.FinishEnd {
			return org.Done, resultOf(b.Answer), nil
		}
	}
	return org.Failed, nil, &org.TaskError{Code: errcode.TaskStalled,
		Message: "nobody works on the task any more and its top agent waits for a message that nobody will send"}
}

func (rt *Runtime) lastAnswer(ctx context.Context, task identity.TaskID, id identity.AgentID) (journal.Body, error) {
	rt.mu.Lock()
	var known *idleAgent
	if run := rt.tasks[task]; run != nil {
		known = run.cached[id]
	}
	rt.mu.Unlock()
	if known != nil {
		return known.state.last, nil
	}
	s, err := rt.fold(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.last, nil
}

// resultOf gives a final answer as JSON: its value, or its text.
func resultOf(a model.Answer) json.RawMessage {
	if a.Value != nil {
		return a.Value
	}
	text, _ := json.Marshal(a.Text) // a string always marshals
	return text
}

// end records a task's end, once, stops its agents and tells who waits.
func (rt *Runtime) end(task *org.Task, status org.TaskStatus, result json.RawMessage, failure *org.TaskError) error {
	return rt.commitTaskEnd(task, rt.taskEndBatch(task, status, result, failure))
}

func (rt *Runtime) commitTaskEnd(task *org.Task, ending func(*journal.Batch) error) error {
	if _, err := rt.commit(&journal.Batch{Prepare: ending}); err != nil {
		return fmt.Errorf("end task %s: %w", task.ID, err)
	}
	rt.closeRun(task.ID, task)
	return nil
}

// taskEndBatch adds a task's end to a batch, unless it has ended, and drops the mail
// that waits for its agents; the record it is given becomes the new one.
func (rt *Runtime) taskEndBatch(task *org.Task, status org.TaskStatus, result json.RawMessage, failure *org.TaskError) func(*journal.Batch) error {
	e := journal.Result{Status: string(status), Result: result}
	if failure != nil {
		e.Code, e.Error = failure.Code, failure.Message
	}
	return func(b *journal.Batch) error {
		if now, ok := rt.org.Task(task.ID); !ok || now.Status != org.Running {
			return nil
		}
		b.Purge = append(b.Purge, rt.org.Tree(task.Top)...)
		b.Events = append(b.Events, journal.Event{At: rt.now(), Task: task.ID, Agent: task.Top, Role: rt.topRole(task), Body: e})
		b.Put = append(b.Put, records(rt.org.EndTask(task, status, result, failure))...)
		return nil
	}
}

// delayed lists the delayed mail of all tasks. What is damaged is left out and
// logged: it must not hold up the others.
func (rt *Runtime) delayed(ctx context.Context) ([]journal.Message, error) {
	list, err := rt.store.Delayed(ctx)
	return list, rt.logDamaged(err, "delayed messages left out")
}

// runnable lists the agents of all tasks that have unfinished business, as
// delayed does mail.
func (rt *Runtime) runnable(ctx context.Context) ([]identity.AgentID, error) {
	list, err := rt.store.Runnable(ctx)
	return list, rt.logDamaged(err, "marks of agents left out")
}

// logDamaged logs an error over damaged entries and takes it away.
func (rt *Runtime) logDamaged(err error, what string) error {
	if !errors.Is(err, journal.ErrDamaged) {
		return err
	}
	rt.log.Error(what, "error", err)
	return nil
}

func (rt *Runtime) topRole(task *org.Task) string {
	a, _ := rt.org.Agent(task.Top)
	return rt.roleName(a)
}

// closeRun stops the work on a task and tells who waits. ended is the record of
// its end, if this call's commit wrote it.
func (rt *Runtime) closeRun(id identity.TaskID, ended *org.Task) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	run := rt.tasks[id]
	if run == nil {
		return
	}
	run.ended = true
	run.record = nil
	if ended != nil && ended.Status != org.Running {
		run.record = ended
	}
	rt.untrackRun(run)
	close(run.done)
	if run.live == 0 { // none of its agents is at work
		return
	}
	for _, a := range rt.active {
		if a.task == id && a.cancel != nil {
			a.cancel(errTerminated)
		}
	}
}
