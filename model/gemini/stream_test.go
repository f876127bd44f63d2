package gemini_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

// parallel is a stream with a summary of thoughts, text, two calls of one function
// without ids, and a part of an unknown kind, which is ignored.
const parallel = `
{"candidates":[{"content":{"parts":[{"text":"**Thinking** of files","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":4325,"cachedContentTokenCount":4000,"totalTokenCount":4362,"promptTokensDetails":[{"modality":"TEXT","tokenCount":4325}],"thoughtsTokenCount":37},"modelVersion":"gemini-3-pro-preview","responseId":"abc"}
{"candidates":[{"content":{"parts":[{"text":"I look "}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":4325,"candidatesTokenCount":3,"thoughtsTokenCount":37}}
{"candidates":[{"content":{"parts":[{"text":"twice. \u00fc"},{"executableCode":{"language":"PYTHON","code":"1"}}],"role":"model"},"index":0}]}
{"candidates":[{"content":{"parts":[{"functionCall":{"name":"read_file","args":{"path":"a/b"}},"thoughtSignature":"CskBsig="},{"functionCall":{"name":"read_file","args":{}}},{"functionCall":{"name":"now","id":"f3"}}],"role":"model"},"index":0}]}
{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":4325,"candidatesTokenCount":52,"cachedContentTokenCount":4000,"thoughtsTokenCount":37},"modelVersion":"gemini-3-pro-preview"}
`

// parallelWhole is the same answer as one document.
const parallelWhole = `{"candidates":[{"content":{"parts":[{"text":"**Thinking** of files","thought":true},{"text":"I look twice. ü"},
	{"functionCall":{"name":"read_file","args":{"path":"a/b"}},"thoughtSignature":"CskBsig="},{"functionCall":{"name":"read_file","args":{}}},{"functionCall":{"name":"now","id":"f3"}}],"role":"model"},"finishReason":"STOP"}],
	"usageMetadata":{"promptTokenCount":4325,"candidatesTokenCount":52,"cachedContentTokenCount":4000,"thoughtsTokenCount":37}}`

func TestAnswer_ParallelCalls(t *testing.T) {
	want := &model.Answer{
		Text: "I look twice. ü", Finish: model.FinishToolCalls, MessagesRead: 1, Provider: "gemini",
		Calls: []model.Call{
			{Name: "read_file", Args: json.RawMessage(`{"path":"a/b"}`)},
			{Name: "read_file", Args: json.RawMessage(`{}`)},
			{Name: "now", Provider: "f3", Args: json.RawMessage(`{}`)},
		},
		Usage: model.TokenUsage{Input: 4325, Cached: 4000, Output: 89},
	}
	streamed := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(parallel))
	whole := suite.Do(t, provider.Config{}, providertest.HelloRequest(), 200, parallelWhole)
	for how, x := range map[string]providertest.Exchange{"streamed": streamed, "whole": whole} {
		if x.Err != nil {
			t.Fatalf("%s: %v", how, x.Err)
		}
		x.Answer.Reasoning = nil // see TestSignature_IsSentBack
		if diff := cmp.Diff(want, x.Answer); diff != "" {
			t.Errorf("%s (-want +got):\n%s", how, diff)
		}
	}
	shown := []model.AnswerDelta{
		{Text: "I look "}, {Text: "twice. ü"}, {Tool: "read_file", Args: `{"path":"a/b"}`}, {Tool: "read_file", Args: `{}`}, {Tool: "now"},
	}
	if diff := cmp.Diff(shown, streamed.Deltas); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
}

func TestAnswer_ArgumentsThatAreNotAnObject(t *testing.T) {
	for sent, want := range map[string]string{`[1]`: `[1]`, `"{oops"`: `"{oops"`, `null`: `null`} {
		x := suite.Do(t, provider.Config{}, providertest.HelloRequest(), 200, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":`+sent+`}}]},"finishReason":"STOP"}]}`)
		if x.Err != nil || string(x.Answer.Calls[0].Args) != want {
			t.Errorf("%s: got %+v (%v), want %s", sent, x.Answer, x.Err, want)
		}
	}
}
