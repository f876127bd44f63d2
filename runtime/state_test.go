package runtime

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// A retry undoes a failure only while the answer of the failure is the last item.
func TestState_RetryUndoesLastFailure(t *testing.T) {
	message := journal.MessageReceived{}
	answer := journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishEnd, MessagesRead: 1}}
	failed := journal.TurnFailed{Code: errcode.LLMCallFailed}
	for _, c := range []struct {
		name   string
		bodies []journal.EventBody
		want   string // the items: m is a message, a an answer
	}{
		{"at once", []journal.EventBody{message, failed}, "m"},
		{"after events without an item", []journal.EventBody{message, failed, journal.BudgetWarning{}, journal.TaskEnded{}, journal.TaskPaused{}}, "m"},
		{"of a second failure", []journal.EventBody{message, failed, journal.TaskRetried{}, failed}, "m"},
		{"with messages left", []journal.EventBody{message, message, journal.TurnFailed{MessagesRead: 1}}, "mm"},
		{"after a message", []journal.EventBody{message, failed, message}, "mam"},
		{"after a message and a pause", []journal.EventBody{message, failed, message, journal.TaskPaused{}}, "mam"},
		{"a second retry", []journal.EventBody{message, failed, message, journal.TaskRetried{}}, "mam"},
		{"after an answer", []journal.EventBody{message, failed, message, answer}, "mama"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &state{}
			for _, body := range append(c.bodies, journal.TaskRetried{}) {
				s.apply(journal.Event{Body: body})
			}
			if got := itemKinds(s.items); got != c.want {
				t.Errorf("items %q, want %q", got, c.want)
			}
			if got := strings.Count(c.want, "a"); s.answers != got {
				t.Errorf("%d answers, want %d", s.answers, got)
			}
			if got := model.CountMessages(s.items); s.messages != got {
				t.Errorf("%d messages were received, and the items have %d", s.messages, got)
			}
			if s.next() != stepAsk {
				t.Errorf("the next step is %d, want %d", s.next(), stepAsk)
			}
		})
	}
}

// itemKinds returns one letter for each item.
func itemKinds(items []model.Item) string {
	var kinds strings.Builder
	for _, item := range items {
		switch {
		case item.Message != nil:
			kinds.WriteByte('m')
		case item.Answer != nil:
			kinds.WriteByte('a')
		default:
			kinds.WriteByte('r')
		}
	}
	return kinds.String()
}
