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

func TestStopReasons(t *testing.T) {
	for _, c := range []struct {
		name, stream string
		want         model.Answer
	}{
		{"the end of a turn", text + stop("end_turn"), model.Answer{Text: "So far", Finish: model.FinishEnd}},
		{"a stop sequence is an end", text + stop("stop_sequence"), model.Answer{Text: "So far", Finish: model.FinishEnd}},
		{"an unknown reason is an end", text + stop("tea_break"), model.Answer{Text: "So far", Finish: model.FinishEnd}},
		{"an empty answer is one, for steady to judge", stop("end_turn"), model.Answer{Finish: model.FinishEnd}},
		{"a pause wants to be asked again", text + stop("pause_turn"), model.Answer{Text: "So far", Finish: model.FinishContinue}},
		{"the length is up", text + stop("max_tokens"), model.Answer{Text: "So far", Finish: model.FinishEnd, Stop: model.Length}},
		{"the window is full", text + stop("model_context_window_exceeded"), model.Answer{Text: "So far", Finish: model.FinishEnd, Stop: model.Length}},
		{"a call whose arguments did not come", text + called + stop("max_tokens"),
			model.Answer{Text: "So far", Finish: model.FinishToolCalls, Stop: model.Length, Calls: []model.Call{{Provider: "a", Name: "f", Args: []byte(`""`)}}}},
		{"a refusal", stop("refusal"), model.Answer{Text: "The model refused to answer.", Finish: model.FinishEnd, Stop: model.Refusal}},
		{"a refusal in the middle calls nothing", text + called + stop("refusal"),
			model.Answer{Text: "So far\n\nThe model refused to go on.", Finish: model.FinishEnd, Stop: model.Refusal}},
		{"a refusal with its reason",
			`{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"bio","explanation":"It is about germs."}},"usage":{"output_tokens":3}}` + stopped,
			model.Answer{Text: "The model refused to answer. It is about germs.", Finish: model.FinishEnd, Stop: model.Refusal}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.MessagesRead, c.want.Usage.Output = 1, 3
			x := suite.Do(t, provider.Config{Stream: true}, providertest.Hello(), 200, events(c.stream))
			if diff := cmp.Diff(&c.want, x.Answer); x.Err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", x.Err, diff)
			}
		})
	}
}

// A whole answer that was cut off may hold a part of the arguments that looks
// like all of them: that of the last call is not believed.
func TestArgumentsCutOff(t *testing.T) {
	x := suite.Do(t, provider.Config{}, providertest.Hello(), 200, `{"stop_reason":"max_tokens","content":[
		{"type":"tool_use","id":"a","name":"f","input":{"path":"/tmp/x"}},{"type":"tool_use","id":"b","name":"f","input":{"path":"/"}}]}`)
	if x.Err != nil {
		t.Fatal(x.Err)
	}
	if got := string(x.Answer.Calls[0].Args) + string(x.Answer.Calls[1].Args); got != `{"path":"/tmp/x"}""` {
		t.Errorf("got %s", got)
	}
}

func TestTrouble(t *testing.T) {
	failing := func(kind, message string) string {
		return text + `{"type":"error","error":{"details":null,"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`
	}
	for _, c := range []struct {
		name   string
		status int
		reply  string
		code   errcode.Code
		again  bool
		words  string
	}{
		{"overloaded in the middle", 200, events(failing("overloaded_error", "Overloaded")), errcode.LLMCallFailed, true, "status 529): Overloaded"},
		{"asked too often in the middle", 200, events(failing("rate_limit_error", "Slow down")), errcode.RateLimited, true, "too often: Slow down"},
		{"a fault of theirs in the middle", 200, events(failing("api_error", "Internal server error")), errcode.LLMCallFailed, true, "status 500"},
		{"an error of a new kind", 200, events(failing("tea_error", "Tea")), errcode.LLMCallFailed, true, "status 500): Tea"},
		{"out of time in the middle", 200, events(failing("timeout_error", "Late")), errcode.LLMCallFailed, true, "status 504"},
		{"a wrong request", 200, events(failing("invalid_request_error", "messages.1: bad")), errcode.LLMCallFailed, false, "messages.1: bad"},
		{"a conversation too long", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`, errcode.ContextExceeded, false, "208310 tokens"},
		{"a conversation too long for its answer", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and max_tokens exceed context limit: 199211 + 20000 > 200000, decrease input length or max_tokens and try again"}}`, errcode.ContextExceeded, false, "199211"},
		{"a request too large", 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, errcode.ContextExceeded, false, "maximum size"},
		{"no room for an answer", 200, events(stop("model_context_window_exceeded")), errcode.ContextExceeded, false, "no room"},
		{"a wrong key", 401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, errcode.LLMCallFailed, false, "does not accept its key"},
		{"no money", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, errcode.LLMCallFailed, false, "nothing left to spend"},
		{"no such model", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-0"}}`, errcode.LLMCallFailed, false, "claude-0"},
		{"overloaded at once", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, errcode.LLMCallFailed, true, "Overloaded"},
		{"too often at once", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"Number of requests has exceeded your rate limit"}}`, errcode.RateLimited, true, "rate limit"},
		{"a stream that breaks off", 200, events(text), errcode.LLMCallFailed, true, "broke off"},
		{"a stop reason is not the end", 200, events(text + `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`), errcode.LLMCallFailed, true, "broke off"},
		{"a stream of nothing", 200, "", errcode.LLMCallFailed, true, "broke off"},
		{"an event that is no JSON", 200, "data: {\"type\":\n\n", errcode.LLMCallFailed, true, "no JSON"},
		{"an event that is no object", 200, "data: []\n\n", errcode.LLMCallFailed, true, "no JSON"},
		{"an event of brackets", 200, "data: {\"type\":" + strings.Repeat("[", 1<<20) + "\n\n", errcode.LLMCallFailed, true, "no JSON"},
		{"a page of a proxy", 200, "<html>504</html>", errcode.LLMCallFailed, false, "is its baseURL right?"},
		{"calls without end", 200, events(strings.Repeat(called, 300)), errcode.LLMCallFailed, false, "256 calls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := suite.Do(t, provider.Config{Name: "main", Stream: true}, providertest.Hello(), c.status, c.reply)
			providertest.WantError(t, x.Err, c.code, c.again, c.words)
		})
	}
}

func TestErrorWithAGoodStatus(t *testing.T) {
	x := suite.Do(t, provider.Config{}, providertest.Hello(), 200, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	providertest.WantError(t, x.Err, errcode.LLMCallFailed, true, "529")
}
