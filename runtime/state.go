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

// state is the state of an agent: a fold of the events in its journal. apply
// and next are pure, so a restarted process and a replay compute the same
// state.
type state struct {
	seq         uint64 // the last event applied
	items       []model.Item
	messages    int // received so far
	readUpTo    int // messages read when the last turn ended
	answers     int // received so far
	rounds      int // answers of the current turn, none of which ended it
	tools       []string
	summary     *model.ContextSummary
	compression lastCompression
	usage       contextUsage
	hires       int // agents that it has spawned
	repeated    repetition
	grounded    bool // a call of the current turn was successful; a tool-gated agent may then answer
	plan        plan

	pending   []model.Call                    // calls of the last answer that have no outcome yet
	refused   *refused                        // the denied call among them; nil if none is denied
	started   map[identity.CallID]tool.Effect // the calls among them whose intent is recorded
	hasUnseen bool                            // there is something the model has not been sent
	last      journal.EventBody               // the last ModelAnswered or TurnFailed event

	corrected bool // the last turn ended with a result that did not fit, and its agent was told

	readBeforeFailure int // readUpTo before the last TurnFailed event
}

// fold reads an agent's journal and returns its state.
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

// step is the next action of an agent.
type step int

const (
	stepIdle step = iota // wait for a message
	stepAsk              // ask the model
	stepCall             // run the calls of the last answer
)

// next returns the next step.
func (s *state) next() step {
	switch {
	case len(s.pending) > 0:
		return stepCall
	case s.hasUnseen:
		return stepAsk
	}
	return stepIdle
}

// apply applies one event.
func (s *state) apply(e journal.Event) {
	s.seq = max(s.seq, e.Seq)
	switch b := e.Body.(type) {
	case journal.MessageReceived:
		s.addItem(model.Item{Message: &b.Message})
		s.messages++
		s.repeated.noteReceived(&b.Message)
		s.hasUnseen = true
		s.corrected = s.corrected || isCorrection(&b.Message)
	case journal.ModelAnswered:
		s.applyAnswer(b)
	case journal.ToolCall:
		if b.Decision == journal.Allowed {
			s.markStarted(b.Call, startedEffect(b))
		}
	case journal.ToolResult:
		if b.Tool == "spawn_agent" || b.Tool == "spawn_agent_with_task" {
			s.hires++
		}
		s.grounded = true
		s.applyResult(model.CallResult{Call: b.Call, Tool: b.Tool, Content: b.Result})
	case journal.ToolError:
		s.applyResult(model.CallResult{Call: b.Call, Tool: b.Tool, Content: b.Result, IsError: true})
	case journal.ContextCompressed:
		s.applyCompression(b)
	case journal.TurnFailed:
		s.applyFailure(b)
	case journal.TaskRetried:
		s.applyRetry()
	}
}

func (s *state) addItem(item model.Item) {
	s.items = append(s.items, item)
	s.usage.add(item)
}

func (s *state) applyAnswer(b journal.ModelAnswered) {
	a := b.Answer
	s.addItem(model.Item{Answer: &a})
	s.answers++
	s.last = b
	if a.Tools != nil {
		s.tools = a.Tools
	}
	s.pending, s.started, s.refused = a.Calls, nil, refusedCall(&a)
	switch a.Finish {
	case model.FinishToolCalls:
		s.rounds++
		s.hasUnseen = false
	case model.FinishContinue, model.FinishRepair, model.FinishInvalid:
		s.rounds++
		s.hasUnseen = true
		if a.Finish == model.FinishContinue {
			s.repeated.observe(s.items)
		}
	case model.FinishPlan:
		s.rounds++
		s.hasUnseen = true
		s.plan.applyAnswer(&a)
	default: // the turn is over, unless there are messages the model has not read
		s.rounds, s.plan = 0, plan{}
		s.repeated.endTurn()
		s.hasUnseen = a.MessagesRead < s.messages
		if a.Finish.EndsTurn() {
			s.readUpTo, s.corrected, s.grounded = a.MessagesRead, false, false
		}
	}
}

// startedEffect returns the effect class of a call that was started. A call that has used an
// approval is never repeated, as if it were Mutating. The rules may be gone, and an approver
// may have set the arguments.
func startedEffect(b journal.ToolCall) tool.Effect {
	if b.Approval != "" {
		return tool.Mutating
	}
	return b.Effect
}

func (s *state) markStarted(id identity.CallID, effect tool.Effect) {
	if s.started == nil {
		s.started = map[identity.CallID]tool.Effect{}
	}
	s.started[id] = effect
}

// applyResult applies the result of a call.
func (s *state) applyResult(r model.CallResult) {
	s.addItem(model.Item{Result: &r})
	s.plan.applyResult(&r)
	rest := make([]model.Call, 0, len(s.pending))
	for _, c := range s.pending {
		if c.ID != r.Call {
			rest = append(rest, c)
		}
	}
	s.pending = rest
	delete(s.started, r.Call)
	if s.hasUnseen = len(rest) == 0; s.hasUnseen {
		s.repeated.observe(s.items)
	}
}

// applyFailure ends the turn. The messages read so far are done with, and open
// calls get the result that they were dropped.
func (s *state) applyFailure(b journal.TurnFailed) {
	s.readBeforeFailure = s.readUpTo
	s.readUpTo = s.messages
	if b.MessagesRead > 0 {
		s.readUpTo = b.MessagesRead
	}
	for _, c := range s.pending {
		s.addItem(model.Item{Result: s.droppedResult(c)})
	}
	end := model.Answer{Finish: model.FinishEnd, MessagesRead: s.readUpTo}
	s.addItem(model.Item{Answer: &end})
	s.answers++
	s.last = b
	s.pending, s.started = nil, nil
	s.hasUnseen, s.rounds, s.repeated, s.plan = s.readUpTo < s.messages, 0, repetition{}, plan{}
	s.corrected, s.grounded = false, false
}

// applyRetry undoes the failure with which the top agent ended its task: the model is asked
// again. The results of dropped calls stay. A failure with an item after it did not end the
// task, and stays.
func (s *state) applyRetry() {
	_, failed := s.last.(journal.TurnFailed)
	if !failed || s.items[len(s.items)-1].Answer == nil {
		return
	}
	s.items = s.items[:len(s.items)-1] // the answer that applyFailure added
	s.answers--
	s.readUpTo, s.hasUnseen, s.last = s.readBeforeFailure, true, nil
}

// droppedResult returns the result of a call whose turn ended before the call
// did.
func (s *state) droppedResult(c model.Call) *model.CallResult {
	err := errcode.New(errcode.TurnAborted, "%s was not called: the turn ended first", c.Name)
	if _, started := s.started[c.ID]; started {
		err = errcode.New(errcode.ToolInterrupted, "%s was started and the turn ended: it may or may not have taken effect; verify the effect before retrying", c.Name)
	}
	return &model.CallResult{Call: c.ID, Tool: c.Name, Content: tool.Failure(c.Name, err).JSON(), IsError: true}
}
