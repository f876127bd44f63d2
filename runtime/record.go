package runtime

import (
	"context"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// recorder puts an agent's calls into its journal: decisions and intents in
// one commit, with the answer that asked for them; outcomes in another.
type recorder struct {
	a      *actor
	answer *model.Answer // to be recorded with the first intents
}

// Started implements gate.Recorder. The commit refuses a superseded decision.
func (r *recorder) Started(_ context.Context, calls []*gate.Admission) error {
	b := &journal.Batch{Events: make([]journal.Event, 0, 1+2*len(calls))}
	if r.answer != nil {
		b.Events = append(b.Events, r.a.event(journal.ModelAnswered{Answer: *r.answer}))
	}
	for _, c := range calls {
		b.Events = append(b.Events, r.a.event(decided(c)))
	}
	if !slices.ContainsFunc(calls, (*gate.Admission).Allowed) { // nothing will run: one commit is enough
		b.Events = append(b.Events, r.outcomes(calls)...)
	}
	b.Prepare = func(*journal.Batch) error {
		for _, c := range calls {
			if c.Superseded() {
				return gate.ErrSuperseded
			}
		}
		return nil
	}
	if err := r.a.commit(b); err != nil {
		return err
	}
	r.answer = nil
	return nil
}

// Finished implements gate.Recorder. Outcomes of calls that the runtime cut
// short to close are left open: the next process decides about them.
func (r *recorder) Finished(ctx context.Context, calls []*gate.Admission) error {
	if !slices.ContainsFunc(calls, (*gate.Admission).Allowed) {
		return nil
	}
	if context.Cause(ctx) == errClosing {
		calls = slices.DeleteFunc(slices.Clone(calls), func(c *gate.Admission) bool { return c.Cut })
	}
	b := &journal.Batch{Events: r.outcomes(calls)}
	for _, c := range calls {
		if c.NewState != "" && c.NewState != c.Seat.State {
			b.Prepare = r.a.move(c.NewState)
		}
	}
	if len(b.Events) == 0 {
		return nil
	}
	return r.a.commit(b)
}

// outcomes gives the events of what calls came to, in their order.
func (r *recorder) outcomes(calls []*gate.Admission) []journal.Event {
	var events []journal.Event
	for _, c := range calls {
		events = append(events, r.a.event(outcome(c)))
		if c.NewState != "" && c.NewState != c.Seat.State {
			events = append(events, r.a.event(journal.StateTransition{Tool: c.Request.Name, From: c.Seat.State, To: c.NewState}))
		}
	}
	return events
}

// move changes the agent's workflow state in the same commit.
func (a *actor) move(to string) func(*journal.Batch) error {
	return func(b *journal.Batch) error {
		changes, err := a.rt.org.Move(a.agent.ID, to, a.agent)
		if err != nil {
			return err
		}
		a.agent.State = to
		b.Put = append(b.Put, records(changes)...)
		return nil
	}
}

func decided(c *gate.Admission) journal.ToolCall {
	e := journal.ToolCall{
		Call: c.Request.ID, Tool: c.Request.Name, Args: c.Request.Args,
		Group: string(c.Decision.Group()), Decision: journal.Allowed, Epoch: c.Decision.Epoch(), Effect: c.Effect(),
	}
	if c.Allowed() {
		e.Reason = c.Decision.Reason()
		return e
	}
	e.Decision, e.Code, e.Reason = journal.Denied, errcode.Of(c.Denial), errcode.Message(c.Denial)
	e.Args = nil // not known to be JSON; the answer has them
	return e
}

func outcome(c *gate.Admission) journal.Body {
	if c.Result.IsError {
		return journal.ToolError{Call: c.Request.ID, Tool: c.Request.Name, Code: c.Code(), Result: asStored(c.Result.JSON())}
	}
	return journal.ToolResult{Call: c.Request.ID, Tool: c.Request.Name, Result: asStored(c.Result.JSON())}
}
