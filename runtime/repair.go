package runtime

import (
	"context"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// Some answers of language models cannot be used as they are: they reached their maximum
// length, are empty, or are calls written as text. The answer is recorded with the finish
// FinishRepair, and the model is asked again. chat.BuildTurns adds the instruction for the
// model. The next answer takes its place. Each repair is tried once. After that
//
//   - an answer of maximum length is incomplete (Answer.Stop),
//   - any other is recorded with the finish FinishInvalid, and the turn fails.
//
// A call written as text is never made.

// repairs lists the repairs that were asked for since the last answer that could be used,
// newest first.
func (s *state) repairs() (asked []model.AnswerRepair) {
	for _, item := range slices.Backward(s.items) {
		switch {
		case item.Answer == nil:
		case item.Answer.Finish != model.FinishRepair:
			return asked
		default:
			asked = append(asked, item.Answer.Repair)
		}
	}
	return asked
}

// unfinishedText returns the text that the next answer continues, "" if there is none.
func (s *state) unfinishedText() string {
	for _, item := range slices.Backward(s.items) {
		if a := item.Answer; a != nil {
			if a.Finish == model.FinishRepair && a.Repair == model.RepairContinue {
				return a.Text
			}
			return ""
		}
	}
	return ""
}

// repair returns an answer that can be used, joined with the answer that it continues. Else
// it returns an answer with the finish FinishRepair or FinishInvalid. An empty answer of an
// agent that will get a message waits for it.
func (x *exchange) repair(ctx context.Context, answer *model.Answer) (*model.Answer, error) {
	if answer.Finish != model.FinishEnd || answer.Value != nil {
		return answer, nil
	}
	own := *answer
	own.Text = x.a.state.unfinishedText() + own.Text
	need := x.neededRepair(&own)
	if need == model.RepairAnswer {
		switch expects, err := x.a.expectsMessage(ctx); {
		case err != nil:
			return nil, err
		case expects:
			own.Finish = model.FinishWait
			return &own, nil
		}
	}
	switch {
	case need == "":
	case !slices.Contains(x.a.state.repairs(), need):
		own.Finish, own.Repair = model.FinishRepair, need
	case need != model.RepairContinue:
		own.Finish, own.Repair = model.FinishInvalid, need
	}
	return &own, nil
}

// neededRepair returns what the model must be asked for before its final answer can be used,
// "" for nothing.
func (x *exchange) neededRepair(answer *model.Answer) model.AnswerRepair {
	switch {
	case answer.Stop.Refused():
		return ""
	case strings.TrimSpace(answer.Text) == "":
		return model.RepairAnswer
	case answer.Stop == model.Length:
		return model.RepairContinue
	case !x.req.NoCalls && writtenCall(answer.Text, x.req.Tools) != "" && !x.a.fitsSchema(answer):
		return model.RepairCall
	}
	return ""
}

// fitsSchema reports whether a final answer is the typed result that its agent must return.
func (a *actor) fitsSchema(answer *model.Answer) bool {
	schema := a.rt.resultSchema(a.agent)
	if schema == nil {
		return false
	}
	_, err := typedResult(schema, resultOf(*answer))
	return err == nil
}

// expectsMessage reports whether the agent will get a message: one waits for it or is delayed,
// or an agent below it has work. A commit that ends that work sends the message, so both
// are read from the store.
func (a *actor) expectsMessage(ctx context.Context) (bool, error) {
	runnable, err := a.rt.runnableAgents(ctx)
	if err != nil {
		return false, err
	}
	inbox, err := a.rt.store.ReadInbox(ctx, a.agent.ID)
	if err != nil || len(inbox) > len(a.inboxSeqs) || a.rt.tracker.delayedCount(a.task) > 0 {
		return err == nil, err
	}
	below := a.rt.org.AgentTree(a.agent.ID)
	return slices.ContainsFunc(runnable, func(id identity.AgentID) bool {
		return id != a.agent.ID && slices.Contains(below, id)
	}), nil
}

// recordUnusable records an answer that cannot be used. The turn fails if its repair did not
// help. A crash between the two commits lets the model be asked again.
func (a *actor) recordUnusable(answer *model.Answer) error {
	err := a.commit(&journal.Batch{Events: []journal.Event{a.event(journal.ModelAnswered{Answer: *answer})}})
	if err != nil || answer.Finish == model.FinishRepair {
		return err
	}
	return a.fail(invalidAnswer(answer))
}

// invalidAnswer returns the error for an answer that cannot be used.
func invalidAnswer(answer *model.Answer) error {
	switch {
	case answer.Repair == model.RepairCall:
		return errcode.New(errcode.InvalidAnswer, "model %q wrote a call as text, was told to call the tool, and did so again; use a model that supports tools", answer.Model)
	case answer.Reasoning != nil:
		return errcode.New(errcode.InvalidAnswer, "model %q returned thinking without an answer, was asked again, and returned no answer; raise its maxTokens or use another model", answer.Model)
	}
	return errcode.New(errcode.InvalidAnswer, "model %q returned an empty answer, was asked again, and returned another one", answer.Model)
}
