package anthropic_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

// parallel is a stream with text and two calls, and with a ping and an unknown event
// and block, which are ignored.
const parallel = `
{"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":300,"cache_read_input_tokens":4000,"output_tokens":1,"service_tier":"standard"}}}
{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
{"type":"ping"}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I look "}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"twice. \u00fc"}}
{"type":"content_block_stop","index":0}
{"type":"something_new","index":0,"text":"?"}
{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_01","name":"read_file","input":{},"caller":{"type":"direct"}}}
{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}
{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"a"}}
{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"/b\"}"}}
{"type":"content_block_stop","index":1}
{"type":"content_block_start","index":2,"content_block":{"type":"new_block","data":"?"}}
{"type":"content_block_delta","index":2,"delta":{"type":"new_delta","text":"?"}}
{"type":"content_block_stop","index":2}
{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_02","name":"now","input":{}}}
{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}
{"type":"content_block_stop","index":3}
{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":25,"cache_creation_input_tokens":300,"cache_read_input_tokens":4000,"output_tokens":89}}
{"type":"message_stop"}
`

// parallelWhole is the same answer as one document.
const parallelWhole = `{"id":"msg_01","type":"message","role":"assistant","content":[{"type":"text","text":"I look twice. ü"},
	{"type":"tool_use","id":"toolu_01","name":"read_file","input":{"path": "a/b"}},{"type":"new_block"},{"type":"tool_use","id":"toolu_02","name":"now","input":{}}],
	"stop_reason":"tool_use","usage":{"input_tokens":25,"cache_creation_input_tokens":300,"cache_read_input_tokens":4000,"output_tokens":89}}`

func TestAnswer_ParallelCalls(t *testing.T) {
	want := &model.Answer{
		Text: "I look twice. ü", Finish: model.FinishToolCalls, MessagesRead: 1,
		Calls: []model.Call{
			{Provider: "toolu_01", Name: "read_file", Args: json.RawMessage(`{"path": "a/b"}`)},
			{Provider: "toolu_02", Name: "now", Args: json.RawMessage(`{}`)},
		},
		Usage: model.TokenUsage{Input: 4325, Cached: 4000, Output: 89},
	}
	streamed := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(parallel))
	whole := suite.Do(t, provider.Config{}, providertest.HelloRequest(), 200, parallelWhole)
	for how, x := range map[string]providertest.Exchange{"streamed": streamed, "whole": whole} {
		if diff := cmp.Diff(want, x.Answer); x.Err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", how, x.Err, diff)
		}
	}
	shown := []model.AnswerDelta{
		{Text: "I look "}, {Text: "twice. ü"}, {Tool: "read_file"}, {Args: `{"path": "a`}, {Args: `/b"}`}, {Tool: "now"},
	}
	if diff := cmp.Diff(shown, streamed.Deltas); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
}

func TestAnswer_DeltasHaveOriginalToolNames(t *testing.T) {
	r := providertest.HelloRequest()
	r.ToolJSON = providertest.ToolsJSON(t, "mail/send")
	x := suite.Do(t, provider.Config{Stream: true}, r, 200, events(`
{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"x__mail_send_f6df7563c1c09ec34de7d9783635c205","input":{}}}
{"type":"message_delta","delta":{"stop_reason":"tool_use"}}
{"type":"message_stop"}`))
	if diff := cmp.Diff([]model.AnswerDelta{{Tool: "mail/send"}}, x.Deltas); x.Err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", x.Err, diff)
	}
}

// Compatible servers send arguments with the start of a call, and the same index
// twice.
func TestAnswer_CompatibleServers(t *testing.T) {
	x := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(`
{"type":"content_block_start","content_block":{"type":"tool_use","id":"a","name":"f","input":{"n":1}}}
{"type":"content_block_start","content_block":{"type":"tool_use","id":"b","name":"f","input":{}}}
{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"n\":2}"}}
{"type":"content_block_start","content_block":{"type":"text","text":"Hi"}}
{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"input_tokens":7,"output_tokens":8}}
{"type":"message_stop"}`))
	want := &model.Answer{
		Text: "Hi", Finish: model.FinishToolCalls, MessagesRead: 1, Usage: model.TokenUsage{Input: 7, Output: 8},
		Calls: []model.Call{{Provider: "a", Name: "f", Args: json.RawMessage(`{"n":1}`)}, {Provider: "b", Name: "f", Args: json.RawMessage(`{"n":2}`)}},
	}
	if diff := cmp.Diff(want, x.Answer); x.Err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", x.Err, diff)
	}
}

func TestAnswer_QuotesMalformedArguments(t *testing.T) {
	for sent, want := range map[string]string{`{\"a\":`: `"{\"a\":"`, `[1]`: `[1]`, `not json`: `"not json"`, `{\"a\":1}{`: `"{\"a\":1}{"`} {
		x := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(`
{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}
{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"`+sent+`"}}
{"type":"message_delta","delta":{"stop_reason":"tool_use"}}
{"type":"message_stop"}`))
		if x.Err != nil || string(x.Answer.Calls[0].Args) != want {
			t.Errorf("%s: got %+v (%v), want %s", sent, x.Answer, x.Err, want)
		}
	}
}
