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
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// agentModel is an agent's model and how much it can read at once.
type agentModel struct {
	model.Model
	window   int  // tokens
	language bool // it reads words, and can be asked for some
}

// agentModel finds the agent's model.
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

// generate asks the agent's model and completes the answer with what the
// record needs.
func (a *actor) generate(ctx context.Context) (*model.Answer, error) {
	t, err := a.agentModel()
	if err == nil && t.language {
		err = a.state.repeated.limitError()
	}
	if err != nil {
		return nil, err
	}
	q, err := a.requestWithinWindow(ctx, t)
	if err != nil {
		return nil, err
	}
	q, answer, err := a.answer(ctx, t, q)
	if err != nil {
		return nil, err
	}
	if q.plan != nil {
		answer = q.checkAgainstPlan(answer)
	}
	answer.State, answer.Tools = q.seat.State, nil
	if !slices.Equal(q.toolNames, a.state.tools) || a.state.answers == 0 {
		answer.Tools = q.toolNames
	}
	a.assignCallIDs(answer.Calls)
	return answer, nil
}

// answer asks a question. One that the provider finds too long, since it counts
// otherwise than the estimate, is asked once more when it could be compressed.
func (a *actor) answer(ctx context.Context, t agentModel, q *turnRequest) (*turnRequest, *model.Answer, error) {
	answer, err := a.generateOnce(ctx, t, q.Request, a.publishDelta)
	if !t.language || errcode.Of(err) != errcode.ContextExceeded {
		return q, answer, err
	}
	shorter, failure := a.compress(ctx, t, q)
	switch {
	case failure != nil:
		return q, nil, failure
	case shorter == q:
		return q, nil, err
	}
	a.publishDelta(model.Delta{Restart: true})
	answer, err = a.generateOnce(ctx, t, shorter.Request, a.publishDelta)
	return shorter, answer, err
}

// generateOnce asks once, within the task's budget; show may be nil.
func (a *actor) generateOnce(ctx context.Context, t agentModel, r model.Request, show func(model.Delta)) (*model.Answer, error) {
	if !t.language {
		return collect(ctx, t, r, nil)
	}
	need := a.state.usage.with(r)
	reserved, err := a.rt.reserve(ctx, a.task, need)
	if err != nil {
		return nil, err
	}
	answer, err := collect(ctx, t, r, show)
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

// assignCallIDs gives calls their ids, which the answer's record keeps.
func (a *actor) assignCallIDs(calls []model.Call) {
	now := a.rt.now()
	for i := range calls {
		c := &calls[i]
		c.ID = identity.CallID(identity.DeriveAt(now, string(a.agent.ID), strconv.Itoa(a.state.answers), strconv.Itoa(i)))
		switch {
		case len(c.Args) == 0:
			c.Args = json.RawMessage(`{}`)
		case !canStore(c.Args): // quoted, so that the record stays JSON and the gate refuses it
			c.Args, _ = json.Marshal(string(c.Args))
		default:
			c.Args = normalizeJSON(c.Args)
		}
		c.Name, c.Provider = short(chat.Clean(c.Name), maxName), chat.Clean(c.Provider)
		if len(c.Provider) > maxName { // it goes by ours
			c.Provider = ""
		}
	}
}

// collect reads a model's answer to its end and shows what comes, unless show
// is nil. What the model breaks is its failure.
func collect(ctx context.Context, m model.Model, r model.Request, show func(model.Delta)) (answer *model.Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			answer, err = nil, failedCall(fmt.Errorf("the model panicked: %v\n%s", p, debug.Stack()))
		}
	}()
	for delta, err := range m.Generate(ctx, r) {
		if err != nil {
			return nil, failedCall(err)
		}
		if delta.Answer != nil {
			answer = delta.Answer
		} else if show != nil && ctx.Err() == nil { // what comes after the end of the turn is discarded
			show(delta)
		}
	}
	switch {
	case answer == nil:
		return nil, errcode.New(errcode.LLMCallFailed, "the model gave no answer")
	case answer.Finish == model.FinishPlan:
		return nil, errcode.New(errcode.LLMCallFailed, "the model's answer ends in %q, which only the runtime says", answer.Finish)
	case answer.Reasoning != nil && !canStore(answer.Reasoning):
		return nil, errcode.New(errcode.LLMCallFailed, "the reasoning of the model's answer is not JSON, or nested too deep")
	case answer.Value != nil && !canStore(answer.Value):
		return nil, errcode.New(errcode.LLMCallFailed, "the value of the model's answer is not JSON, or nested too deep")
	}
	own := *answer
	own.Text, own.Value, own.Reasoning = chat.Clean(own.Text), normalizeJSON(own.Value), normalizeJSON(own.Reasoning)
	own.Plan, own.PlanError = nil, "" // which the runtime finds out
	own.Usage = own.Usage.Clamp()
	own.Calls = slices.Clone(answer.Calls)
	return &own, nil
}

func failedCall(err error) error {
	if errcode.Of(err) != errcode.Internal {
		return err
	}
	return errcode.Wrap(errcode.LLMCallFailed, err, "the model could not be asked; the log has the cause")
}

// messagesRead gives how many messages a model had read when it failed, if it says
// so in the detail read (script does). A turn that read nothing new would fail
// for ever: then, as when nothing is said, it is 0, all.
func (a *actor) messagesRead(cause error) int {
	if e, ok := errors.AsType[*errcode.Error](cause); ok {
		if read, ok := e.Details["read"].(int); ok && read > a.state.readUpTo {
			return read
		}
	}
	return 0
}

// errorPayload is the error message a parent gets.
func (a *actor) errorPayload(cause error) []byte {
	var original string
	for _, item := range slices.Backward(a.state.items) {
		if item.Message != nil {
			original = item.Message.ID
			break
		}
	}
	payload, _ := json.Marshal(map[string]any{ // strings and a time always marshal
		"kind": "error", "errorType": errcode.Of(cause), "message": errcode.Message(cause),
		"agentId": a.agent.ID, "originalMessageId": original, "taskId": a.agent.Task, "timestamp": a.rt.now(),
	})
	return payload
}

func textPayload(text string) json.RawMessage {
	payload, _ := json.Marshal(struct {
		Text string `json:"text"`
	}{text}) // a string always marshals
	return payload
}
