package anthropic_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	for _, c := range []struct {
		name, stream string
		want         model.Answer
	}{
		{"end of turn", text + stop("end_turn"), model.Answer{Text: "So far", Finish: model.FinishEnd}},
		{"stop sequence", text + stop("stop_sequence"), model.Answer{Text: "So far", Finish: model.FinishEnd}},
		{"unknown reason", text + stop("tea_break"), model.Answer{Text: "So far", Finish: model.FinishEnd}},
		{"empty answer", stop("end_turn"), model.Answer{Finish: model.FinishEnd}},
		{"pause", text + stop("pause_turn"), model.Answer{Text: "So far", Finish: model.FinishContinue}},
		{"max_tokens", text + stop("max_tokens"), model.Answer{Text: "So far", Finish: model.FinishEnd, Stop: model.Length}},
		{"context window exceeded", text + stop("model_context_window_exceeded"), model.Answer{Text: "So far", Finish: model.FinishEnd, Stop: model.Length}},
		{"truncated call", text + called + stop("max_tokens"),
			model.Answer{Text: "So far", Finish: model.FinishToolCalls, Stop: model.Length, Calls: []model.Call{{Provider: "a", Name: "f", Args: []byte(`""`)}}}},
		{"refusal", stop("refusal"), model.Answer{Text: "The model refused to answer.", Finish: model.FinishEnd, Stop: model.Refusal}},
		{"refusal after a call", text + called + stop("refusal"),
			model.Answer{Text: "So far\n\nThe model refused to go on.", Finish: model.FinishEnd, Stop: model.Refusal}},
		{"refusal with a reason",
			`{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"bio","explanation":"It is about germs."}},"usage":{"output_tokens":3}}` + stopped,
			model.Answer{Text: "The model refused to answer. It is about germs.", Finish: model.FinishEnd, Stop: model.Refusal}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.MessagesRead, c.want.Usage.Output = 1, 3
			x := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(c.stream))
			if diff := cmp.Diff(&c.want, x.Answer); x.Err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", x.Err, diff)
			}
		})
	}
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
	for _, c := range []struct {
		name      string
		status    int
		reply     string
		code      errcode.Code
		retryable bool
		text      string
	}{
		{"overloaded in the stream", 200, events(failing("overloaded_error", "Overloaded")), errcode.LLMCallFailed, true, "status 529): Overloaded"},
		{"rate limit in the stream", 200, events(failing("rate_limit_error", "Slow down")), errcode.RateLimited, true, "rate-limited: Slow down"},
		{"server error in the stream", 200, events(failing("api_error", "Internal server error")), errcode.LLMCallFailed, true, "status 500"},
		{"unknown error in the stream", 200, events(failing("tea_error", "Tea")), errcode.LLMCallFailed, true, "status 500): Tea"},
		{"timeout in the stream", 200, events(failing("timeout_error", "Late")), errcode.LLMCallFailed, true, "status 504"},
		{"bad request in the stream", 200, events(failing("invalid_request_error", "messages.1: bad")), errcode.LLMCallFailed, false, "messages.1: bad"},
		{"conversation too long", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`, errcode.ContextExceeded, false, "208310 tokens"},
		{"conversation and answer too long", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and max_tokens exceed context limit: 199211 + 20000 > 200000, decrease input length or max_tokens and try again"}}`, errcode.ContextExceeded, false, "199211"},
		{"request too large", 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, errcode.ContextExceeded, false, "maximum size"},
		{"no context left", 200, events(stop("model_context_window_exceeded")), errcode.ContextExceeded, false, "no context left"},
		{"wrong key", 401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, errcode.LLMCallFailed, false, "does not accept its key"},
		{"no credit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, errcode.LLMCallFailed, false, "no credit left"},
		{"no such model", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-0"}}`, errcode.LLMCallFailed, false, "claude-0"},
		{"overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, errcode.LLMCallFailed, true, "Overloaded"},
		{"rate limit", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"Number of requests has exceeded your rate limit"}}`, errcode.RateLimited, true, "rate limit"},
		{"truncated stream", 200, events(text), errcode.LLMCallFailed, true, "stopped in the middle"},
		{"stop reason without end", 200, events(text + `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`), errcode.LLMCallFailed, true, "stopped in the middle"},
		{"empty stream", 200, "", errcode.LLMCallFailed, true, "stopped in the middle"},
		{"event is not JSON", 200, "data: {\"type\":\n\n", errcode.LLMCallFailed, true, "not a JSON object"},
		{"event is not an object", 200, "data: []\n\n", errcode.LLMCallFailed, true, "not a JSON object"},
		{"event too deep", 200, "data: {\"type\":" + strings.Repeat("[", 1<<20) + "\n\n", errcode.LLMCallFailed, true, "not a JSON object"},
		{"page of a proxy", 200, "<html>504</html>", errcode.LLMCallFailed, false, "is its baseURL right?"},
		{"too many calls", 200, events(strings.Repeat(called, 300)), errcode.LLMCallFailed, false, "256 calls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := suite.Do(t, provider.Config{Name: "main", Stream: true}, providertest.HelloRequest(), c.status, c.reply)
			providertest.WantError(t, x.Err, c.code, c.retryable, c.text)
		})
	}
}

func TestAnswer_ErrorWithStatus200(t *testing.T) {
	x := suite.Do(t, provider.Config{}, providertest.HelloRequest(), 200, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	providertest.WantError(t, x.Err, errcode.LLMCallFailed, true, "529")
}
