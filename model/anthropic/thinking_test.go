package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

// thoughtful is a stream with thinking before and between text and calls.
const thoughtful = `
{"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}}
{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Two files: "}}
{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"\"a\", b."}}
{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIY+/=="}}
{"type":"content_block_stop","index":0}
{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwKAhgB"}}
{"type":"content_block_stop","index":1}
{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}
{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Fürst a,"}}
{"type":"content_block_stop","index":2}
{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}
{"type":"content_block_stop","index":3}
{"type":"content_block_start","index":4,"content_block":{"type":"thinking","thinking":"","signature":""}}
{"type":"content_block_delta","index":4,"delta":{"type":"signature_delta","signature":"second"}}
{"type":"content_block_stop","index":4}
{"type":"content_block_start","index":5,"content_block":{"type":"text","text":""}}
{"type":"content_block_delta","index":5,"delta":{"type":"text_delta","text":" then b."}}
{"type":"content_block_stop","index":5}
{"type":"content_block_start","index":6,"content_block":{"type":"tool_use","id":"t2","name":"f","input":{}}}
{"type":"content_block_stop","index":6}
{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":50}}
{"type":"message_stop"}
`

// inOrder is what the provider wants back, thoughtsFirst what it gets if the order is
// not known, thoughtless what another model gets.
const (
	thought1 = `{"type":"thinking","thinking":"Two files: \"a\", b.","signature":"EqQBCgIY+/=="},{"type":"redacted_thinking","data":"EmwKAhgB"}`
	thought2 = `{"type":"thinking","thinking":"","signature":"second"}`
	call1    = `{"type":"tool_use","id":"t1","name":"f","input":{}}`
	call2    = `{"type":"tool_use","id":"t2","name":"f","input":{}}`

	inOrder       = `[` + thought1 + `,{"type":"text","text":"Fürst a,"},` + call1 + `,` + thought2 + `,{"type":"text","text":" then b."},` + call2 + `]`
	thoughtsFirst = `[` + thought1 + `,` + thought2 + `,{"type":"text","text":"changed"},` + call1 + `,` + call2 + `]`
	thoughtless   = `[{"type":"text","text":"Fürst a, then b."},` + call1 + `,` + call2 + `]`
)

func TestThinking_IsSentBack(t *testing.T) {
	first := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(thoughtful))
	if first.Err != nil {
		t.Fatal(first.Err)
	}
	if a := first.Answer; a.Provider != "anthropic" || a.Text != "Fürst a, then b." || !json.Valid(a.Reasoning) {
		t.Fatalf("got %+v", a)
	}
	for _, d := range first.Deltas {
		if strings.Contains(d.Text, "files") {
			t.Errorf("thinking is shown: %q", d.Text)
		}
	}
	for _, c := range []struct {
		name   string
		change func(a *model.Answer)
		model  string
		want   string
	}{
		{"same model", func(*model.Answer) {}, name, inOrder},
		{"another model", func(*model.Answer) {}, "claude-opus-4-5", thoughtless},
		{"another provider", func(a *model.Answer) { a.Provider = "openai" }, name, thoughtless},
		{"text has changed", func(a *model.Answer) { a.Text = "changed" }, name, thoughtsFirst},
		{"malformed", func(a *model.Answer) { a.Reasoning = a.Reasoning[:len(a.Reasoning)-1] }, name, thoughtless},
		{"counts overflow", func(a *model.Answer) {
			a.Reasoning = json.RawMessage(strings.ReplaceAll(string(a.Reasoning), `"bytes":`, `"bytes":99999999999999`))
			a.Text = "changed"
		}, name, thoughtsFirst},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := *first.Answer
			c.change(&a)
			a.Calls = []model.Call{a.Calls[0], a.Calls[1]}
			a.Calls[0].ID, a.Calls[1].ID = "c1", "c2"
			r := providertest.HelloRequest()
			r.Items = append(r.Items, providertest.AnswerItem(a), providertest.ResultItem("c1", "f", `1`), providertest.ResultItem("c2", "f", `2`))
			x := suite.Do(t, provider.Config{Model: c.model}, r, 200, ok)
			got, _ := json.Marshal(providertest.Decode(t, x.Body).(map[string]any)["messages"].([]any)[1].(map[string]any)["content"])
			providertest.EqualJSON(t, string(got), c.want)
		})
	}
}

// A whole answer has the same reasoning as a streamed one.
func TestThinking_WholeAnswer(t *testing.T) {
	doc := `{"stop_reason":"tool_use","content":` + inOrder + `}`
	whole := suite.Do(t, provider.Config{}, providertest.HelloRequest(), 200, doc)
	streamed := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(thoughtful))
	if whole.Err != nil || streamed.Err != nil || string(whole.Answer.Reasoning) != string(streamed.Answer.Reasoning) {
		t.Errorf("%v, %v: got %s and %s", whole.Err, streamed.Err, whole.Answer.Reasoning, streamed.Answer.Reasoning)
	}
}

// Truncated thinking has no signature and is not recorded.
func TestThinking_Truncated(t *testing.T) {
	x := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(`
{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"Hm","signature":""}}`+"\n"+stop("max_tokens")))
	if x.Err != nil || x.Answer.Reasoning != nil || x.Answer.Provider != "" || x.Answer.Stop != model.Length {
		t.Errorf("got %+v (%v)", x.Answer, x.Err)
	}
}
