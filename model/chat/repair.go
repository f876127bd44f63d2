package chat

import (
	"strings"

	"github.com/rolecall/rolecall/model"
)

// repairRequests is what a model is told about an answer that cannot be used.
var repairRequests = map[model.AnswerRepair]string{
	model.RepairContinue: "Your answer was cut at its maximum length. Continue exactly where it stops. Repeat nothing.",
	model.RepairCall:     "Your answer holds a call written as text, which calls nothing. Call the tool instead.",
	model.RepairAnswer:   "Your answer was empty. Answer in words, or call a tool.",
}

// addUnusable adds an answer that cannot be used, with the request for another answer. It
// does so until next has come, which takes its place. An answer that is not part of next
// stays, if it is only the beginning of one.
func (b *builder) addUnusable(a, next *model.Answer) {
	superseded := next != nil && (a.Repair != model.RepairContinue || strings.HasPrefix(next.Text, a.Text))
	if a.Finish == model.FinishInvalid || superseded {
		return
	}
	if strings.TrimSpace(a.Text) != "" {
		b.addAnswer(a)
	}
	b.addUser(Turn{Text: repairRequests[a.Repair]})
}

// nextAnswer returns the first answer among items, nil if there is none.
func nextAnswer(items []model.Item) *model.Answer {
	for _, item := range items {
		if item.Answer != nil {
			return item.Answer
		}
	}
	return nil
}
