package runtime

import (
	"context"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
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
	if window, ok := model.WindowOf(m); ok {
		return agentModel{m, window, true}, nil
	}
	return agentModel{m, assumedWindow, false}, nil
}

// generate requests an answer from the agent's model and adds what the journal
// records with it: workflow state, offered tools and call ids.
func (a *actor) generate(ctx context.Context) (*model.Answer, error) {
	m, err := a.agentModel()
	if err == nil && m.language {
		err = a.state.repetitionError()
	}
	if err != nil {
		return nil, err
	}
	x := &exchange{a: a, model: m}
	defer a.rt.deltas.begin(a.agent.Task, &x.live)()
	if err := x.prepare(ctx); err != nil {
		return nil, err
	}
	answer, err := x.send(ctx)
	if m.language && errcode.CodeOf(err) == errcode.ContextExceeded {
		answer, err = x.retryShorter(ctx, err)
	}
	if err != nil {
		return nil, err
	}
	return x.complete(ctx, answer)
}

// exchange is one request to an agent's model and its answer. Its methods are
// called in this order: prepare, send, retryShorter if the provider rejects the
// request as too long, complete.
type exchange struct {
	a     *actor
	model agentModel
	req   *turnRequest // replaced when the conversation is compressed

	live liveAnswer // the answer so far
}

// build builds the request from the agent's current state.
func (x *exchange) build(ctx context.Context) (err error) {
	x.req, err = x.a.buildRequest(ctx, x.model)
	return err
}

// tokens returns the length of the request.
func (x *exchange) tokens() int { return x.a.state.usage.with(x.req.Request) }

// windowLevel returns how much of the context window the request takes.
func (x *exchange) windowLevel() model.WindowLevel {
	return model.WindowUsage{Used: x.tokens(), Window: x.model.window}.Level()
}

// prepare builds a request that fits into the model's context window. It
// compresses a conversation that nearly fills the window. It rejects a
// conversation that is too long even then, since a provider would reject or
// truncate it.
func (x *exchange) prepare(ctx context.Context) error {
	if err := x.build(ctx); err != nil || !x.model.language {
		return err
	}
	if level := x.windowLevel(); level != model.WindowCritical && level != model.WindowExceeded {
		return nil
	}
	if _, err := x.compress(ctx); err != nil {
		return err
	}
	if x.windowLevel() == model.WindowExceeded {
		return errcode.New(errcode.ContextExceeded, "conversation has about %d tokens after compression and the model's context window is %d; divide the work among several agents, or use a model with a larger contextWindow", x.tokens(), x.model.window)
	}
	return nil
}

// send sends the request and publishes the answer's deltas.
func (x *exchange) send(ctx context.Context) (*model.Answer, error) {
	return x.sendWithinBudget(ctx, x.req.Request, x.publishDelta)
}

// retryShorter compresses the conversation and sends the request once more,
// after the provider has rejected it as too long although the estimate fitted.
// It returns rejection if there is nothing to compress.
func (x *exchange) retryShorter(ctx context.Context, rejection error) (*model.Answer, error) {
	shorter, err := x.compress(ctx)
	switch {
	case err != nil:
		return nil, err
	case !shorter:
		return nil, rejection
	}
	x.publishDelta(model.AnswerDelta{Restart: true})
	return x.send(ctx)
}

// complete adds what the journal records with an answer. An answer that cannot be used has
// the finish FinishRepair or FinishInvalid then.
func (x *exchange) complete(ctx context.Context, answer *model.Answer) (*model.Answer, error) {
	if x.model.language {
		answer.Calls = resolveToolNames(x.req.subject, answer.Calls)
	}
	if x.req.plan != nil {
		answer = x.req.checkAgainstPlan(answer)
	}
	if x.model.language {
		var err error
		if answer, err = x.repair(ctx, answer); err != nil {
			return nil, err
		}
		answer = x.withholdUngrounded(answer)
	}
	answer.State, answer.Tools = x.req.subject.State, nil
	if !slices.Equal(x.req.toolNames, x.a.state.tools) || x.a.state.answers == 0 {
		answer.Tools = x.req.toolNames
	}
	x.a.assignCallIDs(answer.Calls)
	return answer, nil
}

// compress lets the model summarize the older part of the conversation and
// rebuilds the request. Recent items stay, and a call is never separated from
// its results. It returns false if there is nothing older.
func (x *exchange) compress(ctx context.Context) (shorter bool, err error) {
	a := x.a
	cut := a.state.olderCount(recentTokens(chat.RequestTokens(x.req.Request), x.tokens(), x.model.window))
	if cut <= a.state.compressedCount() {
		return false, nil
	}
	answer, err := x.requestSummary(ctx, cut)
	if err != nil {
		return false, err
	}
	if ctx.Err() != nil { // a summary that arrives after the end of the turn is discarded
		return false, context.Cause(ctx)
	}
	err = a.commit(&journal.Batch{Events: []journal.Event{
		a.event(journal.ContextCompressed{Summary: answer.Text, Items: cut, Usage: answer.Usage, Model: answer.Model}),
	}})
	if err != nil {
		return false, err
	}
	return true, x.build(ctx)
}

// summaryRequest returns the request for a summary of the first items of the conversation. It
// begins as the agent's own requests do, so that the provider has cached most of it.
func (x *exchange) summaryRequest(items int) model.Request {
	r := x.req.Request
	r.Items = append(slices.Clone(r.Items[:items]), model.Item{Message: x.a.summaryMessage()})
	r.Note, r.NoCalls = summaryPrompt, true
	return r
}

// shortSummaryRequest returns r, a request for a summary, without what only serves the cache:
// the system prompt and the tools of the agent.
func shortSummaryRequest(r model.Request) model.Request {
	r.System, r.Note = summaryPrompt, ""
	r.Tools, r.ToolJSON = nil, nil
	return r
}

// requestSummary requests a summary of the first items of the conversation. Its deltas are not
// published, since it is not an answer. A request that is too long, or that the model answers
// with calls only, is replaced by the short one.
func (x *exchange) requestSummary(ctx context.Context, items int) (*model.Answer, error) {
	r := x.summaryRequest(items)
	var before model.TokenUsage
	if chat.RequestTokens(r) <= x.model.window {
		answer, err := x.sendWithinBudget(ctx, r, nil)
		switch {
		case err == nil && len(answer.Calls) > 0 && strings.TrimSpace(answer.Text) == "":
			before = answer.Usage
		case errcode.CodeOf(err) == errcode.ContextExceeded:
		default:
			return checkSummary(answer, err)
		}
	}
	r = shortSummaryRequest(r)
	if n := chat.RequestTokens(r); n > x.model.window {
		return nil, errcode.New(errcode.ContextExceeded, "summarize conversation: its older part has about %d tokens and the model's context window is %d; divide the work among several agents, or use a model with a larger contextWindow", n, x.model.window)
	}
	answer, err := checkSummary(x.sendWithinBudget(ctx, r, nil))
	if err == nil {
		answer.Usage = answer.Usage.Add(before)
	}
	return answer, err
}

// checkSummary returns a summary, or an error if the answer is not a summary.
func checkSummary(answer *model.Answer, err error) (*model.Answer, error) {
	switch {
	case err != nil:
		return nil, err
	case answer.Stop.Refused():
		return nil, errcode.New(errcode.LLMCallFailed, "summarize conversation: it is too long for the context window and the model refused to summarize it")
	case strings.TrimSpace(answer.Text) == "":
		return nil, errcode.New(errcode.LLMCallFailed, "summarize conversation: it is too long for the context window and the model returned an empty summary")
	}
	return answer, nil
}

// sendWithinBudget sends one request within the task's budget and waits until the disk has
// room for the answer; show may be nil.
func (x *exchange) sendWithinBudget(ctx context.Context, r model.Request, show func(model.AnswerDelta)) (*model.Answer, error) {
	answer, err := x.sendOnce(ctx, r, show)
	if err != nil {
		return nil, err
	}
	if err := x.a.hold.wait(ctx, x.a.receivedBytes()+answerBytes(answer)); err != nil {
		return nil, err
	}
	return answer, nil
}

// sendOnce sends one request within the task's budget.
func (x *exchange) sendOnce(ctx context.Context, r model.Request, show func(model.AnswerDelta)) (*model.Answer, error) {
	limit := x.a.rt.settings.Load().Limits.Calls
	if !x.model.language {
		if x.a.rt.org.PauseReason(x.a.agent.ID) != "" {
			return nil, errPausedByPerson
		}
		answer, err := collect(ctx, x.model, r, nil)
		if err == nil && len(answer.Calls) > limit { // a script waits for the results of all its calls
			return nil, errcode.New(errcode.LimitExceeded, "the script made %d calls at once, and at most %d may be made; make them in several steps", len(answer.Calls), limit)
		}
		return answer, err
	}
	need := x.a.state.usage.with(r)
	reserved, err := x.a.rt.reserve(ctx, x.a.agent, need)
	if err != nil {
		return nil, err
	}
	x.a.requests++
	answer, err := collect(ctx, x.model, r, show)
	if err != nil {
		reserved.release()
		return nil, err
	}
	limitCalls(answer, limit)
	if answer.Usage.Input == 0 {
		answer.Usage = model.TokenUsage{Input: need, Output: chat.ItemTokens(model.Item{Answer: answer}), Cost: answer.Usage.Cost, Currency: answer.Usage.Currency, Estimated: true}
	}
	reserved.spend(answer.Usage)
	return answer, nil
}
