package gateway

import (
	"time"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// spanBuilder makes spans of the events of a task.
type spanBuilder struct {
	spans   []*wire.Span                   // in the order of their numbers
	asked   map[identity.AgentID]time.Time // when the models of agents were asked; agents that wait are not in it
	answers map[identity.CallID]uint64     // the answers that asked for calls which have not begun
	open    map[string]*wire.Span          // calls by their id, waits by the id of the request
}

func newSpanBuilder() *spanBuilder {
	return &spanBuilder{asked: map[identity.AgentID]time.Time{}, answers: map[identity.CallID]uint64{}, open: map[string]*wire.Span{}}
}

// add adds an event, the oldest first.
func (f *spanBuilder) add(e journal.Event) {
	switch b := e.Body.(type) {
	case journal.AgentSpawned:
		f.asked[e.Agent] = e.At
	case journal.MessageSent:
		f.ask(identity.AgentID(b.Message.To), deliveryTime(e, b))
	case journal.ModelAnswered:
		s := f.addAnswer(e)
		s.Name, s.Usage = b.Answer.Model, b.Answer.Usage
		for _, c := range b.Answer.Calls {
			f.answers[c.ID] = e.Seq
		}
	case journal.TurnFailed:
		s := f.addAnswer(e)
		s.Status, s.Code, s.Reason = wire.SpanFailed, b.Code, b.Message
	case journal.ApprovalRequested:
		s := f.begin(e, wire.ApprovalSpan, b.Call, b.Tool)
		s.Approval, s.Epoch, s.Parent = b.Approval, b.Epoch, f.answers[b.Call]
		f.open[b.Approval] = s
	case journal.ToolCall:
		f.addCall(e, b)
	}
	f.end(e)
}

// ask records that the model of an agent is asked at a time, unless it was asked before.
func (f *spanBuilder) ask(agent identity.AgentID, at time.Time) {
	if asked, known := f.asked[agent]; !known || at.Before(asked) {
		f.asked[agent] = at
	}
}

// addAnswer adds the span that ends with an answer. Its agent waits then.
func (f *spanBuilder) addAnswer(e journal.Event) *wire.Span {
	s := f.begin(e, wire.ModelSpan, "", "")
	if asked, known := f.asked[e.Agent]; known && asked.Before(e.At) {
		s.Start = asked
	}
	s.Status, s.End = wire.SpanOK, e.At
	delete(f.asked, e.Agent)
	return s
}

// addCall adds a call. One that is denied has ended.
func (f *spanBuilder) addCall(e journal.Event, b journal.ToolCall) {
	s := f.begin(e, wire.ToolSpan, b.Call, b.Tool)
	s.Approval, s.Code, s.Reason, s.Rule, s.Group, s.Epoch, s.Parent = b.Approval, b.Code, b.Reason, b.Rule, b.Group, b.Epoch, f.answers[b.Call]
	delete(f.answers, b.Call)
	if b.Decision == journal.Allowed {
		f.open[string(b.Call)] = s
		return
	}
	s.Status, s.End = wire.SpanDenied, e.At
}

// begin adds an unfinished span.
func (f *spanBuilder) begin(e journal.Event, kind wire.SpanKind, call identity.CallID, name string) *wire.Span {
	s := &wire.Span{Seq: e.Seq, Kind: kind, Status: wire.SpanUnfinished, Agent: e.Agent, Role: e.Role, Name: name, Start: e.At, Call: call}
	f.spans = append(f.spans, s)
	return s
}

// end ends the span that an event is the end of. An event after a call asks the model of its agent again.
func (f *spanBuilder) end(e journal.Event) {
	switch b := e.Body.(type) {
	case journal.ToolResult:
		f.finish(string(b.Call), e, wire.SpanOK)
		f.asked[e.Agent] = e.At
	case journal.ToolError:
		if s := f.finish(string(b.Call), e, wire.SpanFailed); s != nil {
			s.Code = b.Code
		}
		f.asked[e.Agent] = e.At
	case journal.ApprovalDecided:
		status, ends := approvalStatus[b.Outcome]
		if !ends {
			return
		}
		if s := f.finish(b.Approval, e, status); s != nil {
			s.Reason = b.Reason
		}
	}
}

// approvalStatus has the statuses of waits by the outcomes that end them.
var approvalStatus = map[string]wire.SpanStatus{
	journal.ApprovalGiven: wire.SpanOK, journal.ApprovalUsed: wire.SpanOK, journal.ApprovalRefused: wire.SpanDenied, journal.ApprovalExpired: wire.SpanDenied,
	journal.ApprovalVoid: wire.SpanFailed,
}

// finish ends an open span and returns it, nil if it is not open.
func (f *spanBuilder) finish(key string, e journal.Event, status wire.SpanStatus) *wire.Span {
	s := f.open[key]
	if s != nil {
		s.End, s.Status = e.At, status
		delete(f.open, key)
	}
	return s
}

// spanSeed learns from the events before a page, the newest first, what a spanBuilder knows there.
type spanSeed struct {
	*spanBuilder
	settled map[identity.AgentID]bool // agents of which earlier events tell nothing more
}

// add adds an earlier event.
func (s spanSeed) add(e journal.Event) {
	switch b := e.Body.(type) {
	case journal.MessageSent:
		if to := identity.AgentID(b.Message.To); !s.settled[to] {
			s.ask(to, deliveryTime(e, b))
		}
	case journal.AgentSpawned, journal.ToolResult, journal.ToolError:
		if !s.settled[e.Agent] {
			s.asked[e.Agent], s.settled[e.Agent] = e.At, true
		}
	case journal.ModelAnswered:
		s.settled[e.Agent] = true
		for _, c := range b.Answer.Calls {
			s.answers[c.ID] = e.Seq
		}
	case journal.TurnFailed:
		s.settled[e.Agent] = true
	}
}

// deliveryTime returns when a message is delivered.
func deliveryTime(e journal.Event, b journal.MessageSent) time.Time {
	if due, err := time.Parse(time.RFC3339, b.Due); err == nil && due.After(e.At) {
		return due
	}
	return e.At
}
