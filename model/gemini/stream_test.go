package gemini_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/gemini"
	"github.com/rolecall/rolecall/model/provider"
)

// client gives a client that answers itself.
func client(answer func(url string) (status int, body string)) *http.Client {
	return &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		status, body := answer(r.URL.String())
		return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewReader([]byte(body))), Request: r}, nil
	})}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A stream as the provider sends it: a summary of thoughts, text, then two
// calls of one function without ids, and a part that nobody knows.
const parallel = `
{"candidates":[{"content":{"parts":[{"text":"**Thinking** of files","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":4325,"cachedContentTokenCount":4000,"totalTokenCount":4362,"promptTokensDetails":[{"modality":"TEXT","tokenCount":4325}],"thoughtsTokenCount":37},"modelVersion":"gemini-3-pro-preview","responseId":"abc"}
{"candidates":[{"content":{"parts":[{"text":"I look "}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":4325,"candidatesTokenCount":3,"thoughtsTokenCount":37}}
{"candidates":[{"content":{"parts":[{"text":"twice. \u00fc"},{"executableCode":{"language":"PYTHON","code":"1"}}],"role":"model"},"index":0}]}
{"candidates":[{"content":{"parts":[{"functionCall":{"name":"read_file","args":{"path":"a/b"}},"thoughtSignature":"CskBsig="},{"functionCall":{"name":"read_file","args":{}}},{"functionCall":{"name":"now","id":"f3"}}],"role":"model"},"index":0}]}
{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":4325,"candidatesTokenCount":52,"cachedContentTokenCount":4000,"thoughtsTokenCount":37},"modelVersion":"gemini-3-pro-preview"}
`

// The same as one document.
const parallelWhole = `{"candidates":[{"content":{"parts":[{"text":"**Thinking** of files","thought":true},{"text":"I look twice. ü"},
	{"functionCall":{"name":"read_file","args":{"path":"a/b"}},"thoughtSignature":"CskBsig="},{"functionCall":{"name":"read_file","args":{}}},{"functionCall":{"name":"now","id":"f3"}}],"role":"model"},"finishReason":"STOP"}],
	"usageMetadata":{"promptTokenCount":4325,"candidatesTokenCount":52,"cachedContentTokenCount":4000,"thoughtsTokenCount":37}}`

func TestAnswerWithParallelCalls(t *testing.T) {
	want := &model.Answer{
		Text: "I look twice. ü", Finish: model.Calls, Read: 1, Provider: "gemini",
		Calls: []model.Call{
			{Name: "read_file", Args: json.RawMessage(`{"path":"a/b"}`)},
			{Name: "read_file", Args: json.RawMessage(`{}`)},
			{Name: "now", Provider: "f3", Args: json.RawMessage(`{}`)},
		},
		Usage: model.Usage{Input: 4325, Cached: 4000, Output: 89},
	}
	streamed := play(t, provider.Config{Stream: true}, hello(), 200, events(parallel))
	whole := play(t, provider.Config{}, hello(), 200, parallelWhole)
	for how, x := range map[string]exchange{"streamed": streamed, "whole": whole} {
		if x.err != nil {
			t.Fatalf("%s: %v", how, x.err)
		}
		x.answer.Reasoning = nil // TestSignatures
		if diff := cmp.Diff(want, x.answer); diff != "" {
			t.Errorf("%s (-want +got):\n%s", how, diff)
		}
	}
	shown := []model.Delta{
		{Text: "I look "}, {Text: "twice. ü"}, {Tool: "read_file", Args: `{"path":"a/b"}`}, {Tool: "read_file", Args: `{}`}, {Tool: "now"},
	}
	if diff := cmp.Diff(shown, streamed.deltas); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
}

func TestArgumentsThatAreNoObject(t *testing.T) {
	for sent, want := range map[string]string{`[1]`: `[1]`, `"{oops"`: `"{oops"`, `null`: `null`} {
		x := play(t, provider.Config{}, hello(), 200, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":`+sent+`}}]},"finishReason":"STOP"}]}`)
		if x.err != nil || string(x.answer.Calls[0].Args) != want {
			t.Errorf("%s: got %+v (%v), want %s", sent, x.answer, x.err, want)
		}
	}
}

func TestWhoAsksMayGo(t *testing.T) {
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, events(`{"candidates":[{"content":{"parts":[{"text":"Slowly"}]}}]}`))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		gone <- struct{}{}
	}))
	defer server.Close()
	m := gemini.New(provider.Config{Model: name, BaseURL: server.URL, Stream: true})

	t.Run("by cancelling: its own error comes", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var failure error
		for delta, err := range m.Generate(ctx, hello()) {
			if delta.Text != "" {
				cancel()
			}
			failure = err
		}
		<-gone
		if !errors.Is(failure, context.Canceled) {
			t.Errorf("got %v", failure)
		}
	})
	t.Run("by listening no more: nothing comes", func(t *testing.T) {
		for range m.Generate(t.Context(), hello()) {
			break
		}
		<-gone
	})
}
