package retry_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/retry"
)

// A server that counts far fewer tokens than the request has is noted once, before the
// answer.
func TestModel_NotesCutConversations(t *testing.T) {
	long := model.Request{System: strings.Repeat("word ", 10_000)} // about 10,000 tokens
	for _, c := range []struct {
		name    string
		request model.Request
		counted []int
		want    string // the number of the noted answer, or ""
	}{
		{"cut", long, []int{4096, 4096}, "1"},
		{"later", long, []int{10_005, 4096}, "2"},
		{"few letters in a token", long, []int{5001, 5001}, ""},
		{"not counted", long, []int{0, 0}, ""},
		{"short", model.Request{System: strings.Repeat("word ", 900)}, []int{20, 20}, ""},
	} {
		var stub stubModel
		for _, n := range c.counted {
			stub.attempts = append(stub.attempts, stubAttempt{deltas: []model.AnswerDelta{{Answer: &model.Answer{Text: "a", Finish: model.FinishEnd, Usage: model.TokenUsage{Input: n, Output: 1}}}}})
		}
		m, noted := retry.New(&stub, retry.Config{Name: "local"}), ""
		for i := range c.counted {
			answered := false
			for d, err := range m.Generate(t.Context(), c.request) {
				if err != nil || answered {
					t.Errorf("%s: %v, after the answer: %v", c.name, err, answered)
				}
				answered = d.Answer != nil
				if strings.HasPrefix(d.Note, `model "local" read 4096 tokens of a request of more than 5000: `) {
					noted += string(rune('1' + i))
				} else if d.Note != "" {
					t.Errorf("%s: %s", c.name, d.Note)
				}
			}
			if !answered {
				t.Errorf("%s: no answer", c.name)
			}
		}
		if noted != c.want {
			t.Errorf("%s: noted with %q, want %q", c.name, noted, c.want)
		}
	}
}
