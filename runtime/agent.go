package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// Reasons why an agent stops in the middle of a turn.
var (
	errClosing    = errors.New("runtime is closing") // the turn continues after a restart
	errAborted    = errors.New("turn aborted")       // the turn ends
	errTerminated = errors.New("agent terminated")   // the agent is terminated or its task has ended
	errTaskEnding = errors.New("task is ending")     // the first agent has given the task's result; the open calls end
)

// actor drives one agent while the agent is active. It is the only writer of
// the agent's journal. Its fields belong to its goroutine, except fields that
// tracker.mu guards.
type actor struct {
	rt      *Runtime
	task    identity.TaskID // never changes
	taskRun *taskRun        // of the task; never changes
	role    string          // the role's name, for events and logs
	*idleAgent

	received   []journal.Event // messages applied to state, to be recorded with the next commit
	inboxSeqs  []uint64        // their sequence numbers in the inbox
	markedIdle bool            // the last commit marked the agent as idle, and no message was read since

	hold diskHold // of the current step; the next one, or the end of the goroutine, ends it

	turnLog *turnRecord // collects the request log of this turn; nil if there is none

	requests int // to language models, since the last event that counts them

	recovered   map[identity.CallID]tool.Effect // calls started by an earlier process; guarded by tracker.mu
	status      org.AgentStatus                 // guarded by tracker.mu
	newMessages bool                            // a message arrived since the inbox was last read; guarded by tracker.mu
	cancel      context.CancelCauseFunc         // ends the turn; guarded by tracker.mu
}

// run is the main loop of an agent. It reads the inbox, asks the model, runs the tool calls of the
// answer and asks again. It ends when there is nothing left to do.
func (a *actor) run(ctx context.Context) {
	defer a.rt.agentStopped(a)
	defer a.hold.end()
	err := a.load(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	for turn := a.rt.tracker.beginTurn(ctx, a); err == nil; {
		err = a.step(turn)
		if cause := context.Cause(turn); err != nil && err != errIdle && cause != nil {
			err = cause
		}
		switch {
		case err == errIdle && !a.rt.tracker.tryIdle(a), errors.Is(err, errPausedByPerson) && !a.rt.tracker.tryRest(a):
			err = nil
		case errors.Is(err, errAborted):
			err = a.fail(errcode.New(errcode.TurnAborted, "the turn was aborted"))
			turn = a.rt.tracker.beginTurn(ctx, a)
		}
	}
	if errors.Is(err, errTaskEnding) {
		err = a.interruptCalls()
	}
	if err != nil && err != errIdle && !errors.Is(err, errClosing) && !errors.Is(err, errTerminated) && !errors.Is(err, errTaskPaused) && !errors.Is(err, errPausedByPerson) && !errors.Is(err, journal.ErrClosed) {
		a.rt.logAgentError(a, err)
	}
}

// errIdle reports that the agent can do nothing now: it has nothing to do, or its calls wait for people.
var errIdle = errors.New("agent is idle")

// step does one step. It reads the inbox only while no call is open. So a message never comes
// between a call and its result, nor between the parts of an answer.
func (a *actor) step(ctx context.Context) error {
	if a.rt.tracker.isPaused(a.task) {
		return errTaskPaused
	}
	if a.rt.org.PauseReason(a.agent.ID) != "" {
		return errPausedByPerson
	}
	if len(a.state.pending) == 0 && len(a.state.repairs()) == 0 {
		if err := a.readInbox(ctx); err != nil {
			return err
		}
	}
	switch a.state.next() {
	case stepCall:
		if len(a.readyCalls()) == 0 {
			return errIdle // it rests until people have decided; its journal says that it has work
		}
		return a.runCalls(ctx, nil)
	case stepAsk:
		return a.askModel(ctx)
	}
	if !a.markedIdle {
		if err := a.commit(&journal.Batch{Idle: true}); err != nil {
			return err
		}
	}
	return errIdle
}

// load folds the agent's journal, unless the agent came from the cache.
func (a *actor) load(ctx context.Context) error {
	a.role = a.rt.roleName(a.agent)
	if a.state != nil {
		return nil
	}
	stored, err := a.rt.AgentRecord(ctx, a.agent.ID)
	if err != nil {
		return err
	}
	stored.State = a.agent.State // the cached record is newer than the one read
	a.agent = stored
	if a.state, err = a.rt.fold(ctx, stored.ID); err != nil {
		return err
	}
	a.rt.tracker.setRecovered(a, maps.Clone(a.state.started))
	return nil
}

// readInbox reads the new messages of the inbox and applies them to the state.
// They are recorded with the next commit.
func (a *actor) readInbox(ctx context.Context) error {
	inbox, err := a.rt.store.ReadInbox(ctx, a.agent.ID)
	if err != nil {
		return fmt.Errorf("read inbox of agent %s: %w", a.agent.ID, err)
	}
	for _, m := range inbox[min(len(a.inboxSeqs), len(inbox)):] {
		e := a.event(journal.MessageReceived{Message: m.Message})
		a.received, a.inboxSeqs = append(a.received, e), append(a.inboxSeqs, m.Seq)
		a.state.apply(e)
		a.markedIdle = false
	}
	return nil
}

// askModel waits until the disk has room, requests one answer from the model and acts
// on it.
func (a *actor) askModel(ctx context.Context) error {
	a.rt.tracker.setStatus(a, org.AgentThinking)
	a.hold.end()
	if err := a.hold.wait(ctx, outcomeBytes+a.receivedBytes()); err != nil {
		return err
	}
	if err := a.rt.recorded.check(a.rt.recorded.taskOwner(a.task), 0); err != nil {
		return a.fail(err)
	}
	if err := a.checkTurns(); err != nil {
		return a.pauseTask(err)
	}
	answer, err := a.generate(ctx)
	switch {
	case ctx.Err() != nil: // an answer that arrives after the end of the turn is discarded
		return context.Cause(ctx)
	case errors.Is(err, errTaskPaused), errors.Is(err, errPausedByPerson):
		return err
	case needsOperator(err):
		return a.pauseTask(err)
	case err != nil && a.rt.org.PauseReason(a.agent.ID) != "":
		return errPausedByPerson // the model is asked again when the agent goes on
	case err != nil:
		return a.fail(err)
	}
	if err := a.checkAnswer(answer); err != nil {
		return a.fail(err)
	}
	switch answer.Finish {
	case model.FinishToolCalls:
		return a.runCalls(ctx, answer)
	case model.FinishContinue:
		return a.sayToUser(answer)
	case model.FinishResult:
		return a.endWithValue(ctx, answer)
	case model.FinishPlan:
		return a.commit(&journal.Batch{Events: []journal.Event{a.event(journal.ModelAnswered{Answer: *answer})}})
	case model.FinishRepair, model.FinishInvalid:
		return a.recordUnusable(answer)
	}
	return a.finish(answer)
}

// receivedBytes returns how much space the messages take that were read from the inbox and
// are not recorded yet.
func (a *actor) receivedBytes() (bytes int64) {
	for _, e := range a.received {
		if m, ok := e.Body.(journal.MessageReceived); ok {
			bytes += inboxFactor * int64(len(m.Message.Payload))
		}
	}
	return bytes
}

// checkAnswer rejects an answer whose finish is unknown or does not fit its calls: wait, end and
// result have none, and calls has some. It also rejects an answer that exceeds the limit of answers
// per turn.
func (a *actor) checkAnswer(answer *model.Answer) error {
	switch answer.Finish {
	case model.FinishWait, model.FinishEnd, model.FinishResult:
		if len(answer.Calls) > 0 {
			return errcode.New(errcode.LLMCallFailed, "model answer with finish %q contains tool calls", answer.Finish)
		}
		return nil
	case model.FinishToolCalls, model.FinishContinue, model.FinishPlan, model.FinishRepair, model.FinishInvalid:
	default:
		return errcode.New(errcode.LLMCallFailed, "model answer has the unknown finish %q", answer.Finish)
	}
	if answer.Finish == model.FinishToolCalls && len(answer.Calls) == 0 {
		return errcode.New(errcode.LLMCallFailed, "model answer with finish %q contains no tool calls", answer.Finish)
	}
	if limit := a.rt.maxRounds(a.agent); a.state.rounds >= limit {
		return errcode.New(errcode.MaxToolRounds, "turn did not end after %d answers; at most %d are allowed", a.state.rounds+1, limit)
	}
	return nil
}

// sayToUser records an answer whose text is sent to the user while the turn
// goes on.
func (a *actor) sayToUser(answer *model.Answer) error {
	text := a.message("user", textPayload(answer.Text), "say")
	return a.commit(&journal.Batch{Events: []journal.Event{
		a.event(journal.ModelAnswered{Answer: *answer}), a.event(journal.MessageSent{Message: text}),
	}})
}

// finish records an answer that ends or suspends the turn. A final answer is sent to the parent.
// The final answer of the task's top agent is sent to the user.
func (a *actor) finish(answer *model.Answer) error {
	b := &journal.Batch{Idle: answer.MessagesRead >= a.state.messages}
	b.Events = a.answerEvents(answer)
	switch {
	case answer.Finish != model.FinishEnd:
	case a.agent.Parent != "":
		return a.finishBelow(b, answer)
	default:
		a.reportAnswer(b, answer)
	}
	return a.commit(b)
}

// runCalls passes the open calls to the gate. These are the calls of answer, which is
// recorded with the first intents. With a nil answer they are the calls that are still
// open. An earlier process left them open, or they waited for people who have decided
// now.
func (a *actor) runCalls(ctx context.Context, answer *model.Answer) error {
	calls, refused := a.readyCalls(), a.state.refused
	if answer != nil {
		calls, refused = answer.Calls, refusedCall(answer)
	}
	r := &recorder{a: a, answer: answer}
	return a.passCalls(ctx, calls, refused, r, r)
}

// passCalls passes calls to the gate, which records them with rec; r is rec, or the recorder
// in it.
func (a *actor) passCalls(ctx context.Context, calls []model.Call, refused *refused, r *recorder, rec gate.CallRecorder) error {
	a.rt.tracker.setStatus(a, org.AgentCalling)
	cut := a.cutCall(r.answer)
	requests := make([]gate.CallRequest, len(calls))
	for i, c := range calls {
		requests[i].ID, requests[i].Name, requests[i].Args = c.ID, c.Name, c.Args
		requests[i].Effect, requests[i].Started = a.state.started[c.ID]
		if refused != nil && c.ID == refused.id {
			requests[i].Refusal = refused.reason
		}
		if c.ID == cut.id {
			requests[i].Cut = cut.tokens
		}
		if err := a.rt.useEdited(ctx, identity.ByAgent(a.agent.ID), &requests[i]); err != nil {
			return err
		}
	}
	defer a.hold.end()
	defer r.unlockCaller()
	ctx = a.rt.withLoggedInput(ctx, starterInput{a.rt, a.task, a.agent.ID}, "", a.event)
	_, err := a.rt.gate.Call(ctx, identity.ByAgent(a.agent.ID), requests, rec)
	if errcode.CodeOf(err) == errcode.BudgetExceeded { // of the recorder: no call of the batch has started
		return a.stopOverBudget(r, err)
	}
	return err
}

// commit appends a batch to the agent's journal, together with the messages
// received since the last commit, and applies its events to the state. It fails
// with errTerminated if the agent is no longer active.
func (a *actor) commit(b *journal.Batch) error {
	fresh := b.Events
	b.Stream, b.Consume = a.agent.ID, a.inboxSeqs
	if len(a.received) > 0 {
		b.Events = slices.Concat(a.received, fresh)
	}
	decide := b.Prepare
	b.Prepare = func(b *journal.Batch) error {
		if !a.rt.org.IsActive(a.agent.ID) {
			return errTerminated
		}
		if decide != nil {
			if err := decide(b); err != nil {
				return err
			}
		}
		a.countTurn(b)
		a.noteBudgets(b)
		if slices.ContainsFunc(b.Events, func(e journal.Event) bool { _, failed := e.Body.(journal.TurnFailed); return failed }) {
			a.rt.voidApprovals(b, a.task, "the turn of the agent has ended", func(p *Approval) bool { return p.Agent == a.agent.ID })
			a.rt.standing.releaseAll(a.agent.ID)
		}
		return nil
	}
	if _, err := a.rt.commit(b); err != nil {
		b.Events = fresh
		return err
	}
	for _, e := range b.Events[len(a.received):] {
		a.state.apply(e)
		if countsRequests(e.Body) {
			a.requests = 0
		}
	}
	a.received, a.inboxSeqs, a.markedIdle = nil, nil, b.Idle
	a.logRequest(b.Events)
	return nil
}

// countsRequests reports whether events with such a body count requests to models.
func countsRequests(body journal.EventBody) bool {
	switch body.(type) {
	case journal.ModelAnswered, journal.ContextCompressed, journal.TurnFailed:
		return true
	}
	return false
}

// event returns an event of this agent. Its body has the requests to models that no other
// event counts.
func (a *actor) event(body journal.EventBody) journal.Event {
	switch b := body.(type) {
	case journal.ModelAnswered:
		b.Unanswered = max(0, a.requests-1)
		body = b
	case journal.ContextCompressed:
		b.Unanswered = max(0, a.requests-1)
		body = b
	case journal.TurnFailed:
		b.Unanswered = a.requests
		body = b
	}
	return journal.Event{At: a.rt.now(), Task: a.agent.Task, Agent: a.agent.ID, Role: a.role, Body: body}
}
