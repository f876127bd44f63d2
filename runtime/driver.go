package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// Driver makes the calls of the first agent of a task, in place of a model. The agent is
// root: it has the tools of org_management, and grants what the caller of the task may. Each
// call is recorded as an answer with one call. It passes the gate like the call of a model.
//
//  1. DriveTask starts the task and returns its only Driver.
//  2. Call makes calls, and Receive waits for messages of the agents below.
//  3. End ends the task with a result. Close without End cancels it.
//
// The task does not end when its agents are idle. When the process ends before, the task is
// not resumed by itself. ResumeDriver goes on with it, or CancelTask ends it.
//
// All methods are safe for concurrent use, and run one at a time. They return an error with
// the code Conflict once the task has ended, and while it is paused. They return StorageLow
// or QuotaExceeded if nothing more may be recorded.
type Driver struct {
	rt   *Runtime
	task identity.TaskID
	top  identity.AgentID
	mail *driverMail

	turn  chan struct{} // held during a step; guards agent
	agent *idleAgent    // after the last step; nil if it must be read from the journal
}

// DriveTask starts a task of which a Go program makes the calls of the first agent.
// The spec has no role, no key and is not open.
//
// Errors: the errors of StartTask.
func (rt *Runtime) DriveTask(ctx context.Context, spec org.TaskSpec) (*Driver, error) {
	id := identity.TaskID(identity.NewID())
	d, err := rt.newDriver(id, org.TopAgentID(id))
	if err != nil {
		return nil, err
	}
	spec.Driven = true
	if _, err := rt.startTask(ctx, id, spec); err != nil {
		rt.tracker.removeDriver(d.top, d.mail)
		return nil, err
	}
	return d, nil
}

// ResumeDriver continues a driven task after a restart. A call that was running when the process
// ended is not repeated; it is recorded as interrupted. by is the operator or the caller that
// started the task.
//
// Errors: TaskNotFound, also for a task of another caller; Conflict if the task has ended, is
// paused, has a driver or is not driven.
func (rt *Runtime) ResumeDriver(ctx context.Context, by identity.Principal, id identity.TaskID) (*Driver, error) {
	task, ok := rt.org.TaskByID(id)
	if !ok || by.Kind != identity.Operator && !task.StartedBy(by) {
		return nil, errcode.New(errcode.TaskNotFound, "drive task %q: task not found", id)
	}
	if !task.Driven || task.Status != org.Running {
		return nil, errcode.New(errcode.Conflict, "drive task %s: it is %s, and only running tasks that a program drove go on", id, task.Status).With("task", id)
	}
	d, err := rt.newDriver(id, task.Top)
	if err != nil {
		return nil, err
	}
	if err := rt.ResumeTask(ctx, id); err != nil {
		rt.tracker.removeDriver(d.top, d.mail)
		return nil, err
	}
	return d, nil
}

func (rt *Runtime) newDriver(id identity.TaskID, top identity.AgentID) (*Driver, error) {
	mail := rt.tracker.addDriver(top)
	if mail == nil {
		return nil, errcode.New(errcode.Conflict, "drive task %s: it has a driver", id).With("task", id)
	}
	return &Driver{rt: rt, task: id, top: top, mail: mail, turn: make(chan struct{}, 1)}, nil
}

// errNotDriven is the error for work on a driven task without its driver.
func errNotDriven(id identity.TaskID) error {
	return errcode.New(errcode.Conflict, "task %s is driven by a Go program, which has ended; cancel the task, or let the program resume it", id).With("task", id)
}

// TaskID returns the id of the task.
func (d *Driver) TaskID() identity.TaskID { return d.task }

// AgentID returns the id of the first agent.
func (d *Driver) AgentID() identity.AgentID { return d.top }

// maxDrivenArgs limits the arguments of a call, in bytes, as the gate does.
const maxDrivenArgs = 8 << 20

// Call makes one call of the agent and returns its result. A call that is denied or fails
// returns an error with its code; it is on record as well.
//
// If ctx ends before the call starts, it is not made. Afterwards the call ends and its outcome
// is recorded, which may be tool_interrupted.
func (d *Driver) Call(ctx context.Context, name string, args json.RawMessage) (result json.RawMessage, err error) {
	if len(args) > maxDrivenArgs {
		return nil, errcode.New(errcode.InvalidArguments, "%s: %d bytes of arguments; at most %d are allowed", name, len(args), maxDrivenArgs)
	}
	err = d.step(ctx, func(ctx context.Context, a *actor) error {
		if err := d.rt.recorded.check(d.rt.recorded.taskOwner(d.task), int64(len(args))); err != nil {
			return err
		}
		answer := a.completeDriven(model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{Name: name, Args: args}}})
		a.assignCallIDs(answer.Calls)
		request := gate.CallRequest{Call: tool.Call{Name: answer.Calls[0].Name, Args: answer.Calls[0].Args}}
		if err := a.hold.set(answerBytes(answer) + callBytes([]gate.CallRequest{request})); err != nil {
			return err
		}
		rec := &drivenRecorder{recorder: recorder{a: a, answer: answer, driven: true}}
		if err := a.passCalls(ctx, answer.Calls, nil, &rec.recorder, rec); err != nil {
			return err
		}
		result = rec.result.JSON()
		return rec.failure
	})
	return result, err
}

// completeDriven completes an answer that a program returns in place of a model.
func (a *actor) completeDriven(answer model.Answer) *model.Answer {
	subject := a.rt.gate.Subject(identity.ByAgent(a.agent.ID))
	answer.State, answer.MessagesRead = subject.State, a.state.messages
	if a.state.answers == 0 {
		answer.Tools = subject.ToolNames()
	}
	return &answer
}

// drivenRecorder is a recorder that keeps the outcome of its only call.
type drivenRecorder struct {
	recorder
	result  tool.Result
	failure error // the reason for a denial, or the failed result as an error
}

// CallStarted implements gate.CallRecorder.
func (r *drivenRecorder) CallStarted(ctx context.Context, calls []*gate.Admission) error {
	err := r.recorder.CallStarted(ctx, calls)
	r.keepOutcome(calls) // of a denied call; CallFinished keeps the outcome of an allowed call
	return err
}

// CallFinished implements gate.CallRecorder.
func (r *drivenRecorder) CallFinished(ctx context.Context, calls []*gate.Admission) error {
	r.keepOutcome(calls) // before the recorder drops the results
	return r.recorder.CallFinished(ctx, calls)
}

func (r *drivenRecorder) keepOutcome(calls []*gate.Admission) {
	for _, c := range calls {
		r.result, r.failure = c.Result, c.Err
		if r.failure == nil && c.Result.IsError {
			r.failure = errcode.New(c.Code(), "%s", gjson.GetBytes(c.Result.Structured, "message").Str)
		}
	}
}

// Receive waits for messages to the agent and returns them in order, without the text of the
// task. They are on record as received when it returns.
//
// It returns an error with the code TaskStalled when no agent below is at work and no
// message is on its way. The task goes on: the driver can make calls, and receive again.
func (d *Driver) Receive(ctx context.Context) ([]model.Message, error) {
	for {
		list, err := d.receive(ctx)
		if err != nil || len(list) > 0 {
			return list, err
		}
		run := d.rt.tracker.run(d.task)
		if run == nil {
			return nil, d.endedError()
		}
		if d.rt.tracker.isStalled(d) {
			return nil, errcode.New(errcode.TaskStalled, "task %s: no agent is at work and no message is on its way; spawn an agent or write to one before you receive", d.task).With("task", d.task)
		}
		select {
		case <-d.mail.ready:
		case <-run.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-d.rt.ctx.Done():
			return nil, closingError()
		}
	}
}

// receive returns the messages that have arrived.
func (d *Driver) receive(ctx context.Context) (list []model.Message, err error) {
	err = d.step(ctx, func(ctx context.Context, a *actor) error {
		d.rt.tracker.markRead(d.mail)
		if err := a.readInbox(ctx); err != nil || len(a.received) == 0 {
			return err
		}
		if err := a.hold.set(a.receivedBytes()); err != nil {
			return err
		}
		for _, e := range a.received {
			if m := e.Body.(journal.MessageReceived).Message; m.ID != firstMessageID(d.task) {
				list = append(list, m)
			}
		}
		return a.commit(&journal.Batch{})
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// End ends the task with a result, a JSON value. The agents below are terminated, after their
// open calls have ended. A result that does not fit the schema of the task leaves the task
// as it is. Errors: InvalidArguments, InvalidResult.
func (d *Driver) End(ctx context.Context, result json.RawMessage) error {
	if len(result) > maxDrivenArgs || !canStore(result) {
		return errcode.New(errcode.InvalidArguments, "end task %s: the result must be JSON of at most %d bytes", d.task, maxDrivenArgs)
	}
	err := d.step(ctx, func(ctx context.Context, a *actor) error {
		answer := a.completeDriven(model.Answer{Finish: model.FinishResult, Value: normalizeJSON(result)})
		if err := a.setTypedResult(answer); err != nil {
			return err
		}
		if err := a.hold.set(answerBytes(answer) + endFactor*int64(len(result))); err != nil {
			return err
		}
		if err := a.endWithResult(ctx, answer); !errors.Is(err, errTerminated) {
			return err
		}
		if task, ok := d.rt.org.TaskByID(d.task); !ok || task.Status != org.Done {
			return errTerminated // it was cancelled before
		}
		return nil
	})
	if err == nil {
		d.rt.tracker.removeDriver(d.top, d.mail)
	}
	return err
}

// Close releases the driver, and cancels the task unless it has ended. It waits until the
// step in progress has ended. It may be called more than once.
func (d *Driver) Close() error {
	var err error
	if d.rt.tracker.removeDriver(d.top, d.mail) && d.rt.ctx.Err() == nil {
		err = d.rt.CancelTask(d.rt.uncancelled, d.task, "its program closed it")
	}
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	return err
}

// step makes the agent active while do runs.
func (d *Driver) step(ctx context.Context, do func(context.Context, *actor) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, done, err := d.rt.beginExternal(ctx)
	if err != nil {
		return err
	}
	defer done()
	a, err := d.rt.tracker.activateDriven(d)
	if err != nil {
		return err
	}
	if a == nil {
		return d.endedError()
	}
	defer d.rt.tracker.work.Done()
	defer d.rt.agentStopped(a)
	defer a.hold.end()
	d.agent = nil
	turn := d.rt.tracker.beginTurn(ctx, a)
	defer d.rt.tracker.endTurn(a)
	err = a.drive(turn, do)
	if cause := context.Cause(turn); err != nil && cause != nil && errcode.CodeOf(err) == errcode.Internal {
		err = cause
	}
	if a.state != nil && len(a.received) == 0 { // else its state is ahead of the journal
		d.agent = a.dropItems()
	}
	return d.stepError(err)
}

// drive does one step of a driver, without leaving a call open.
func (a *actor) drive(ctx context.Context, do func(context.Context, *actor) error) error {
	if err := a.load(ctx); err != nil {
		return err
	}
	if err := a.dropCalls(); err != nil { // of an earlier process
		return err
	}
	err := do(ctx, a)
	if a.rt.ctx.Err() != nil || !a.rt.org.IsActive(a.agent.ID) {
		return err
	}
	return cmp.Or(err, a.dropCalls())
}

// stepError returns the error of a step for its caller.
func (d *Driver) stepError(err error) error {
	switch {
	case errors.Is(err, errTerminated):
		return d.endedError()
	case errors.Is(err, errClosing):
		return closingError()
	case errors.Is(err, errPausedByPerson):
		return pausedError(d.task, d.rt.org.PauseReason(d.top))
	case errors.Is(err, errAborted):
		return errcode.New(errcode.TurnAborted, "the step was aborted")
	}
	return err
}

// endedError returns the error for a step of a task that has ended or does not run.
func (d *Driver) endedError() error {
	task, ok := d.rt.org.TaskByID(d.task)
	switch {
	case d.rt.ctx.Err() != nil:
		return closingError()
	case ok && !task.Status.Ended() && !d.rt.tracker.isDriver(d.top, d.mail):
		return errcode.New(errcode.Conflict, "drive task %s: this driver was closed", d.task).With("task", d.task)
	}
	return errcode.New(errcode.Conflict, "task %s is %s: its program can do nothing more", d.task, task.Status).With("task", d.task)
}

// pausedError returns the error for a step of a program whose task is paused.
func pausedError(id identity.TaskID, why string) error {
	return errcode.New(errcode.Paused, "drive task %s: %s; make the step again when it is resumed", id, cmp.Or(why, "it was paused")).With("task", id)
}

// dropCalls records the outcome of the calls that have none: a step, or an earlier process,
// ended before.
func (a *actor) dropCalls() error {
	b := &journal.Batch{}
	for _, c := range a.state.pending {
		dropped := a.state.droppedResult(c)
		code := errcode.Code(gjson.GetBytes(dropped.Content, "error").Str)
		b.Events = append(b.Events, a.event(journal.ToolError{Call: c.ID, Tool: c.Name, Code: code, Result: dropped.Content}))
	}
	if len(b.Events) == 0 {
		return nil
	}
	return a.commit(b)
}

// dropItems drops the conversation of the agent, which only a model reads, and returns the agent.
func (a *actor) dropItems() *idleAgent {
	a.state.items, a.state.repeated = nil, repetition{}
	return &idleAgent{agent: a.agent, state: a.state}
}

// firstMessageID returns the id of the message that has the task for its first agent.
func firstMessageID(id identity.TaskID) string { return identity.DeriveID(string(id), "first") }
