package responses_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

// The items of an answer with reasoning, text and two calls.
const (
	reasoning1 = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Two files."}],"encrypted_content":"gAAA/+=","status":null}`
	message1   = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Für both.","annotations":[],"logprobs":[]}]}`
	call1      = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"read_file","arguments":"{\"path\":\"a\"}"}`
	reasoning2 = `{"id":"rs_2","type":"reasoning","summary":[],"encrypted_content":"second"}`
	call2      = `{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_2","name":"now","arguments":"{}"}`
	searched   = `{"id":"ws_1","type":"web_search_call","status":"completed"}`
	items      = `[` + reasoning1 + `,` + message1 + `,` + call1 + `,` + searched + `,` + reasoning2 + `,` + call2 + `]`
	used       = `"usage":{"input_tokens":4325,"input_tokens_details":{"cached_tokens":4000},"output_tokens":89,"output_tokens_details":{"reasoning_tokens":64},"total_tokens":4414}`
)

// thoughtful is a stream of these items, with events that are ignored.
const thoughtful = `
{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"output":[],"usage":null}}
{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}
{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}
{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}
{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Two files."}
{"type":"response.output_item.done","output_index":0,"item":` + reasoning1 + `}
{"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}
{"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}
{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"Für ","obfuscation":"x"}
{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"both."}
{"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"Für both."}
{"type":"response.output_item.done","output_index":1,"item":` + message1 + `}
{"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_1","name":"read_file","arguments":""}}
{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"path\":"}
{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"\"a\"}"}
{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"arguments":"{\"path\":\"a\"}"}
{"type":"response.output_item.done","output_index":2,"item":` + call1 + `}
{"type":"response.output_item.added","output_index":3,"item":{"id":"ws_1","type":"web_search_call"}}
{"type":"response.output_item.done","output_index":3,"item":` + searched + `}
{"type":"response.output_item.done","output_index":4,"item":` + reasoning2 + `}
{"type":"response.output_item.done","output_index":5,"item":` + call2 + `}
{"type":"response.completed","response":{"id":"resp_1","status":"completed","error":null,"incomplete_details":null,"output":` + items + `,` + used + `}}
`

// thoughtfulWhole is the same answer as one document.
const thoughtfulWhole = `{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"output":` + items + `,` + used + `}`

func TestAnswer_ItemsInOrder(t *testing.T) {
	want := &model.Answer{
		Text: "Für both.", Finish: model.FinishToolCalls, MessagesRead: 1, Provider: "openai-responses",
		Calls: []model.Call{
			{Provider: "call_1", Name: "read_file", Args: json.RawMessage(`{"path":"a"}`)},
			{Provider: "call_2", Name: "now", Args: json.RawMessage(`{}`)},
		},
		Usage: model.TokenUsage{Input: 4325, Cached: 4000, Output: 89},
	}
	streamed := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(thoughtful))
	whole := suite.Do(t, provider.Config{}, providertest.HelloRequest(), 200, thoughtfulWhole)
	unstreamed := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, thoughtfulWhole)
	late := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(`{"type":"response.completed","response":`+strings.ReplaceAll(thoughtfulWhole, "\n", "")+`}`))
	for how, x := range map[string]providertest.Exchange{"streamed": streamed, "whole": whole, "whole instead of a stream": unstreamed, "all at the end": late} {
		if x.Err != nil || len(x.Answer.Reasoning) == 0 {
			t.Fatalf("%s: got %+v (%v)", how, x.Answer, x.Err)
		}
		got := *x.Answer
		got.Reasoning = nil
		if diff := cmp.Diff(want, &got); diff != "" || string(x.Answer.Reasoning) != string(streamed.Answer.Reasoning) {
			t.Errorf("%s: reasoning %s (-want +got):\n%s", how, x.Answer.Reasoning, diff)
		}
	}
	shown := []model.AnswerDelta{{Text: "Für "}, {Text: "both."}, {Tool: "read_file"}, {Args: `{"path":`}, {Args: `"a"}`}, {Tool: "now"}, {Args: "{}"}}
	if diff := cmp.Diff(shown, streamed.Deltas); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
}

// Reasoning is sent back in its place, without the fields that the API does not accept.
func TestReasoning_IsSentBack(t *testing.T) {
	const (
		sent1    = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Two files."}],"encrypted_content":"gAAA/+="}`
		sent2    = `{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"second"}`
		text     = `{"type":"message","role":"assistant","content":"Für both."`
		read     = `{"type":"function_call","call_id":"call_1","name":"read_file","arguments":"{\"path\":\"a\"}"}`
		now      = `{"type":"function_call","call_id":"call_2","name":"now","arguments":"{}"}`
		inOrder  = `[` + sent1 + `,` + text + `,"phase":"commentary"},` + read + `,` + sent2 + `,` + now + `]`
		withouts = `[` + text + `},` + read + `,` + now + `]`
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
		{"another model", func(*model.Answer) {}, "gpt-5", withouts},
		{"another provider", func(a *model.Answer) { a.Provider = "openai" }, name, withouts},
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
			input := gjson.Get(x.Body, "input").Array()
			var kept []string
			for _, it := range input[1 : len(input)-2] {
				kept = append(kept, it.Raw)
			}
			providertest.EqualJSON(t, "["+strings.Join(kept, ",")+"]", c.want)
		})
	}
}

// Servers without encrypted reasoning send it as text. Reasoning that the server cannot
// read again is not sent back.
func TestReasoning_WithoutEncryption(t *testing.T) {
	for name, c := range map[string]struct{ items, want string }{
		"text":             {`{"type":"reasoning","id":"r","summary":[],"content":[{"type":"reasoning_text","text":"Hm"}],"encrypted_content":null},` + call1, `{"type":"reasoning","id":"r","summary":[],"content":[{"type":"reasoning_text","text":"Hm"}]}`},
		"no summary":       {`{"type":"reasoning","encrypted_content":"x"},` + call1, `{"type":"reasoning","summary":[],"encrypted_content":"x"}`},
		"only an id":       {`{"type":"reasoning","id":"r","summary":[],"encrypted_content":null},` + call1, ``},
		"no item after it": {call1 + `,` + reasoning2, ``},
		"an empty message": {`{"type":"message","content":[]},` + reasoning2, ``},
	} {
		x := suite.Do(t, provider.Config{}, providertest.HelloRequest(), 200, `{"status":"completed","output":[`+c.items+`]}`)
		if got := gjson.GetBytes(x.Answer.Reasoning, "parts.0.raw").Raw; x.Err != nil || got != c.want {
			t.Errorf("%s: got %s (%v), want %s", name, got, x.Err, c.want)
		}
	}
}

const text = `{"type":"response.output_text.delta","output_index":0,"delta":"So far"}
`

// refused is a stream in which the model refuses.
const refused = `
{"type":"response.output_item.added","output_index":0,"item":{"type":"message","content":[]}}
{"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"I will "}
{"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"not."}
{"type":"response.refusal.done","output_index":0,"content_index":0,"refusal":"I will not."}
{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"refusal","refusal":"I will not."}]}}
{"type":"response.completed","response":{"status":"completed","usage":{"output_tokens":3}}}
`

// failed ends a stream.
const failed = `{"type":"response.failed","response":{"status":"failed","instructions":"context_length_exceeded","error":{"code":"server_error","message":"It broke."}}}`

func incomplete(reason string) string {
	return `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"` + reason + `"},"usage":{"output_tokens":3}}}`
}

func TestAnswer_Ends(t *testing.T) {
	const called = `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}
`
	const completed = `{"type":"response.completed","response":{"status":"completed","usage":{"output_tokens":3}}}`
	wantAnswer := suite.AnswerCases(t, model.TokenUsage{Output: 3}, events)
	wantAnswer("completed", text+completed, model.Answer{Text: "So far", Finish: model.FinishEnd})
	wantAnswer("empty answer", completed, model.Answer{Finish: model.FinishEnd})
	wantAnswer("length", text+incomplete("max_output_tokens"), model.Answer{Text: "So far", Finish: model.FinishEnd, Stop: model.Length})
	wantAnswer("unknown reason", text+incomplete("tea"), model.Answer{Text: "So far", Finish: model.FinishEnd, Stop: model.Length})
	wantAnswer("truncated call", text+called+incomplete("max_output_tokens"),
		model.Answer{Text: "So far", Finish: model.FinishToolCalls, Stop: model.Length, Calls: []model.Call{{Provider: "a", Name: "f", Args: []byte(`""`)}}})
	wantAnswer("filtered", incomplete("content_filter"), model.Answer{Text: "The model refused to answer (content_filter).", Finish: model.FinishEnd, Stop: model.ContentFilter})
	wantAnswer("filtered after a call", text+called+incomplete("content_filter"),
		model.Answer{Text: "So far\n\nThe model refused to go on (content_filter).", Finish: model.FinishEnd, Stop: model.ContentFilter})
	wantAnswer("refusal", refused, model.Answer{Text: "I will not.", Finish: model.FinishEnd, Stop: model.Refusal})
}

// Reasoning of an incomplete answer is not sent back: the item after it is missing or
// incomplete.
func TestAnswer_IncompleteHasNoReasoning(t *testing.T) {
	x := suite.Do(t, provider.Config{}, providertest.HelloRequest(), 200, `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":`+items+`}`)
	if x.Err != nil || x.Answer.Stop != model.Length || x.Answer.Reasoning != nil {
		t.Errorf("got %+v (%v)", x.Answer, x.Err)
	}
}

func TestAnswer_Errors(t *testing.T) {
	const permanent, transient = false, true
	errorEvent := func(fields string) string { return events(text + `{"type":"error",` + fields + `}`) }
	wantError := suite.ErrorCases(t)
	wantError("failed", 200, events(text+failed), errcode.LLMCallFailed, transient, "status 500): It broke.")
	wantError("failed, whole", 200, `{"status":"failed","error":{"code":"server_error","message":"It broke."},"output":[]}`, errcode.LLMCallFailed, transient, "It broke.")
	wantError("rate limit in the stream", 200, errorEvent(`"code":"rate_limit_exceeded","message":"Slow down","param":null`), errcode.RateLimited, transient, "Slow down")
	wantError("error object in the stream", 200, errorEvent(`"error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}`), errcode.ContextExceeded, permanent, "exceeds the context window")
	wantError("prompt rejected in the stream", 200, errorEvent(`"code":"invalid_prompt","message":"Against our policy"`), errcode.LLMCallFailed, permanent, "policy")
	wantError("no credit in the stream", 200, errorEvent(`"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}`), errcode.LLMCallFailed, permanent, "no credit left")
	wantError("unknown error in the stream", 200, errorEvent(`"code":null,"message":"Tea"`), errcode.LLMCallFailed, transient, "status 500): Tea")
	wantError("cancelled", 200, `{"status":"cancelled","output":[]}`, errcode.LLMCallFailed, transient, `aborted its answer: "cancelled"`)
	wantError("no output", 200, `{"choices":[]}`, errcode.LLMCallFailed, transient, "without output")
	wantError("bad request", 400, `{"error":{"message":"Unknown parameter: 'input[1].status'.","type":"invalid_request_error","param":"input[1].status","code":"unknown_parameter"}}`, errcode.LLMCallFailed, permanent, "Unknown parameter")
	wantError("wrong key", 401, `{"error":{"message":"Incorrect API key provided: `+key+`"}}`, errcode.LLMCallFailed, permanent, "***")
	wantError("truncated stream", 200, events(text), errcode.LLMCallFailed, transient, "stopped in the middle")
	wantError("empty stream", 200, "", errcode.LLMCallFailed, transient, "stopped in the middle")
	wantError("too many calls", 200, `{"output":[`+strings.Repeat(call2+",", 300)+call2+`]}`, errcode.LLMCallFailed, permanent, "256 calls")
	wantError("too many items", 200, `{"output":[`+strings.Repeat(searched+",", 2000)+call2+`]}`, errcode.LLMCallFailed, permanent, "1024")
	wantError("too much reasoning", 200, `{"output":[{"type":"reasoning","encrypted_content":"`+strings.Repeat("x", 9<<20)+`"}]}`, errcode.LLMCallFailed, permanent, "bytes of reasoning")
}

// Some servers announce no items, and end the stream as chat completions do.
func TestAnswer_CompatibleServers(t *testing.T) {
	x := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(`
{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"n\":1}"}
{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":"{\"n\":1}"}}
{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"type":"output_text","text":"Hi"}]}}`)+"data: [DONE]\n\n")
	want := &model.Answer{Text: "Hi", Finish: model.FinishToolCalls, MessagesRead: 1, Calls: []model.Call{{Provider: "a", Name: "f", Args: json.RawMessage(`{"n":1}`)}}}
	if diff := cmp.Diff(want, x.Answer); x.Err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", x.Err, diff)
	}
}
