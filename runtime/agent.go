package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// Why an agent stops in the middle of a turn.
var (
	errClosing    = errors.New("the runtime is closing")  // goes on after the restart
	errAborted    = errors.New("the turn was aborted")    // the turn is over
	errTerminated = errors.New("the agent is terminated") // or its task has ended
)

// actor drives one agent while it has something to do. It is the only writer
// of the agent's journal; its goroutine owns everything but redo, again and
// cancel.
type actor struct {
	rt   *Runtime
	task identity.TaskID // never changes
	role string          // the role's name, for records
	*idleAgent

	taken []journal.Event // messages applied to state, to be kept with the next commit
	takes []uint64        // their places in the inbox
	idle  bool            // the last commit said that the agent rests

	current *turnRecord // what the log gathers of this turn; nil when there is none

	recovered  map[identity.CallID]tool.Effect // calls a former process had started; guarded by Runtime.mu
	hasNewMail bool                            // mail came meanwhile; guarded by Runtime.mu
	cancel     context.CancelCauseFunc         // ends the turn; guarded by Runtime.mu
}

// run is the loop of an agent: take mail, ask the model, run the calls it
// wants, ask again, until there is nothing left to do.
func (a *actor) run(ctx context.Context) {
	defer a.rt.agentStopped(a)
	err := a.load(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	for turn := a.rt.turn(ctx, a); err == nil; {
		err = a.step(turn)
		if cause := context.Cause(turn); err != nil && err != errIdle && cause != nil {
			err = cause
		}
		switch {
		case err == errIdle && !a.rt.mayIdle(a):
			err = nil
		case errors.Is(err, errAborted):
			err = a.fail(errcode.New(errcode.TurnAborted, "the turn was aborted"))
			turn = a.rt.turn(ctx, a)
		}
	}
	if err != errIdle && !errors.Is(err, errClosing) && !errors.Is(err, errTerminated) && !errors.Is(err, journal.ErrClosed) {
		a.rt.logAgentError(a, err)
	}
}

// errIdle: the agent has nothing to do and this is on record.
var errIdle = errors.New("at rest")

// step does one thing. Mail is taken at its beginning: never while a call runs.
func (a *actor) step(ctx context.Context) error {
	if len(a.state.pending) == 0 {
		if err := a.take(ctx); err != nil {
			return err
		}
	}
	switch a.state.next() {
	case call:
		return a.call(ctx, nil)
	case ask:
		return a.ask(ctx)
	}
	if !a.idle {
		if err := a.commit(&journal.Batch{Idle: true}); err != nil {
			return err
		}
	}
	return errIdle
}

// load folds the agent's journal, unless the runtime remembers it.
func (a *actor) load(ctx context.Context) error {
	a.role = a.rt.roleName(a.agent)
	if a.state != nil {
		return nil
	}
	stored, err := a.rt.AgentRecord(ctx, a.agent.ID)
	if err != nil {
		return err
	}
	stored.State = a.agent.State // the one in force
	a.agent = stored
	if a.state, err = a.rt.fold(ctx, stored.ID); err != nil {
		return err
	}
	redo := maps.Clone(a.state.started)
	a.rt.mu.Lock()
	defer a.rt.mu.Unlock()
	a.recovered = redo
	return nil
}

// take applies the mail that waits; it is recorded with the next commit.
func (a *actor) take(ctx context.Context) error {
	inbox, err := a.rt.store.Inbox(ctx, a.agent.ID)
	if err != nil {
		return fmt.Errorf("read inbox of agent %s: %w", a.agent.ID, err)
	}
	for _, m := range inbox[min(len(a.takes), len(inbox)):] {
		e := a.event(journal.MessageReceived{Message: m.Message})
		a.taken, a.takes = append(a.taken, e), append(a.takes, m.Seq)
		a.state.apply(e)
		a.idle = false
	}
	return nil
}

// ask asks the model once and acts on the answer.
func (a *actor) ask(ctx context.Context) error {
	answer, err := a.generate(ctx)
	switch {
	case ctx.Err() != nil: // an answer after the end of the turn is discarded
		return context.Cause(ctx)
	case err != nil:
		return a.fail(err)
	}
	if err := a.checkAnswer(answer); err != nil {
		return a.fail(err)
	}
	switch answer.Finish {
	case model.FinishToolCalls:
		return a.call(ctx, answer)
	case model.FinishContinue:
		return a.say(answer)
	case model.FinishPlan:
		return a.commit(&journal.Batch{Events: []journal.Event{a.event(journal.ModelAnswered{Answer: *answer})}})
	}
	return a.finish(answer)
}

// checkAnswer refuses an answer that cannot be acted on, and one too many in a
// turn that does not end.
func (a *actor) checkAnswer(answer *model.Answer) error {
	switch answer.Finish {
	case model.FinishWait, model.FinishEnd:
		if len(answer.Calls) > 0 {
			return errcode.New(errcode.LLMCallFailed, "the model's answer ends in %q and holds calls", answer.Finish)
		}
		return nil
	case model.FinishToolCalls, model.FinishContinue, model.FinishPlan:
	default:
		return errcode.New(errcode.LLMCallFailed, "the model's answer ends in %q, which is nothing known", answer.Finish)
	}
	if answer.Finish == model.FinishToolCalls && len(answer.Calls) == 0 {
		return errcode.New(errcode.LLMCallFailed, "the model's answer ends in calls and holds none")
	}
	if limit := a.rt.rounds(a.agent); a.state.rounds >= limit {
		return errcode.New(errcode.MaxToolRounds, "%d answers in one turn that did not end it; at most %d are allowed", a.state.rounds+1, limit)
	}
	return nil
}

// say records an answer whose text goes to the user.
func (a *actor) say(answer *model.Answer) error {
	text := a.message("user", textPayload(answer.Text), "say")
	return a.commit(&journal.Batch{Events: []journal.Event{
		a.event(journal.ModelAnswered{Answer: *answer}), a.event(journal.MessageSent{Message: text}),
	}})
}

// finish records an answer that ends or suspends the turn; an outcome goes to
// the parent, that of a task's top agent to the user.
func (a *actor) finish(answer *model.Answer) error {
	b := &journal.Batch{Idle: answer.MessagesRead >= a.state.messages}
	b.Events = append(b.Events, a.event(journal.ModelAnswered{Answer: *answer}))
	if answer.Finish == model.FinishEnd {
		payload := answer.Value
		if payload == nil {
			payload = textPayload(answer.Text)
		}
		a.report(b, payload, "end")
	}
	return a.commit(b)
}

// fail ends the turn in an error. The parent is told; a top agent has nobody
// to tell, so its task fails with it. An abort is silent.
func (a *actor) fail(cause error) error {
	if known, ok := errors.AsType[*errcode.Error](cause); !ok || known.Err != nil || known.Code == errcode.Internal { // there is more than is told
		a.rt.log.Error("turn failed", "agent", a.agent.ID, "error", cause)
	}
	read := a.messagesRead(cause)
	b := &journal.Batch{Idle: read == 0 || read >= a.state.messages}
	b.Events = append(b.Events, a.event(journal.Failed{Code: errcode.Of(cause), Message: errcode.Message(cause), MessagesRead: read}))
	switch {
	case errcode.Of(cause) == errcode.TurnAborted:
	case a.agent.Parent != "":
		a.report(b, a.errorPayload(cause), "error")
	default:
		return a.failTask(b, cause)
	}
	return a.commit(b)
}

// failTask ends the agent's task with its turn.
func (a *actor) failTask(b *journal.Batch, cause error) error {
	task, err := a.rt.TaskRecord(a.rt.ctx, a.agent.Task)
	if err != nil {
		return err
	}
	b.Prepare = a.rt.taskEndBatch(&task, org.Failed, nil, &org.TaskError{Code: errcode.Of(cause), Message: errcode.Message(cause)})
	if err := a.commit(b); err != nil {
		return err
	}
	a.rt.closeRun(task.ID, &task)
	return errTerminated
}

// report adds a message to the parent, or to the user.
func (a *actor) report(b *journal.Batch, payload []byte, kind string) {
	to := "user"
	if a.agent.Parent != "" {
		to = string(a.agent.Parent)
	}
	m := a.message(to, payload, kind)
	b.Events = append(b.Events, a.event(journal.MessageSent{Message: m}))
	if to != "user" {
		b.Send = append(b.Send, journal.Message{Message: m})
	}
}

// message makes a message of this step; its id is that of the step.
func (a *actor) message(to string, payload []byte, kind string) model.Message {
	return model.Message{
		ID:   identity.Derive(string(a.agent.ID), strconv.Itoa(a.state.answers), kind),
		From: string(a.agent.ID), To: to, Task: a.agent.Task, Payload: payload, CreatedAt: a.rt.now(),
	}
}

// call takes the open calls through the gate: those of answer, which is
// recorded with the first intents, or those that an earlier process left.
func (a *actor) call(ctx context.Context, answer *model.Answer) error {
	calls := a.state.pending
	if answer != nil {
		calls = answer.Calls
	}
	requests := make([]gate.Request, len(calls))
	for i, c := range calls {
		requests[i].ID, requests[i].Name, requests[i].Args = c.ID, c.Name, c.Args
		requests[i].Effect, requests[i].Started = a.state.started[c.ID]
	}
	_, err := a.rt.gate.Call(ctx, identity.ByAgent(a.agent.ID), requests, &recorder{a: a, answer: answer})
	return err
}

// commit puts a batch into the agent's journal, with the mail taken since the
// last one, and folds it in. An agent that is gone commits nothing.
func (a *actor) commit(b *journal.Batch) error {
	fresh := b.Events
	b.Stream, b.Consume = a.agent.ID, a.takes
	if len(a.taken) > 0 {
		b.Events = slices.Concat(a.taken, fresh)
	}
	decide := b.Prepare
	b.Prepare = func(b *journal.Batch) error {
		if !a.rt.org.Active(a.agent.ID) {
			return errTerminated
		}
		if decide != nil {
			return decide(b)
		}
		return nil
	}
	if _, err := a.rt.commit(b); err != nil {
		b.Events = fresh
		return err
	}
	for _, e := range b.Events[len(a.taken):] {
		a.state.apply(e)
	}
	a.taken, a.takes, a.idle = nil, nil, b.Idle
	a.logRequest(b.Events)
	return nil
}

func (a *actor) event(body journal.Body) journal.Event {
	return journal.Event{At: a.rt.now(), Task: a.agent.Task, Agent: a.agent.ID, Role: a.role, Body: body}
}
