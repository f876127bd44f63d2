package gateway

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// spanEvents are the events of two agents, a second apart, from number 1 on.
func spanEvents() []journal.Event {
	at := time.Date(2027, 1, 2, 3, 4, 0, 0, time.UTC)
	calls := func(ids ...identity.CallID) journal.ModelAnswered {
		a := model.Answer{Model: "m"}
		for _, id := range ids {
			a.Calls = append(a.Calls, model.Call{ID: id})
		}
		return journal.ModelAnswered{Answer: a}
	}
	message := func(to string) journal.MessageSent { return journal.MessageSent{Message: model.Message{To: to}} }
	later := message("a")
	later.Due = at.Add(20 * time.Second).Format(time.RFC3339)
	var list []journal.Event
	for i, e := range []struct {
		agent identity.AgentID
		body  journal.EventBody
	}{
		{"a", journal.AgentSpawned{}},
		{"a", message("a")}, // it is asked already
		{"a", calls("1", "2")},
		{"a", journal.ToolCall{Call: "1", Tool: "one", Decision: journal.Allowed, Epoch: 3}},
		{"a", journal.ToolCall{Call: "2", Tool: "two", Decision: journal.Denied, Code: errcode.ToolNotAvailable, Reason: "r", Rule: "not granted"}},
		{"a", journal.ToolError{Call: "2", Tool: "two", Code: errcode.ToolNotAvailable}},
		{"b", journal.AgentSpawned{}},
		{"a", journal.ToolError{Call: "1", Tool: "one", Code: errcode.ToolUnavailable}},
		{"b", calls("3")},
		{"a", calls()},
		{"b", journal.ApprovalRequested{Call: "3", Tool: "pay", Approval: "x", Epoch: 4}},
		{"b", journal.ApprovalDecided{Call: "3", Approval: "x", Outcome: journal.ApprovalVoted}},
		{"b", journal.ApprovalDecided{Call: "3", Approval: "x", Outcome: journal.ApprovalGiven}},
		{"b", journal.ToolCall{Call: "3", Tool: "pay", Decision: journal.Allowed, Approval: "x"}},
		{"b", later},
		{"b", message("a")},
		{"b", journal.ToolResult{Call: "3", Tool: "pay"}},
		{"b", journal.TurnFailed{Code: errcode.Internal, Message: "m"}},
		{"b", message("b")},
		{"b", calls("4")},
		{"b", journal.ToolCall{Call: "4", Tool: "long", Decision: journal.Allowed}},
		{"a", calls()},
	} {
		list = append(list, journal.Event{Seq: uint64(i + 1), At: at.Add(time.Duration(i+1) * time.Second), Agent: e.agent, Body: e.body})
	}
	return list
}

// The spans of events are those that their times say.
func TestSpanFold_Spans(t *testing.T) {
	f := newSpanBuilder()
	for _, e := range spanEvents() {
		f.add(e)
	}
	type short struct {
		seq, parent uint64
		agent, name string
		from, to    int // seconds; to is -1 for none
		status      wire.SpanStatus
		code        errcode.Code
	}
	second := func(at time.Time) int {
		if at.IsZero() {
			return -1
		}
		return at.Second()
	}
	var got []short
	for _, s := range f.spans {
		got = append(got, short{s.Seq, s.Parent, string(s.Agent), s.Name, second(s.Start), second(s.End), s.Status, s.Code})
	}
	want := []short{
		{3, 0, "a", "m", 1, 3, wire.SpanOK, ""},
		{4, 3, "a", "one", 4, 8, wire.SpanFailed, errcode.ToolUnavailable},
		{5, 3, "a", "two", 5, 5, wire.SpanDenied, errcode.ToolNotAvailable},
		{9, 0, "b", "m", 7, 9, wire.SpanOK, ""},
		{10, 0, "a", "m", 8, 10, wire.SpanOK, ""},
		{11, 9, "b", "pay", 11, 13, wire.SpanOK, ""},
		{14, 9, "b", "pay", 14, 17, wire.SpanOK, ""},
		{18, 0, "b", "", 17, 18, wire.SpanFailed, errcode.Internal},
		{20, 0, "b", "m", 19, 20, wire.SpanOK, ""},
		{21, 20, "b", "long", 21, -1, wire.SpanUnfinished, ""},
		{22, 0, "a", "m", 16, 22, wire.SpanOK, ""},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(short{})); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

// Wherever a page begins, its spans are the same as those of the whole.
func TestSpanFold_SeedsPages(t *testing.T) {
	events, whole := spanEvents(), newSpanBuilder()
	for _, e := range events {
		whole.add(e)
	}
	for at := range events {
		f := newSpanBuilder()
		seed := spanSeed{f, map[identity.AgentID]bool{}}
		for i := at - 1; i >= 0; i-- {
			seed.add(events[i])
		}
		for _, e := range events[at:] {
			f.add(e)
		}
		if diff := cmp.Diff(whole.spans[len(whole.spans)-len(f.spans):], f.spans); diff != "" {
			t.Errorf("from event %d (-whole +page):\n%s", at+1, diff)
		}
	}
}
