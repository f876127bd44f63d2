package runtime

import (
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// cutCall is the last call of an answer that was cut off at its limit, so that its arguments
// may have ended early. The zero cutCall is for other answers.
type cutCall struct {
	id     identity.CallID
	tokens int // of the answer
}

// cutCall returns the cut call of an answer. With a nil answer it uses the last recorded answer.
func (a *actor) cutCall(answer *model.Answer) cutCall {
	if answer == nil {
		last, ok := a.state.last.(journal.ModelAnswered)
		if !ok {
			return cutCall{}
		}
		answer = &last.Answer
	}
	n := len(answer.Calls)
	if answer.Stop != model.Length || n == 0 {
		return cutCall{}
	}
	return cutCall{answer.Calls[n-1].ID, max(1, answer.Usage.Output)}
}
