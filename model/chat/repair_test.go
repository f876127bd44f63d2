package chat_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

func TestTurns_UnusableAnswers(t *testing.T) {
	repair := func(r model.AnswerRepair, text string) model.Item {
		return answer(model.Answer{Finish: model.FinishRepair, Repair: r, Text: text})
	}
	end := func(text string) model.Item { return answer(model.Answer{Finish: model.FinishEnd, Text: text}) }
	const goOn = "user: Your answer was cut at its maximum length. Continue exactly where it stops. Repeat nothing."
	for _, c := range []struct {
		name  string
		items []model.Item
		want  []string
	}{
		{"cut", []model.Item{user("x"), repair(model.RepairContinue, "one, ")}, []string{"user: x", "assistant: one, ", goOn}},
		{"cut, then a message", []model.Item{user("x"), repair(model.RepairContinue, "one, "), user("y")}, []string{"user: x", "assistant: one, ", goOn + "\n\ny"}},
		{"continued", []model.Item{user("x"), repair(model.RepairContinue, "one, "), end("one, two")}, []string{"user: x", "assistant: one, two", "user: Go on."}},
		{"cut, then another answer", []model.Item{user("x"), repair(model.RepairContinue, "one, "), end("two"), user("y")}, []string{"user: x", "assistant: one, ", goOn, "assistant: two", "user: y"}},
		{"empty", []model.Item{user("x"), repair(model.RepairAnswer, " \n")}, []string{"user: x\n\nYour answer was empty. Answer in words, or call a tool."}},
		{"call as text", []model.Item{user("x"), repair(model.RepairCall, "{}")},
			[]string{"user: x", "assistant: {}", "user: Your answer holds a call written as text, which calls nothing. Call the tool instead."}},
		{"call as text, then an answer", []model.Item{user("x"), repair(model.RepairCall, "{}"), end("a"), user("y")}, []string{"user: x", "assistant: a", "user: y"}},
		{"two repairs", []model.Item{user("x"), repair(model.RepairAnswer, ""), repair(model.RepairCall, "{}")},
			[]string{"user: x", "assistant: {}", "user: Your answer holds a call written as text, which calls nothing. Call the tool instead."}},
		{"invalid", []model.Item{user("x"), repair(model.RepairCall, "{}"), answer(model.Answer{Finish: model.FinishInvalid, Repair: model.RepairCall, Text: "{}"})}, []string{"user: x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, describeTurns(chat.BuildTurns(model.Request{Items: c.items}))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswerBuilder_ThinkingInText(t *testing.T) {
	for _, c := range []struct{ text, thinking, want string }{
		{"<think>hm</think>a", `{"thinking":"hm"}`, "a"},
		{"\n<think>\nhm\n</think>\n\na\n", `{"thinking":"hm"}`, "a\n"},
		{"<thinking>hm</thinking> a", `{"thinking":"hm"}`, "a"},
		{"<think>one</think><think>two</think>a", `{"thinking":"one\ntwo"}`, "a"},
		{"<think></think>a", ``, "a"},
		{"<think>hm", `{"thinking":"hm"}`, ""},
		{"hm\n</think>\n\na", `{"thinking":"hm"}`, "a"},
		{"hm\n</think>", `{"thinking":"hm"}`, ""},

		{"a <think>hm</think>", ``, "a <think>hm</think>"},
		{"The tag </think> ends it.", ``, "The tag </think> ends it."},
		{"One:\n</think>\nTwo:\n</think>\n", ``, "One:\n</think>\nTwo:\n</think>\n"},
		{"```\n<think>\nhm\n</think>\n```", ``, "```\n<think>\nhm\n</think>\n```"},
		{"<thinker>a", ``, "<thinker>a"},
	} {
		var d chat.AnswerBuilder
		d.AppendText(c.text)
		a := d.BuildAnswer("p", nil, nil)
		if a.Text != c.want || string(a.Reasoning) != c.thinking || (a.Provider != "") != (c.thinking != "") {
			t.Errorf("%q became %q, thinking %s of %q; want %q, %s", c.text, a.Text, a.Reasoning, a.Provider, c.want, c.thinking)
		}
	}
}

// What a provider needs back is kept, and not the thinking in the text.
func TestAnswerBuilder_ThinkingTwice(t *testing.T) {
	d := chat.AnswerBuilder{Reasoning: []byte(`{"own":1}`)}
	d.AppendText("<think>hm</think>a")
	if a := d.BuildAnswer("p", nil, nil); a.Text != "a" || string(a.Reasoning) != `{"own":1}` {
		t.Errorf("got %q, %s", a.Text, a.Reasoning)
	}
}

// However a text is cut into parts, the filter shows what BuildAnswer takes for the answer.
func TestThinkingFilter_AgreesWithAnswer(t *testing.T) {
	for _, text := range []string{
		"<think>hm</think>a", "\n<think>\nhm < </think>\n\na\n", "<thinking>hm</think></thinking> a<think>", "<think>one</think> <thinking>two</thinking>\na",
		"<think>hm", "a <think>hm</think>", "<thinker>a", "\n a", "<b>a</b>", "<think></think>",
	} {
		var d chat.AnswerBuilder
		d.AppendText(text)
		want := d.BuildAnswer("p", nil, nil).Text
		for size := 1; size <= len(text); size++ {
			var f chat.ThinkingFilter
			got := ""
			for part := range slices.Chunk([]byte(text), size) {
				got += f.Show(string(part))
			}
			if got != want {
				t.Errorf("%q in parts of %d: shown %q, want %q", text, size, got, want)
			}
		}
	}
}
