package runtime

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
)

// state is an agent as its journal says it is: a fold of events. apply and
// next are pure, so that a restarted process, and a replay, come to the same.
type state struct {
	seq      uint64 // the last event applied
	items    []model.Item
	messages int // taken so far
	readUpTo int // of them read when the last turn ended
	answers  int // given so far
	rounds   int // answers since the turn began that did not end it
	tools    []string
	summary  *model.Summary
	squeezed lastCompression
	usage    contextUsage
	repeated repetition
	plan     plan

	pending []model.Call                    // calls of the last answer without an outcome
	started map[identity.CallID]tool.Effect // those of them whose intent is on record
	unseen  bool                            // there is something the model has not seen
	last    journal.Body                    // ModelAnswered or Failed, what came last
}

// fold reads what an agent's journal comes to.
func (rt *Runtime) fold(ctx context.Context, id identity.AgentID) (*state, error) {
	s := &state{}
	for e, err := range rt.store.Read(ctx, id, 0) {
		if err != nil {
			return nil, fmt.Errorf("read journal of agent %s: %w", id, err)
		}
		s.apply(e)
	}
	return s, nil
}

// step is what an agent does next.
type step int

const (
	idle step = iota // wait for a message
	ask              // ask the model
	call             // call what the model asked for
)

// next says what to do.
func (s *state) next() step {
	switch {
	case len(s.pending) > 0:
		return call
	case s.unseen:
		return ask
	}
	return idle
}

// apply folds one event in.
func (s *state) apply(e journal.Event) {
	s.seq = max(s.seq, e.Seq)
	switch b := e.Body.(type) {
	case journal.MessageReceived:
		s.add(model.Item{Message: &b.Message})
		s.messages++
		s.unseen = true
	case journal.ModelAnswered:
		s.answered(b)
	case journal.ToolCall:
		if b.Decision == journal.Allowed {
			s.start(b.Call, b.Effect)
		}
	case journal.ToolResult:
		s.ended(model.Result{Call: b.Call, Tool: b.Tool, Content: b.Result})
	case journal.ToolError:
		s.ended(model.Result{Call: b.Call, Tool: b.Tool, Content: b.Result, IsError: true})
	case journal.ContextCompressed:
		s.compressed(b)
	case journal.Failed:
		s.failed(b)
	}
}

func (s *state) add(item model.Item) {
	s.items = append(s.items, item)
	s.usage.add(item)
}

func (s *state) answered(b journal.ModelAnswered) {
	a := b.Answer
	s.add(model.Item{Answer: &a})
	s.answers++
	s.last = b
	if a.Tools != nil {
		s.tools = a.Tools
	}
	s.pending, s.started = a.Calls, nil
	switch a.Finish {
	case model.FinishToolCalls:
		s.rounds++
		s.unseen = false
	case model.FinishContinue:
		s.rounds++
		s.unseen = true
	case model.FinishPlan:
		s.rounds++
		s.unseen = true
		s.plan.answered(&a)
	default: // the turn is over, unless there is mail the model has not read
		s.rounds, s.repeated, s.plan = 0, repetition{}, plan{}
		s.unseen = a.MessagesRead < s.messages
		if a.Finish == model.FinishEnd {
			s.readUpTo = a.MessagesRead
		}
	}
}

func (s *state) start(id identity.CallID, effect tool.Effect) {
	if s.started == nil {
		s.started = map[identity.CallID]tool.Effect{}
	}
	s.started[id] = effect
}

func (s *state) ended(r model.Result) {
	s.add(model.Item{Result: &r})
	s.plan.ended(&r)
	rest := make([]model.Call, 0, len(s.pending))
	for _, c := range s.pending {
		if c.ID != r.Call {
			rest = append(rest, c)
		}
	}
	s.pending = rest
	delete(s.started, r.Call)
	if s.unseen = len(rest) == 0; s.unseen {
		s.repeated.observe(s.items)
	}
}

// failed ends the turn: what was read is behind, open calls are dropped, which
// is their result.
func (s *state) failed(b journal.Failed) {
	s.readUpTo = s.messages
	if b.MessagesRead > 0 {
		s.readUpTo = b.MessagesRead
	}
	for _, c := range s.pending {
		s.add(model.Item{Result: s.dropped(c)})
	}
	end := model.Answer{Finish: model.FinishEnd, MessagesRead: s.readUpTo}
	s.add(model.Item{Answer: &end})
	s.answers++
	s.last = b
	s.pending, s.started = nil, nil
	s.unseen, s.rounds, s.repeated, s.plan = s.readUpTo < s.messages, 0, repetition{}, plan{}
}

// dropped is the result of a call whose turn ended before it did.
func (s *state) dropped(c model.Call) *model.Result {
	err := errcode.New(errcode.TurnAborted, "%s was not called: the turn ended before", c.Name)
	if _, started := s.started[c.ID]; started {
		err = errcode.New(errcode.ToolInterrupted, "%s was started and the turn ended: it may or may not have acted; look before you call it again", c.Name)
	}
	return &model.Result{Call: c.ID, Tool: c.Name, Content: tool.Failure(c.Name, err).JSON(), IsError: true}
}
