package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// recorder records an agent's calls in its journal. One commit has the
// decisions and intents, with the answer that contains the calls; another has
// the outcomes.
type recorder struct {
	a      *actor
	answer *model.Answer // to be recorded with the first intents
	driven bool          // a program made the call: it is not recorded while the agent is paused
	unlock func()        // releases the lock of the task's caller; nil if it is not held
}

// CallPending implements gate.CallRecorder. It waits until the disk has room for the
// calls. Before, it records the answer, which has room, so that the model is not asked
// again.
func (r *recorder) CallPending(ctx context.Context, requests []gate.CallRequest) error {
	bytes := callBytes(requests)
	if r.answer == nil { // the calls before have been recorded
		r.a.hold.end()
	} else {
		bytes += answerBytes(r.answer)
	}
	if r.a.hold.set(bytes) == nil {
		return nil
	}
	if err := r.recordAnswer(); err != nil {
		return err
	}
	r.a.hold.end()
	return r.a.hold.wait(ctx, callBytes(requests))
}

// recordAnswer records the answer without its calls, which stay open.
func (r *recorder) recordAnswer() error {
	if r.answer == nil {
		return nil
	}
	err := r.a.commit(&journal.Batch{Events: []journal.Event{r.a.event(journal.ModelAnswered{Answer: *r.answer})}})
	if err == nil {
		r.answer = nil
	}
	return err
}

// CallStarted implements gate.CallRecorder. The commit fails if a decision is
// superseded, or if the workflow state has changed since: the agent's task may share it
// with its caller. While the agent is paused, no call is decided: only the answer is recorded,
// and the error is errPausedByPerson.
func (r *recorder) CallStarted(ctx context.Context, calls []*gate.Admission) error {
	if err := r.lockCaller(ctx, calls); err != nil {
		return err
	}
	if _, err := r.a.rt.loadTaskUsage(ctx, r.a.task); err != nil {
		return err
	}
	b := &journal.Batch{Events: make([]journal.Event, 0, 1+2*len(calls))}
	if r.answer != nil {
		b.Events = append(b.Events, r.a.event(journal.ModelAnswered{Answer: *r.answer}))
	}
	said := ""
	if r.answer != nil {
		said = r.answer.Text
	}
	for _, c := range calls {
		if c.Waiting() {
			continue
		}
		e := decisionEvent(c)
		detachArgs(&e) // the answer has them
		b.Events = append(b.Events, r.a.event(e))
	}
	if !slices.ContainsFunc(calls, (*gate.Admission).Allowed) { // no call will run: one commit is enough
		r.addOutcomes(b, calls)
	}
	by := identity.ByAgent(r.a.agent.ID)
	prependPrepare(b, func(b *journal.Batch) error {
		if err := cmp.Or(r.a.checkPausedByPerson(calls), r.a.rt.checkCurrent(by, calls), r.a.rt.checkApprovals(by, calls), r.a.checkCallBudget(calls)); err != nil {
			return err
		}
		r.a.rt.useApprovals(b, by, calls)
		r.a.rt.requestApprovals(b, by, calls, said, r.a.event)
		return nil
	})
	if err := r.a.commit(b); err != nil {
		if errors.Is(err, errPausedByPerson) && !r.driven {
			return cmp.Or(r.recordAnswer(), errPausedByPerson)
		}
		return err
	}
	r.answer = nil
	r.a.rt.logDenied(identity.ByAgent(r.a.agent.ID), r.a.role, calls...)
	return nil
}

// CallFinished implements gate.CallRecorder. Calls that were interrupted because the
// runtime closes get no outcome: they are decided again after the restart. Those that were
// interrupted because the task ends have the outcome tool_interrupted.
func (r *recorder) CallFinished(ctx context.Context, calls []*gate.Admission) error {
	defer r.unlockCaller()
	if !slices.ContainsFunc(calls, (*gate.Admission).Allowed) {
		return nil
	}
	switch context.Cause(ctx) {
	case errClosing:
		calls = slices.DeleteFunc(slices.Clone(calls), func(c *gate.Admission) bool { return c.Interrupted })
	case errTaskEnding:
		for _, c := range calls {
			if c.Interrupted {
				c.Result = interruptedResult(c.Request.Name)
			}
		}
	}
	b := &journal.Batch{}
	r.addOutcomes(b, calls)
	for _, c := range calls {
		if movesState(c) {
			prependPrepare(b, r.a.prepareState(c.NewState))
		}
	}
	if len(b.Events) == 0 {
		return nil
	}
	release := r.a.rt.acquireLargeCommit(identity.ByAgent(r.a.agent.ID), resultBytes(calls))
	err := r.a.commit(b)
	release()
	if err != nil {
		return err
	}
	r.a.rt.logGatedCalls("agent", string(r.a.agent.ID), calls...)
	for _, c := range calls { // the gate keeps them until the last call of the answer has ended
		c.Result = tool.Result{}
	}
	return nil
}

// lockCaller locks the workflow state of the task's caller if one of calls changes it.
// Such calls of the caller and of all agents of its tasks run one at a time, from the
// intent to the outcome. A decision from before the lock is checked in the commit.
func (r *recorder) lockCaller(ctx context.Context, calls []*gate.Admission) error {
	moves := slices.ContainsFunc(calls, func(c *gate.Admission) bool { return c.NextState() != "" })
	task, _ := r.a.rt.org.TaskByID(r.a.agent.Task)
	caller, external := task.ExternalCaller()
	if r.unlock != nil || !moves || !external {
		return nil
	}
	unlock, err := r.a.rt.callerLocks.Lock(ctx, caller.Key())
	if err == nil {
		r.unlock = unlock
	}
	return err
}

// unlockCaller releases the lock of lockCaller, if it is held.
func (r *recorder) unlockCaller() {
	if r.unlock != nil {
		r.unlock()
		r.unlock = nil
	}
}

// addOutcomes adds the outcome events of calls to a batch, in their order.
func (r *recorder) addOutcomes(b *journal.Batch, calls []*gate.Admission) {
	for _, c := range calls {
		if c.Waiting() {
			continue
		}
		b.Events = append(b.Events, r.a.event(r.outcome(b, c)))
		if movesState(c) {
			b.Events = append(b.Events, r.a.event(journal.StateTransition{Tool: c.Request.Name, From: toolgroups.StateName(c.Subject.State), To: c.NewState}))
		}
	}
}

// movesState reports whether a call has moved its caller to another workflow state.
func movesState(c *gate.Admission) bool {
	return c.NewState != "" && c.NewState != toolgroups.StateName(c.Subject.State)
}

// prependPrepare makes a batch run do before its current Prepare function.
func prependPrepare(b *journal.Batch, do func(*journal.Batch) error) {
	then := b.Prepare
	b.Prepare = func(b *journal.Batch) error {
		if err := do(b); err != nil || then == nil {
			return err
		}
		return then(b)
	}
}

// prepareState returns a Prepare function that changes the agent's workflow state.
func (a *actor) prepareState(to string) func(*journal.Batch) error {
	return func(b *journal.Batch) error {
		changes, err := a.rt.org.SetState(a.agent.ID, to, a.agent)
		if err != nil {
			return err
		}
		a.agent.State = to
		b.Put = append(b.Put, storeRecords(changes)...)
		return nil
	}
}

// decisionEvent returns the event of a decision: an allowed call with its
// arguments, or a denied one with code and reason.
func decisionEvent(c *gate.Admission) journal.ToolCall {
	e := journal.ToolCall{
		Call: c.Request.ID, Tool: c.Request.Name, Args: c.Request.Args,
		Group: string(c.Decision.Group()), Decision: journal.Allowed, Epoch: c.Decision.Epoch(), Effect: c.Effect(), Approval: c.Approval(),
	}
	if c.Allowed() {
		e.Reason = c.Decision.Reason()
		return e
	}
	e.Decision, e.Code, e.Reason, e.Rule = journal.Denied, errcode.CodeOf(c.Err), errcode.Message(c.Err), deniedRule(c)
	if e.Rule != "" {
		e.Reason = c.Decision.Reason() // without the advice to the agent
	}
	e.Args = nil // not checked to be JSON; the recorded answer has them, or recordDeniedArgs
	return e
}

// deniedRule returns the rule that denied a call; "" if it was not denied by permissions.
func deniedRule(c *gate.Admission) string {
	switch {
	case errcode.CodeOf(c.Err) != c.Decision.Code():
		return ""
	case c.Decision.Suspended() != "":
		return "paused"
	}
	return c.Decision.Rule().String()
}

// maxEventArgs bounds the arguments in a ToolCall, in bytes. Larger ones are recorded
// once and referenced by their hash.
const maxEventArgs = 64 << 10

// detachArgs replaces large arguments of an event by their hash, and returns them. It
// returns nil if they stay in the event.
func detachArgs(e *journal.ToolCall) json.RawMessage {
	args := e.Args
	if len(args) <= maxEventArgs {
		return nil
	}
	e.ArgsHash, e.ArgsSize, e.Args = hashOf(args), len(args), nil
	return args
}

// outcome returns the event of a call's result, with a preview if the result is
// too large for the conversation. The data of its contents is stored with it.
func (r *recorder) outcome(b *journal.Batch, c *gate.Admission) journal.EventBody {
	r.a.rt.storeContents(b, c, &r.a.hold)
	result, err := r.limitResult(b, c, r.a.withEditedArgs(c, normalizeJSON(c.Result.JSON())))
	if err != nil {
		return journal.ToolError{Call: c.Request.ID, Tool: c.Request.Name, Code: errcode.CodeOf(err), Result: tool.Failure(c.Request.Name, err).JSON()}
	}
	if c.Result.IsError {
		return journal.ToolError{Call: c.Request.ID, Tool: c.Request.Name, Code: c.Code(), Result: result}
	}
	return journal.ToolResult{Call: c.Request.ID, Tool: c.Request.Name, Result: result}
}
