package bedrock_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

// thoughtful is a stream with reasoning, text and two calls, and with an event and a
// block that are ignored.
const thoughtful = `
messageStart {"role":"assistant","p":"abcdef"}
contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Two "}}}
contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"\"files\"."}}}
contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"EqQ/+="}}}
contentBlockStop {"contentBlockIndex":0}
contentBlockDelta {"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"EmwKAhgB"}}}
contentBlockStop {"contentBlockIndex":1}
contentBlockStart {"contentBlockIndex":2,"start":{}}
contentBlockDelta {"contentBlockIndex":2,"delta":{"text":"Für "}}
contentBlockDelta {"contentBlockIndex":2,"delta":{"text":"both."},"p":"ab"}
contentBlockStop {"contentBlockIndex":2}
somethingNew {"contentBlockIndex":2,"text":"?"}
contentBlockStart {"contentBlockIndex":3,"start":{"toolUse":{"toolUseId":"tooluse_1","name":"read_file"}}}
contentBlockDelta {"contentBlockIndex":3,"delta":{"toolUse":{"input":""}}}
contentBlockDelta {"contentBlockIndex":3,"delta":{"toolUse":{"input":"{\"path\": \"a"}}}
contentBlockDelta {"contentBlockIndex":3,"delta":{"toolUse":{"input":"/b\"}"}}}
contentBlockStop {"contentBlockIndex":3}
contentBlockDelta {"contentBlockIndex":4,"delta":{"citation":{"title":"?"}}}
contentBlockStart {"contentBlockIndex":5,"start":{"toolUse":{"toolUseId":"tooluse_2","name":"now"}}}
contentBlockStop {"contentBlockIndex":5}
messageStop {"stopReason":"tool_use"}
metadata {"usage":{"inputTokens":25,"cacheWriteInputTokens":300,"cacheReadInputTokens":4000,"outputTokens":89,"totalTokens":4414},"metrics":{"latencyMs":1200}}
`

// thoughtfulWhole is the same answer as one document.
const thoughtfulWhole = `{"output":{"message":{"role":"assistant","content":[
	{"reasoningContent":{"reasoningText":{"text":"Two \"files\".","signature":"EqQ/+="}}},{"reasoningContent":{"redactedContent":"EmwKAhgB"}},
	{"text":"Für both."},{"toolUse":{"toolUseId":"tooluse_1","name":"read_file","input":{"path": "a/b"}}},{"citationsContent":{}},
	{"toolUse":{"toolUseId":"tooluse_2","name":"now","input":{}}}]}},"stopReason":"tool_use",
	"usage":{"inputTokens":25,"cacheWriteInputTokens":300,"cacheReadInputTokens":4000,"outputTokens":89,"totalTokens":4414},"metrics":{"latencyMs":1200}}`

func TestAnswer_BlocksInOrder(t *testing.T) {
	want := &model.Answer{
		Text: "Für both.", Finish: model.FinishToolCalls, MessagesRead: 1, Provider: "bedrock",
		Calls: []model.Call{
			{Provider: "tooluse_1", Name: "read_file", Args: json.RawMessage(`{"path": "a/b"}`)},
			{Provider: "tooluse_2", Name: "now", Args: json.RawMessage(`{}`)},
		},
		Usage: model.TokenUsage{Input: 4325, Cached: 4000, Output: 89},
	}
	streamed := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(thoughtful))
	whole := suite.Do(t, provider.Config{}, providertest.HelloRequest(), 200, thoughtfulWhole)
	for how, x := range map[string]providertest.Exchange{"streamed": streamed, "whole": whole} {
		if x.Err != nil || len(x.Answer.Reasoning) == 0 {
			t.Fatalf("%s: got %+v (%v)", how, x.Answer, x.Err)
		}
		got := *x.Answer
		got.Reasoning = nil
		if diff := cmp.Diff(want, &got); diff != "" || string(x.Answer.Reasoning) != string(streamed.Answer.Reasoning) {
			t.Errorf("%s: reasoning %s (-want +got):\n%s", how, x.Answer.Reasoning, diff)
		}
	}
	shown := []model.AnswerDelta{{Text: "Für "}, {Text: "both."}, {Tool: "read_file"}, {Args: `{"path": "a`}, {Args: `/b"}`}, {Tool: "now"}}
	if diff := cmp.Diff(shown, streamed.Deltas); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
}

// Reasoning is sent back in its place, to the model that signed it.
func TestReasoning_IsSentBack(t *testing.T) {
	const (
		said     = `{"text":"Für both."},{"toolUse":{"toolUseId":"tooluse_1","name":"read_file","input":{"path":"a/b"}}},{"toolUse":{"toolUseId":"tooluse_2","name":"now","input":{}}}]`
		inOrder  = `[{"reasoningContent":{"reasoningText":{"text":"Two \"files\".","signature":"EqQ/+="}}},{"reasoningContent":{"redactedContent":"EmwKAhgB"}},` + said
		withouts = `[` + said
	)
	first := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(thoughtful))
	if first.Err != nil {
		t.Fatal(first.Err)
	}
	for _, c := range []struct {
		name   string
		change func(a *model.Answer)
		model  string
		want   string
	}{
		{"same model", func(*model.Answer) {}, name, inOrder},
		{"another model", func(*model.Answer) {}, "amazon.nova-lite-v1:0", withouts},
		{"another provider", func(a *model.Answer) { a.Provider = "anthropic" }, name, withouts},
		{"malformed", func(a *model.Answer) { a.Reasoning = a.Reasoning[1:] }, name, withouts},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := *first.Answer
			a.Calls = append([]model.Call(nil), a.Calls...)
			a.Calls[0].ID, a.Calls[1].ID = "1", "2"
			c.change(&a)
			r := providertest.HelloRequest()
			r.Items = append(r.Items, providertest.AnswerItem(a), providertest.ResultItem("1", "read_file", `1`), providertest.ResultItem("2", "now", `2`))
			x := suite.Do(t, provider.Config{Model: c.model}, r, 200, ok)
			providertest.EqualJSON(t, gjson.Get(x.Body, "messages.1.content").Raw, c.want)
		})
	}
}

// Models that do not sign their reasoning reject it.
func TestReasoning_WithoutSignatureIsDropped(t *testing.T) {
	x := suite.Do(t, provider.Config{}, providertest.HelloRequest(), 200,
		`{"output":{"message":{"content":[{"reasoningContent":{"reasoningText":{"text":"Hm"}}},{"text":"Good."}]}},"stopReason":"end_turn"}`)
	if x.Err != nil || x.Answer.Text != "Good." || x.Answer.Reasoning != nil {
		t.Errorf("got %+v (%v)", x.Answer, x.Err)
	}
}

const (
	text = `contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"So far"}}
`
	called = `contentBlockStart {"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"a","name":"f"}}}
`
)

// stop ends a stream.
func stop(reason string) string {
	return `messageStop {"stopReason":"` + reason + `"}
metadata {"usage":{"inputTokens":0,"outputTokens":3}}
`
}

func TestAnswer_StopReasons(t *testing.T) {
	wantAnswer := suite.AnswerCases(t, model.TokenUsage{Output: 3}, events)
	wantAnswer("end of turn", text+stop("end_turn"), model.Answer{Text: "So far", Finish: model.FinishEnd})
	wantAnswer("stop sequence", text+stop("stop_sequence"), model.Answer{Text: "So far", Finish: model.FinishEnd})
	wantAnswer("unknown reason", text+stop("tea_break"), model.Answer{Text: "So far", Finish: model.FinishEnd})
	wantAnswer("empty answer", stop("end_turn"), model.Answer{Finish: model.FinishEnd})
	wantAnswer("max_tokens", text+stop("max_tokens"), model.Answer{Text: "So far", Finish: model.FinishEnd, Stop: model.Length})
	wantAnswer("context window exceeded", text+stop("model_context_window_exceeded"), model.Answer{Text: "So far", Finish: model.FinishEnd, Stop: model.Length})
	wantAnswer("truncated call", text+called+stop("max_tokens"),
		model.Answer{Text: "So far", Finish: model.FinishToolCalls, Stop: model.Length, Calls: []model.Call{{Provider: "a", Name: "f", Args: []byte(`""`)}}})
	wantAnswer("guardrail", stop("guardrail_intervened"), model.Answer{Text: "The model refused to answer (guardrail_intervened).", Finish: model.FinishEnd, Stop: model.ContentFilter})
	wantAnswer("refusal", stop("refusal"), model.Answer{Text: "The model refused to answer.", Finish: model.FinishEnd, Stop: model.Refusal})
	wantAnswer("filter after a call", text+called+stop("content_filtered"),
		model.Answer{Text: "So far\n\nThe model refused to go on (content_filtered).", Finish: model.FinishEnd, Stop: model.ContentFilter})
}

// A truncated answer may have arguments that look complete: those of the last call are
// dropped.
func TestAnswer_TruncatedArguments(t *testing.T) {
	x := suite.Do(t, provider.Config{}, providertest.HelloRequest(), 200, `{"stopReason":"max_tokens","output":{"message":{"content":[
		{"toolUse":{"toolUseId":"a","name":"f","input":{"path":"/tmp/x"}}},{"toolUse":{"toolUseId":"b","name":"f","input":{"path":"/"}}}]}}}`)
	if x.Err != nil {
		t.Fatal(x.Err)
	}
	if got := string(x.Answer.Calls[0].Args) + string(x.Answer.Calls[1].Args); got != `{"path":"/tmp/x"}""` {
		t.Errorf("got %s", got)
	}
}

// Arguments that are not an object come once.
func TestAnswer_TextAsArguments(t *testing.T) {
	x := suite.Do(t, provider.Config{}, providertest.HelloRequest(), 200, `{"stopReason":"tool_use","output":{"message":{"content":[{"toolUse":{"toolUseId":"a","name":"f","input":"oops"}}]}}}`)
	if x.Err != nil || string(x.Answer.Calls[0].Args) != `"oops"` {
		t.Errorf("got %+v (%v)", x.Answer, x.Err)
	}
}

func TestAnswer_Errors(t *testing.T) {
	const permanent, transient = false, true
	failing := func(kind, message string) string {
		return events(text) + exception(kind, `{"message":"`+message+`"}`)
	}
	wantError := suite.ErrorCases(t)
	wantError("throttled in the stream", 200, failing("throttlingException", "Too many tokens"), errcode.RateLimited, transient, "rate-limited: Too many tokens")
	wantError("server error in the stream", 200, failing("internalServerException", "It broke"), errcode.LLMCallFailed, transient, "status 500): It broke")
	wantError("model error in the stream", 200, failing("modelStreamErrorException", "It broke"), errcode.LLMCallFailed, transient, "It broke")
	wantError("unavailable in the stream", 200, failing("serviceUnavailableException", "Later"), errcode.LLMCallFailed, transient, "status 503): Later")
	wantError("timeout in the stream", 200, failing("modelTimeoutException", "Late"), errcode.LLMCallFailed, transient, "Late")
	wantError("rejected in the stream", 200, failing("validationException", "messages: bad"), errcode.LLMCallFailed, permanent, "messages: bad")
	wantError("too long, in the stream", 200, failing("validationException", "Input is too long for requested model."), errcode.ContextExceeded, permanent, "too long")
	wantError("error of the connection", 200, events(text)+message("", ":message-type", "error", ":error-code", "InternalError", ":error-message", "It broke"), errcode.LLMCallFailed, transient, "It broke")
	wantError("exception that is not JSON", 200, exception("throttlingException", "oops"), errcode.LLMCallFailed, transient, "not a JSON object")
	wantError("no answer", 200, `{"message":"Tea"}`, errcode.LLMCallFailed, transient, "Tea")
	wantError("conversation too long", 400, `{"message":"Input Tokens Exceeded: Number of input tokens exceeds maximum length."}`, errcode.ContextExceeded, permanent, "exceeds")
	wantError("bad request", 400, `{"message":"The provided model identifier is invalid."}`, errcode.LLMCallFailed, permanent, "identifier is invalid")
	wantError("wrong key", 403, `{"Message":"Authentication failed: Please make sure your API Key is valid."}`, errcode.LLMCallFailed, permanent, "does not accept its key")
	wantError("throttled", 429, `{"message":"Too many requests"}`, errcode.RateLimited, transient, "Too many requests")
	wantError("model not ready", 503, `{"message":"Wait"}`, errcode.LLMCallFailed, transient, "Wait")
	wantError("malformed call", 200, events(text+stop("malformed_tool_use")), errcode.LLMCallFailed, transient, "aborted its answer")
	wantError("no context left", 200, events(stop("model_context_window_exceeded")), errcode.ContextExceeded, permanent, "no context left")
	wantError("truncated stream", 200, events(text), errcode.LLMCallFailed, transient, "stopped in the middle")
	wantError("truncated event", 200, events(text)[:50], errcode.LLMCallFailed, transient, "stopped in the middle")
	wantError("empty stream", 200, "", errcode.LLMCallFailed, transient, "stopped in the middle")
	wantError("event is not JSON", 200, events(`messageStop {"stopReason":`), errcode.LLMCallFailed, transient, "not a JSON object")
	wantError("event too deep", 200, events(`messageStop `+strings.Repeat("[", 1<<20)), errcode.LLMCallFailed, transient, "not a JSON object")
	wantError("server-sent events", 200, "event: messageStart\ndata: {}\n\n", errcode.LLMCallFailed, transient, "event streams")
	wantError("page of a proxy", 200, "<html>504</html>", errcode.LLMCallFailed, permanent, "is its baseURL right?")
	wantError("too many calls", 200, events(manyCalls()), errcode.LLMCallFailed, permanent, "256 calls")
	wantError("arguments too long", 200, `{"stopReason":"tool_use","output":{"message":{"content":[{"toolUse":{"toolUseId":"a","name":"f","input":{"a":"`+strings.Repeat("x", 9<<20)+`"}}}]}}}`, errcode.LLMCallFailed, permanent, "8388608 bytes")
	wantError("too much reasoning", 200, events(`contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"`+strings.Repeat("x", 9<<20)+`"}}}`), errcode.LLMCallFailed, permanent, "bytes of reasoning")
}

// manyCalls returns a stream with more calls than are allowed.
func manyCalls() string {
	var stream strings.Builder
	for i := range 300 {
		fmt.Fprintf(&stream, `contentBlockStart {"contentBlockIndex":%d,"start":{"toolUse":{"toolUseId":"a","name":"f"}}}`+"\n", i)
	}
	return stream.String()
}
