package chat_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// Only texts that every server reads count, and only their ASCII letters.
func TestLeastTokens_CountsLetters(t *testing.T) {
	words := strings.Repeat("abcd EFG ", 800) // 5,600 letters
	message := func(text, images string) model.Item {
		return model.Item{Message: &model.Message{Payload: json.RawMessage(`{"text":"` + text + `"` + images + `}`)}}
	}
	for _, c := range []struct {
		name    string
		request model.Request
		counted int
		want    int
	}{
		{"a system prompt", model.Request{System: words}, 100, 700},
		{"tools", model.Request{ToolJSON: []byte(words)}, 100, 700},
		{"a message", model.Request{Items: []model.Item{message(words, "")}}, 100, 700},
		{"a result", model.Request{Items: []model.Item{{Result: &model.CallResult{Content: json.RawMessage(`"` + words + `"`)}}}}, 100, 700},
		{"an answer", model.Request{Items: []model.Item{{Answer: &model.Answer{Text: words}}}}, 100, 700},
		{"a summary in place of the message", model.Request{Items: []model.Item{message(words, "")}, Compact: &model.ContextSummary{Text: words, Items: 1}}, 100, 700},
		{"as many as counted", model.Request{System: words}, 700, 0},
		{"reasoning", model.Request{Items: []model.Item{{Answer: &model.Answer{Reasoning: json.RawMessage(`"` + words + `"`)}}}}, 100, 0},
		{"a message with an image", model.Request{Items: []model.Item{message(words, `,"images":[{}]`)}}, 100, 0},
		{"white space, digits and other alphabets", model.Request{System: strings.Repeat(" 12\n--", 900) + strings.Repeat("слово ", 900)}, 100, 0},
	} {
		if got := chat.LeastTokens(c.request, c.counted); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}
