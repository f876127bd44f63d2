package gemini_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

// signed is a stream with signatures of a thought, of text, of a call, and of an
// empty text at the end.
const signed = `
{"candidates":[{"content":{"parts":[{"text":"Hm","thought":true,"thoughtSignature":"s0"}],"role":"model"}}]}
{"candidates":[{"content":{"parts":[{"text":"Für"}],"role":"model"}}]}
{"candidates":[{"content":{"parts":[{"text":"st a"}],"role":"model"}}]}
{"candidates":[{"content":{"parts":[{"text":" and","thoughtSignature":"s1"},{"text":" b"}],"role":"model"}}]}
{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"n":1}},"thoughtSignature":"s2=/+"},{"functionCall":{"name":"f","args":{"n":2}}}],"role":"model"}}]}
{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"s3"}],"role":"model"},"finishReason":"STOP"}]}
`

const (
	call1 = `{"functionCall":{"id":"c1","name":"f","args":{"n":1}}`
	call2 = `{"functionCall":{"id":"c2","name":"f","args":{"n":2}}}`
)

func TestSignature_IsSentBack(t *testing.T) {
	const (
		inOrder = `[{"text":"Hm","thought":true,"thoughtSignature":"s0"},{"text":"Fürst a"},{"text":" and","thoughtSignature":"s1"},{"text":" b"},` +
			call1 + `,"thoughtSignature":"s2=/+"},` + call2 + `,{"text":"","thoughtSignature":"s3"}]`
		foreign  = `[{"text":"Fürst a and b"},` + call1 + `,"thoughtSignature":"skip_thought_signature_validator"},` + call2 + `]`
		unsigned = `[{"text":"Fürst a and b"},` + call1 + `},` + call2 + `]`
	)
	first := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(signed))
	if first.Err != nil || first.Answer.Provider != "gemini" || first.Answer.Text != "Fürst a and b" {
		t.Fatalf("got %+v (%v)", first.Answer, first.Err)
	}
	for _, c := range []struct {
		name   string
		change func(a *model.Answer)
		model  string
		want   string
	}{
		{"same model", func(*model.Answer) {}, name, inOrder},
		{"another model", func(*model.Answer) {}, "gemini-4-flash", foreign},
		{"model before Gemini 3", func(*model.Answer) {}, "models/gemini-2.5-flash", unsigned},
		{"model without thinking", func(*model.Answer) {}, "gemma-3-27b-it", unsigned},
		{"another provider", func(a *model.Answer) { a.Provider = "openai" }, name, foreign},
		{"one more call", func(a *model.Answer) {
			a.Reasoning = json.RawMessage(strings.Replace(string(a.Reasoning), `{"kind":"call"},`, "", 1))
		}, name, foreign},
		{"malformed", func(a *model.Answer) { a.Reasoning = a.Reasoning[1:] }, name, foreign},
		{"counts overflow", func(a *model.Answer) {
			a.Reasoning = json.RawMessage(strings.ReplaceAll(string(a.Reasoning), `"bytes":`, `"bytes":99999999999999`))
		}, name, foreign},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := *first.Answer
			c.change(&a)
			a.Calls = []model.Call{a.Calls[0], a.Calls[1]}
			a.Calls[0].ID, a.Calls[1].ID = "c1", "c2"
			r := providertest.HelloRequest()
			r.Items = append(r.Items, providertest.AnswerItem(a), providertest.ResultItem("c1", "f", `1`), providertest.ResultItem("c2", "f", `2`))
			x := suite.Do(t, provider.Config{Model: c.model}, r, 200, ok)
			got, _ := json.Marshal(providertest.Decode(t, x.Body).(map[string]any)["contents"].([]any)[1].(map[string]any)["parts"])
			providertest.EqualJSON(t, string(got), c.want)
		})
	}
}

func TestSignature_NoReasoningWithoutSignature(t *testing.T) {
	for name, stream := range map[string]string{
		"no signature": ok,
		"refusal":      strings.Replace(strings.TrimSpace(signed), "STOP", "SAFETY", 1),
	} {
		t.Run(name, func(t *testing.T) {
			x := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(stream))
			if x.Err != nil || x.Answer.Reasoning != nil || x.Answer.Provider != "" {
				t.Errorf("got %+v (%v)", x.Answer, x.Err)
			}
		})
	}
}
