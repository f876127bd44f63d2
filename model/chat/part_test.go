package chat_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/model/chat"
)

var recorded = []chat.AnswerPart{
	{Kind: chat.RawPart, Raw: `{"a":1}`},
	{Kind: chat.TextPart, Size: 3},
	{Kind: chat.CallPart, Sign: "s"},
	{Kind: chat.TextPart, Size: 2, Sign: "t"},
}

func TestRecordedParts_AreThoseOfTheTurn(t *testing.T) {
	whole := chat.Turn{Text: "abcde", Calls: make([]chat.Call, 1), Provider: "p", Reasoning: chat.EncodeParts("m", recorded)}
	for name, c := range map[string]struct {
		change func(*chat.Turn)
		model  string
		want   []chat.AnswerPart
	}{
		"same model":       {func(*chat.Turn) {}, "m", recorded},
		"another model":    {func(*chat.Turn) {}, "n", nil},
		"another provider": {func(turn *chat.Turn) { turn.Provider = "q" }, "m", nil},
		"less text":        {func(turn *chat.Turn) { turn.Text = "abcd" }, "m", nil},
		"more text":        {func(turn *chat.Turn) { turn.Text = "abcdef" }, "m", nil},
		"a call is gone":   {func(turn *chat.Turn) { turn.Calls = nil }, "m", nil},
		"no JSON":          {func(turn *chat.Turn) { turn.Reasoning = turn.Reasoning[1:] }, "m", nil},
		"no object":        {replaceReasoning(`"raw":{"a":1}`, `"raw":1`), "m", nil},
		"unknown kind":     {replaceReasoning(`"kind":"call"`, `"kind":"new"`), "m", nil},
		"counts overflow":  {replaceReasoning(`"bytes":`, `"bytes":9999999999999999999`), "m", nil},
	} {
		t.Run(name, func(t *testing.T) {
			turn := whole
			c.change(&turn)
			if diff := cmp.Diff(c.want, chat.RecordedParts(turn, "p", c.model)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func replaceReasoning(old, by string) func(*chat.Turn) {
	return func(turn *chat.Turn) { turn.Reasoning = []byte(strings.ReplaceAll(string(turn.Reasoning), old, by)) }
}

// Nothing is recorded for an answer of which the provider needs nothing back.
func TestEncodeParts_WithoutReasoning(t *testing.T) {
	if got := chat.EncodeParts("m", []chat.AnswerPart{{Kind: chat.TextPart, Size: 3}, {Kind: chat.CallPart}}); got != nil {
		t.Errorf("got %s", got)
	}
}

func TestPortableID_HashesWhatSomeProvidersReject(t *testing.T) {
	for _, id := range []string{"call_1-Z", strings.Repeat("a", 64)} {
		if got := chat.PortableID(id); got != id {
			t.Errorf("%q became %q", id, got)
		}
	}
	seen := map[string]string{}
	for _, id := range []string{"", "functions.f:0", "ü", strings.Repeat("a", 65), strings.Repeat("a", 66)} {
		got := chat.PortableID(id)
		if len(got) != 34 || !strings.HasPrefix(got, "x_") || seen[got] != "" {
			t.Errorf("%q became %q, as %q", id, got, seen[got])
		}
		seen[got] = id
	}
}
