package runtime

import (
	"context"
	"encoding/json"
	"errors"
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

// agentModel is an agent's model and the size of its context window.
type agentModel struct {
	model.Model
	window   int  // tokens
	language bool // a language model, which can also be prompted to plan or to summarize
}

// agentModel returns the agent's model.
func (a *actor) agentModel() (agentModel, error) {
	m, err := a.rt.modelOf(a.agent)
	if err != nil {
		return agentModel{}, err
	}
	if window, ok := model.Window(m); ok {
		return agentModel{m, window, true}, nil
	}
	return agentModel{m, contextWindow, false}, nil
}

// generate requests an answer from the agent's model and adds what the journal
// records with it: workflow state, offered tools and call ids.
func (a *actor) generate(ctx context.Context) (*model.Answer, error) {
	m, err := a.agentModel()
	if err == nil && m.language {
		err = a.state.repeated.limitError()
	}
	if err != nil {
		return nil, err
	}
	req, err := a.requestWithinWindow(ctx, m)
	if err != nil {
		return nil, err
	}
	req, answer, err := a.answer(ctx, m, req)
	if err != nil {
		return nil, err
	}
	if req.plan != nil {
		answer = req.checkAgainstPlan(answer)
	}
	answer.State, answer.Tools = req.subject.State, nil
	if !slices.Equal(req.toolNames, a.state.tools) || a.state.answers == 0 {
		answer.Tools = req.toolNames
	}
	a.assignCallIDs(answer.Calls)
	return answer, nil
}

// answer sends a request. If the provider rejects it as too long although the
// estimate fitted, the conversation is compressed and the request sent once
// more.
func (a *actor) answer(ctx context.Context, m agentModel, req *turnRequest) (*turnRequest, *model.Answer, error) {
	answer, err := a.generateOnce(ctx, m, req.Request, a.publishDelta)
	if !m.language || errcode.Of(err) != errcode.ContextExceeded {
		return req, answer, err
	}
	shorter, failure := a.compress(ctx, m, req)
	switch {
	case failure != nil:
		return req, nil, failure
	case shorter == req:
		return req, nil, err
	}
	a.publishDelta(model.Delta{Restart: true})
	answer, err = a.generateOnce(ctx, m, shorter.Request, a.publishDelta)
	return shorter, answer, err
}

// generateOnce sends one request within the task's budget; show may be nil.
func (a *actor) generateOnce(ctx context.Context, m agentModel, r model.Request, show func(model.Delta)) (*model.Answer, error) {
	if !m.language {
		return collect(ctx, m, r, nil)
	}
	need := a.state.usage.with(r)
	reserved, err := a.rt.reserve(ctx, a.task, need)
	if err != nil {
		return nil, err
	}
	answer, err := collect(ctx, m, r, show)
	if err != nil {
		reserved.release()
		return nil, err
	}
	if answer.Usage.Input == 0 {
		answer.Usage = model.Usage{Input: need, Output: chat.Tokens(model.Item{Answer: answer}), Cost: answer.Usage.Cost, Estimated: true}
	}
	reserved.spend(answer.Usage)
	return answer, nil
}

// assignCallIDs sets the ids of calls, derived from the step, and makes names
// and arguments fit to be recorded.
func (a *actor) assignCallIDs(calls []model.Call) {
	now := a.rt.now()
	for i := range calls {
		c := &calls[i]
		c.ID = identity.CallID(identity.DeriveAt(now, string(a.agent.ID), strconv.Itoa(a.state.answers), strconv.Itoa(i)))
		switch {
		case len(c.Args) == 0:
			c.Args = json.RawMessage(`{}`)
		case !canStore(c.Args): // quoted, so that the record is valid JSON and the gate rejects it
			c.Args, _ = json.Marshal(string(c.Args))
		default:
			c.Args = normalizeJSON(c.Args)
		}
		c.Name, c.Provider = textutil.Truncate(chat.Clean(c.Name), maxName), chat.Clean(c.Provider)
		if len(c.Provider) > maxName { // the call goes by our id instead
			c.Provider = ""
		}
	}
}

// collect reads a model's stream to its end and passes each delta to show,
// unless show is nil. Panics and malformed answers of the model are returned as
// errors.
func collect(ctx context.Context, m model.Model, r model.Request, show func(model.Delta)) (answer *model.Answer, err error) {
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
	case answer.Finish == model.FinishPlan:
		return nil, errcode.New(errcode.LLMCallFailed, "model answer has the finish %q, which is reserved for the runtime", answer.Finish)
	case answer.Reasoning != nil && !canStore(answer.Reasoning):
		return nil, errcode.New(errcode.LLMCallFailed, "reasoning of the model answer is not valid JSON or nested too deeply")
	case answer.Value != nil && !canStore(answer.Value):
		return nil, errcode.New(errcode.LLMCallFailed, "value of the model answer is not valid JSON or nested too deeply")
	}
	own := *answer
	own.Text, own.Value, own.Reasoning = chat.Clean(own.Text), normalizeJSON(own.Value), normalizeJSON(own.Reasoning)
	own.Plan, own.PlanError = nil, "" // set by the runtime only
	own.Usage = own.Usage.Clamp()
	own.Calls = slices.Clone(answer.Calls)
	return &own, nil
}

// failedCall returns err as a failure of the model, unless it has an error code
// already.
func failedCall(err error) error {
	if errcode.Of(err) != errcode.Internal {
		return err
	}
	return errcode.Wrap(errcode.LLMCallFailed, err, "model request failed; see the log")
}

// messagesRead returns how many messages the model had read when it failed, if
// the error's detail "read" has that number (the script model sets it). It
// returns 0, which means all messages, if there is no such detail or if the
// turn read nothing new: otherwise the agent would fail on the same message
// forever.
func (a *actor) messagesRead(cause error) int {
	if e, ok := errors.AsType[*errcode.Error](cause); ok {
		if read, ok := e.Details["read"].(int); ok && read > a.state.readUpTo {
			return read
		}
	}
	return 0
}

// errorPayload returns the payload of the error message that a parent receives.
func (a *actor) errorPayload(cause error) []byte {
	var original string
	for _, item := range slices.Backward(a.state.items) {
		if item.Message != nil {
			original = item.Message.ID
			break
		}
	}
	payload, _ := json.Marshal(map[string]any{ // strings and times always marshal
		"kind": "error", "errorType": errcode.Of(cause), "message": errcode.Message(cause),
		"agentId": a.agent.ID, "originalMessageId": original, "taskId": a.agent.Task, "timestamp": a.rt.now(),
	})
	return payload
}

// textPayload returns the message payload {"text": text}.
func textPayload(text string) json.RawMessage {
	payload, _ := json.Marshal(struct {
		Text string `json:"text"`
	}{text}) // a string always marshals
	return payload
}
