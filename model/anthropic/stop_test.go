package anthropic_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

const (
	text = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"So far"}}
`
	called = `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}
`
	stopped = "\n" + `{"type":"message_stop"}`
)

func stop(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":3}}` + stopped
}

func TestAnswer_StopReasons(t *testing.T) {
	wantAnswer := suite.AnswerCases(t, model.TokenUsage{Output: 3}, events)
	wantAnswer("end of turn", text+stop("end_turn"), model.Answer{Text: "So far", Finish: model.FinishEnd})
	wantAnswer("stop sequence", text+stop("stop_sequence"), model.Answer{Text: "So far", Finish: model.FinishEnd})
	wantAnswer("unknown reason", text+stop("tea_break"), model.Answer{Text: "So far", Finish: model.FinishEnd})
	wantAnswer("empty answer", stop("end_turn"), model.Answer{Finish: model.FinishEnd})
	wantAnswer("pause", text+stop("pause_turn"), model.Answer{Text: "So far", Finish: model.FinishContinue})
	wantAnswer("max_tokens", text+stop("max_tokens"), model.Answer{Text: "So far", Finish: model.FinishEnd, Stop: model.Length})
	wantAnswer("context window exceeded", text+stop("model_context_window_exceeded"), model.Answer{Text: "So far", Finish: model.FinishEnd, Stop: model.Length})
	wantAnswer("truncated call", text+called+stop("max_tokens"),
		model.Answer{Text: "So far", Finish: model.FinishToolCalls, Stop: model.Length, Calls: []model.Call{{Provider: "a", Name: "f", Args: []byte(`""`)}}})
	wantAnswer("refusal", stop("refusal"), model.Answer{Text: "The model refused to answer.", Finish: model.FinishEnd, Stop: model.Refusal})
	wantAnswer("refusal after a call", text+called+stop("refusal"),
		model.Answer{Text: "So far\n\nThe model refused to go on.", Finish: model.FinishEnd, Stop: model.Refusal})
	wantAnswer("refusal with a reason",
		`{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"bio","explanation":"It is about germs."}},"usage":{"output_tokens":3}}`+stopped,
		model.Answer{Text: "The model refused to answer. It is about germs.", Finish: model.FinishEnd, Stop: model.Refusal})
}

// A truncated answer may have arguments that look complete: those of the last call
// are dropped.
func TestAnswer_TruncatedArguments(t *testing.T) {
	x := suite.Do(t, provider.Config{}, providertest.HelloRequest(), 200, `{"stop_reason":"max_tokens","content":[
		{"type":"tool_use","id":"a","name":"f","input":{"path":"/tmp/x"}},{"type":"tool_use","id":"b","name":"f","input":{"path":"/"}}]}`)
	if x.Err != nil {
		t.Fatal(x.Err)
	}
	if got := string(x.Answer.Calls[0].Args) + string(x.Answer.Calls[1].Args); got != `{"path":"/tmp/x"}""` {
		t.Errorf("got %s", got)
	}
}

func TestAnswer_Errors(t *testing.T) {
	failing := func(kind, message string) string {
		return text + `{"type":"error","error":{"details":null,"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`
	}
	wantError := suite.ErrorCases(t)
	wantError("overloaded in the stream", 200, events(failing("overloaded_error", "Overloaded")), errcode.LLMCallFailed, true, "status 529): Overloaded")
	wantError("rate limit in the stream", 200, events(failing("rate_limit_error", "Slow down")), errcode.RateLimited, true, "rate-limited: Slow down")
	wantError("server error in the stream", 200, events(failing("api_error", "Internal server error")), errcode.LLMCallFailed, true, "status 500")
	wantError("unknown error in the stream", 200, events(failing("tea_error", "Tea")), errcode.LLMCallFailed, true, "status 500): Tea")
	wantError("timeout in the stream", 200, events(failing("timeout_error", "Late")), errcode.LLMCallFailed, true, "status 504")
	wantError("bad request in the stream", 200, events(failing("invalid_request_error", "messages.1: bad")), errcode.LLMCallFailed, false, "messages.1: bad")
	wantError("conversation too long", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`, errcode.ContextExceeded, false, "208310 tokens")
	wantError("conversation and answer too long", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and max_tokens exceed context limit: 199211 + 20000 > 200000, decrease input length or max_tokens and try again"}}`, errcode.ContextExceeded, false, "199211")
	wantError("request too large", 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, errcode.ContextExceeded, false, "maximum size")
	wantError("no context left", 200, events(stop("model_context_window_exceeded")), errcode.ContextExceeded, false, "no context left")
	wantError("wrong key", 401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, errcode.LLMCallFailed, false, "does not accept its key")
	wantError("no credit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, errcode.LLMCallFailed, false, "no credit left")
	wantError("no such model", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-0"}}`, errcode.LLMCallFailed, false, "claude-0")
	wantError("overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, errcode.LLMCallFailed, true, "Overloaded")
	wantError("rate limit", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"Number of requests has exceeded your rate limit"}}`, errcode.RateLimited, true, "rate limit")
	wantError("truncated stream", 200, events(text), errcode.LLMCallFailed, true, "stopped in the middle")
	wantError("stop reason without end", 200, events(text+`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`), errcode.LLMCallFailed, true, "stopped in the middle")
	wantError("empty stream", 200, "", errcode.LLMCallFailed, true, "stopped in the middle")
	wantError("event is not JSON", 200, "data: {\"type\":\n\n", errcode.LLMCallFailed, true, "not a JSON object")
	wantError("event is not an object", 200, "data: []\n\n", errcode.LLMCallFailed, true, "not a JSON object")
	wantError("event too deep", 200, "data: {\"type\":"+strings.Repeat("[", 1<<20)+"\n\n", errcode.LLMCallFailed, true, "not a JSON object")
	wantError("page of a proxy", 200, "<html>504</html>", errcode.LLMCallFailed, false, "is its baseURL right?")
	wantError("too many calls", 200, events(strings.Repeat(called, 300)), errcode.LLMCallFailed, false, "256 calls")
}

func TestAnswer_ErrorWithStatus200(t *testing.T) {
	x := suite.Do(t, provider.Config{}, providertest.HelloRequest(), 200, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	providertest.WantError(t, x.Err, errcode.LLMCallFailed, true, "529")
}
