package anthropic_test

import (
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/anthropic"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

const ok = `{"type":"message","role":"assistant","content":[{"type":"text","text":"Good."}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`

func TestRequest_Encoding(t *testing.T) {
	zero := 0.0
	r := model.Request{
		System:   "You are \"root\".",
		ToolJSON: providertest.ToolsJSON(t, "read_file", "mail/send"),
		Items: []model.Item{
			{Message: &model.Message{From: "user", Payload: json.RawMessage(`{"text":"Look","images":[{"mediaType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe"}]}`)}},
			providertest.AnswerItem(model.Answer{Text: "Two at once.", Calls: []model.Call{
				{ID: "c1", Provider: "toolu_1", Name: "read_file", Args: json.RawMessage(`{"path":"a"}`)},
				{ID: "c2", Provider: "toolu_2", Name: "mail/send", Args: json.RawMessage(`"{oops"`)},
			}}),
			{Result: &model.CallResult{Call: "c2", Tool: "mail/send", Content: json.RawMessage(`{"error":"no JSON"}`), IsError: true}},
			providertest.ResultItem("c1", "read_file", `{"mediaType":"image/gif","encoding":"base64","content":"R0lGODlhAQABAAAAAA=="}`),
			providertest.UserMessage("And then?"),
		},
	}
	x := suite.Do(t, provider.Config{Stream: false, MaxTokens: 100, Temperature: &zero}, r, 200, ok)
	if x.Err != nil {
		t.Fatal(x.Err)
	}
	if x.Path != "/v1/messages" || x.Header.Get("x-api-key") != key || x.Header.Get("anthropic-version") != "2023-06-01" {
		t.Errorf("sent to %s with %v", x.Path, x.Header)
	}
	providertest.EqualJSON(t, x.Body, `{
	"model": "claude-sonnet-4-5", "max_tokens": 100, "temperature": 0,
	"system": [{"type": "text", "text": "You are \"root\".", "cache_control": {"type": "ephemeral"}}],
	"tools": [
		{"name": "read_file", "description": "Does read_file.", "input_schema": {"type": "object"}},
		{"name": "x__mail_send_f6df7563c1c09ec34de7d9783635c205", "description": "Does mail/send.", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}
	],
	"messages": [
		{"role": "user", "content": [
			{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe"}},
			{"type": "text", "text": "Look", "cache_control": {"type": "ephemeral"}}
		]},
		{"role": "assistant", "content": [
			{"type": "text", "text": "Two at once."},
			{"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a"}},
			{"type": "tool_use", "id": "toolu_2", "name": "x__mail_send_f6df7563c1c09ec34de7d9783635c205", "input": {}}
		]},
		{"role": "user", "content": [
			{"type": "tool_result", "tool_use_id": "toolu_1", "content": [
				{"type": "text", "text": "{\"mediaType\":\"image/gif\",\"encoding\":\"base64\",\"content\":\"(shown as an image)\"}"},
				{"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lGODlhAQABAAAAAA=="}}
			]},
			{"type": "tool_result", "tool_use_id": "toolu_2", "is_error": true, "content": [{"type": "text", "text": "{\"error\":\"no JSON\"}"}]},
			{"type": "text", "text": "And then?", "cache_control": {"type": "ephemeral"}}
		]}
	]}`)
}

// The provider rejects calls in a conversation whose request declares no tools, such
// as one for a summary, or of a role that has lost its tools.
func TestRequest_CallsWithoutTools(t *testing.T) {
	r := providertest.HelloRequest()
	r.Items = append(r.Items,
		providertest.AnswerItem(model.Answer{Calls: []model.Call{{ID: "c1", Name: "look", Args: json.RawMessage(`{}`)}, {ID: "c2", Name: "look", Args: json.RawMessage(`{}`)}}}),
		providertest.ResultItem("c1", "look", `1`), providertest.ResultItem("c2", "look", `2`))
	body := providertest.Decode(t, suite.Do(t, provider.Config{}, r, 200, ok).Body).(map[string]any)
	got, _ := json.Marshal([]any{body["tool_choice"], body["tools"]})
	providertest.EqualJSON(t, string(got), `[{"type":"none"},[{"name":"look","description":"Not to be called now.","input_schema":{"type":"object"}}]]`)
}

func TestNew_Defaults(t *testing.T) {
	x := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, events(`{"type":"message_stop"}`))
	providertest.EqualJSON(t, x.Body, `{"model":"claude-sonnet-4-5","max_tokens":8192,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Hello","cache_control":{"type":"ephemeral"}}]}]}`)
	if got, want := anthropic.New(provider.Config{}).Window(), 200_000; got != want {
		t.Errorf("got a window of %d, want %d", got, want)
	}
}

func TestRequest_OmitsBlankText(t *testing.T) {
	r := model.Request{System: " \n", Items: []model.Item{providertest.UserMessage("\t"), providertest.AnswerItem(model.Answer{Text: " \n"}), providertest.UserMessage(" ")}}
	body := suite.Do(t, provider.Config{}, r, 200, ok).Body
	providertest.EqualJSON(t, body, `{"model":"claude-sonnet-4-5","max_tokens":8192,"messages":[{"role":"user","content":[{"type":"text","text":"(nothing)","cache_control":{"type":"ephemeral"}}]}]}`)
}

func TestNew_URL(t *testing.T) {
	suite.CheckURLs(t, "/v1/messages", map[string]string{"": "https://api.anthropic.com", "http://h/": "http://h", "http://h/v1": "http://h", "http://h/p/v1/": "http://h/p"})
}

// The note comes last and is not cached: the marks stand where the next request will be the
// same.
func TestRequest_NoteIsNotCached(t *testing.T) {
	r := providertest.HelloRequest()
	r.Opening, r.Note, r.NoCalls = "You count.", "Make a plan.", true
	r.ToolJSON = providertest.ToolsJSON(t, "look")
	for name, c := range map[string]struct {
		items []model.Item
		want  string
	}{
		"after a message": {nil, `[{"role":"user","content":[{"type":"text","text":"You count.\n\nHello","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Make a plan."}]}]`},
		"after a result": {
			[]model.Item{providertest.AnswerItem(model.Answer{Calls: []model.Call{{ID: "c1", Name: "look", Args: json.RawMessage(`{}`)}}}), providertest.ResultItem("c1", "look", `1`)},
			`[{"role":"user","content":[{"type":"text","text":"You count.\n\nHello","cache_control":{"type":"ephemeral"}}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"look","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"1"}],"cache_control":{"type":"ephemeral"}},{"type":"text","text":"Make a plan."}]}]`,
		},
		"after an answer": {
			[]model.Item{providertest.AnswerItem(model.Answer{Text: "I will."})},
			`[{"role":"user","content":[{"type":"text","text":"You count.\n\nHello","cache_control":{"type":"ephemeral"}}]},
			{"role":"assistant","content":[{"type":"text","text":"I will."}]},
			{"role":"user","content":[{"type":"text","text":"Make a plan."}]}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := r
			q.Items = append(q.Items[:len(q.Items):len(q.Items)], c.items...)
			body := providertest.Decode(t, suite.Do(t, provider.Config{}, q, 200, ok).Body).(map[string]any)
			got, _ := json.Marshal(body["messages"])
			providertest.EqualJSON(t, string(got), c.want)
			got, _ = json.Marshal([]any{body["tool_choice"], body["tools"]})
			providertest.EqualJSON(t, string(got), `[{"type":"none"},[{"name":"look","description":"Does look.","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]]`)
		})
	}
}

// A request in which no tool may be called says so once, whatever toolChoice is set.
func TestRequest_NoCallsOverridesToolChoice(t *testing.T) {
	suite.CheckNoCalls(t, "tool_choice")
}
