package runtime

import (
	"context"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/tool"
)

// loggedInput is an InputSource whose questions and answers are on record. event makes the events
// of one call from their bodies.
type loggedInput struct {
	tool.InputSource
	rt     *Runtime
	caller string // as in journal.ToolCall
	event  func(journal.EventBody) journal.Event
}

// withLoggedInput returns a context in which calls ask source, on record.
func (rt *Runtime) withLoggedInput(ctx context.Context, source tool.InputSource, caller string, event func(journal.EventBody) journal.Event) context.Context {
	if source == nil {
		return ctx
	}
	return tool.WithInput(ctx, &loggedInput{source, rt, caller, event})
}

// RequestInput implements tool.InputSource.
func (l *loggedInput) RequestInput(ctx context.Context, round tool.InputRound) ([]tool.InputResponse, error) {
	round.Log = &questionLog{l, round.Call.ID, round.Call.Name}
	return l.InputSource.RequestInput(ctx, round)
}

// questionLog is the tool.InputLog of one round.
type questionLog struct {
	input *loggedInput
	call  identity.CallID
	tool  string
}

// maxLoggedText is how many bytes of a request to a model are on record.
const maxLoggedText = 1 << 10

// InputAsked implements tool.InputLog.
func (l *questionLog) InputAsked(r tool.InputRequest, id string, until time.Time) error {
	e := journal.QuestionAsked{Call: l.call, Tool: l.tool, Question: r.Name, ID: id, Kind: r.Kind(), Until: until.UTC(), Caller: l.input.caller}
	switch {
	case r.Question != nil:
		e.Server, e.Message, e.URL, e.Schema = r.Question.Server, r.Question.Message, r.Question.URL, normalizeJSON(r.Question.Schema)
	case r.Model != nil:
		e.Message = textutil.Truncate(r.Model.Messages[len(r.Model.Messages)-1].Text, maxLoggedText)
	}
	return l.commit(e)
}

// InputAnswered implements tool.InputLog.
func (l *questionLog) InputAnswered(r tool.InputRequest, got tool.InputResponse, by, reason string) error {
	e := journal.QuestionAnswered{Call: l.call, Tool: l.tool, Question: r.Name, Action: tool.Accept, By: by, Reason: reason, Caller: l.input.caller}
	if got.Answer != nil {
		e.Action, e.Content = got.Answer.Action, normalizeJSON(got.Answer.Content)
	}
	return l.commit(e)
}

// commit records one event in the record of the organization. The journal of an agent has only
// one writer, which waits for the call.
func (l *questionLog) commit(body journal.EventBody) error {
	_, err := l.input.rt.flushAndCommit(&journal.Batch{Events: []journal.Event{l.input.event(body)}})
	return err
}
