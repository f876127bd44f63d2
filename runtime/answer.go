package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// collect reads a model's stream to its end and passes each delta to show,
// unless show is nil. Panics and malformed answers of the model are returned as
// errors.
func collect(ctx context.Context, m model.Model, r model.Request, show func(model.AnswerDelta)) (answer *model.Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			answer, err = nil, failedCall(fmt.Errorf("model panicked: %v\n%s", p, debug.Stack()))
		}
	}()
	for delta, err := range m.Generate(ctx, r) {
		if err != nil {
			return nil, failedCall(err)
		}
		if delta.Answer != nil {
			answer = delta.Answer
		} else if show != nil && ctx.Err() == nil { // deltas after the end of the turn are discarded
			show(delta)
		}
	}
	switch {
	case answer == nil:
		return nil, errcode.New(errcode.LLMCallFailed, "model returned no answer")
	case answer.Finish.SetByRuntime():
		return nil, errcode.New(errcode.LLMCallFailed, "model answer has the finish %q, which is reserved for the runtime", answer.Finish)
	case answer.Reasoning != nil && !canStore(answer.Reasoning):
		return nil, errcode.New(errcode.LLMCallFailed, "reasoning of the model answer is not valid JSON or nested too deeply")
	case answer.Value != nil && !canStore(answer.Value):
		return nil, errcode.New(errcode.LLMCallFailed, "value of the model answer is not valid JSON or nested too deeply")
	}
	own := *answer
	own.Text, own.Value, own.Reasoning = chat.CleanText(own.Text), normalizeJSON(own.Value), normalizeJSON(own.Reasoning)
	own.Plan, own.PlanError, own.Repair, own.Withheld = nil, "", "", false // set by the runtime only
	own.Usage, own.Model = own.Usage.Clamp(), textutil.Truncate(chat.CleanText(own.Model), maxName)
	if sent := model.CountMessages(r.Items); own.MessagesRead <= 0 || own.MessagesRead > sent {
		own.MessagesRead = sent
	}
	own.Calls, own.DroppedCalls = slices.Clone(answer.Calls), 0
	return &own, nil
}

// limitCalls drops the calls of an answer beyond limit. The first of them stays, so that
// the model reads why it is denied.
func limitCalls(answer *model.Answer, limit int) {
	if n := len(answer.Calls); n > limit {
		answer.Calls, answer.DroppedCalls = answer.Calls[:limit+1], n-limit
	}
}

// refused is a call that is denied because its answer had too many calls.
type refused struct {
	id     identity.CallID
	reason error
}

// refusedCall returns the call of an answer that is denied, nil if none was dropped.
func refusedCall(a *model.Answer) *refused {
	n := len(a.Calls)
	if a.DroppedCalls == 0 || n == 0 {
		return nil
	}
	return &refused{a.Calls[n-1].ID, errcode.New(errcode.LimitExceeded,
		"the answer had %d calls, and one answer may have %d; %d were dropped: make them in later answers", n-1+a.DroppedCalls, n-1, a.DroppedCalls)}
}

// failedCall returns err as a failure of the model, unless it has an error code
// already.
func failedCall(err error) error {
	if errcode.CodeOf(err) != errcode.Internal {
		return err
	}
	return errcode.Wrap(errcode.LLMCallFailed, err, "model request failed; see the log")
}

// assignCallIDs sets the ids of calls, derived from the step, and makes names
// and arguments fit to be recorded.
func (a *actor) assignCallIDs(calls []model.Call) {
	now := a.rt.now()
	for i := range calls {
		c := &calls[i]
		c.ID = identity.CallID(identity.DeriveIDAt(now, string(a.agent.ID), strconv.Itoa(a.state.answers), strconv.Itoa(i)))
		switch {
		case len(c.Args) == 0:
			c.Args = json.RawMessage(`{}`)
		case !canStore(c.Args): // quoted, so that the record is valid JSON and the gate rejects it
			c.Args, _ = json.Marshal(string(c.Args))
		default:
			c.Args = normalizeJSON(c.Args)
		}
		c.Name, c.Provider = textutil.Truncate(chat.CleanText(c.Name), maxName), chat.CleanText(c.Provider)
		if len(c.Provider) > maxName { // the call goes by our id instead
			c.Provider = ""
		}
	}
}
