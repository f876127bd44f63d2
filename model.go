package rolecall

import (
	"context"
	"iter"

	"github.com/rolecall/rolecall/model"
)

// ModelFunc is a function that answers for agents, as a Model. It must be safe for
// concurrent use. An answer without a Finish makes its Calls, or ends the turn if it has
// none. An error, or a panic, fails the turn of the agent that asked. Agents and callers do not
// read what it says, unless it has a code of package errcode: Options.Log receives it.
type ModelFunc func(ctx context.Context, r ModelRequest) (ModelAnswer, error)

// Generate implements Model.
func (f ModelFunc) Generate(ctx context.Context, r ModelRequest) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		answer, err := f(ctx, r)
		if err != nil {
			yield(model.AnswerDelta{}, err)
			return
		}
		if answer.Finish == "" {
			answer.Finish = FinishEnd
			if len(answer.Calls) > 0 {
				answer.Finish = FinishToolCalls
			}
		}
		yield(model.AnswerDelta{Answer: &answer}, nil)
	}
}
