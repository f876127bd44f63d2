package bedrock_test

import (
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/bedrock"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

const ok = `{"output":{"message":{"role":"assistant","content":[{"text":"Good."}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`

func TestRequest_Encoding(t *testing.T) {
	zero := 0.0
	r := model.Request{
		System:   "You are \"root\".",
		ToolJSON: []byte(`[{"type":"function","function":{"name":"read_file","description":"Reads.","parameters":{"type":"object"}}},{"type":"function","function":{"name":"mail/send","description":"","parameters":{"type":"object"}}}]`),
		Items: []model.Item{
			{Message: &model.Message{From: "user", Payload: json.RawMessage(`{"text":"Look","images":[{"mediaType":"image/jpeg","data":"/9j/wAALCAABAAEBAREA/9oACA=="}]}`)}},
			providertest.AnswerItem(model.Answer{Text: "Two at once.", Calls: []model.Call{
				{ID: "c1", Provider: "tooluse_1", Name: "read_file", Args: json.RawMessage(`{"path":"a"}`)},
				{ID: "c2", Provider: "tooluse_2", Name: "mail/send", Args: json.RawMessage(`"{oops"`)},
			}}),
			{Result: &model.CallResult{Call: "c2", Tool: "mail/send", Content: json.RawMessage(`{"error":"no JSON"}`), IsError: true}},
			providertest.ResultItem("c1", "read_file", `{"mediaType":"image/gif","encoding":"base64","content":"R0lGODlhAQABAAAAAA=="}`),
			providertest.UserMessage("And then?"),
		},
	}
	x := suite.Do(t, provider.Config{MaxTokens: 100, Temperature: &zero}, r, 200, ok)
	if x.Err != nil {
		t.Fatal(x.Err)
	}
	if x.Path != "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse" || x.Header.Get("Authorization") != "Bearer "+key {
		t.Errorf("sent to %s with %v", x.Path, x.Header)
	}
	providertest.EqualJSON(t, x.Body, `{
	"inferenceConfig": {"maxTokens": 100, "temperature": 0},
	"system": [{"text": "You are \"root\"."}, {"cachePoint": {"type": "default"}}],
	"toolConfig": {"tools": [
		{"toolSpec": {"name": "read_file", "description": "Reads.", "inputSchema": {"json": {"type": "object"}}}},
		{"toolSpec": {"name": "x__mail_send_f6df7563c1c09ec34de7d9783635c205", "inputSchema": {"json": {"type": "object"}}}},
		{"cachePoint": {"type": "default"}}
	]},
	"messages": [
		{"role": "user", "content": [{"image": {"format": "jpeg", "source": {"bytes": "/9j/wAALCAABAAEBAREA/9oACA=="}}}, {"text": "Look"}, {"cachePoint": {"type": "default"}}]},
		{"role": "assistant", "content": [
			{"text": "Two at once."},
			{"toolUse": {"toolUseId": "tooluse_1", "name": "read_file", "input": {"path": "a"}}},
			{"toolUse": {"toolUseId": "tooluse_2", "name": "x__mail_send_f6df7563c1c09ec34de7d9783635c205", "input": {}}}
		]},
		{"role": "user", "content": [
			{"toolResult": {"toolUseId": "tooluse_1", "content": [
				{"text": "{\"mediaType\":\"image/gif\",\"encoding\":\"base64\",\"content\":\"(shown as an image)\"}"},
				{"image": {"format": "gif", "source": {"bytes": "R0lGODlhAQABAAAAAA=="}}}
			]}},
			{"toolResult": {"toolUseId": "tooluse_2", "status": "error", "content": [{"text": "{\"error\":\"no JSON\"}"}]}},
			{"text": "And then?"}, {"cachePoint": {"type": "default"}}
		]}
	]}`)
}

// Bedrock rejects cache points for models that it does not cache.
func TestRequest_CachePoints(t *testing.T) {
	for name, want := range map[string]string{
		"anthropic.claude-opus-4-1-20250805-v1:0":            `,{"cachePoint":{"type":"default"}}`,
		"us.anthropic.claude-3-7-sonnet-20250219-v1:0":       `,{"cachePoint":{"type":"default"}}`,
		"anthropic.claude-3-haiku-20240307-v1:0":             ``,
		"amazon.nova-lite-v1:0":                              ``,
		"openai.gpt-oss-120b-1:0":                            ``,
		"arn:aws:bedrock:eu-central-1:1:inference-profile/a": ``,
	} {
		x := suite.Do(t, provider.Config{Model: name}, providertest.HelloRequest(), 200, ok)
		providertest.EqualJSON(t, x.Body, `{"inferenceConfig":{},"messages":[{"role":"user","content":[{"text":"Hello"}`+want+`]}]}`)
	}
}

// Bedrock rejects calls in a conversation whose request declares no tools.
func TestRequest_CallsWithoutTools(t *testing.T) {
	r := providertest.HelloRequest()
	r.Items = append(r.Items,
		providertest.AnswerItem(model.Answer{Calls: []model.Call{{ID: "c1", Name: "look", Args: json.RawMessage(`{}`)}, {ID: "c2", Name: "look", Args: json.RawMessage(`{}`)}}}),
		providertest.ResultItem("c1", "look", `1`), providertest.ResultItem("c2", "look", `2`))
	body := providertest.Decode(t, suite.Do(t, provider.Config{}, r, 200, ok).Body).(map[string]any)
	got, _ := json.Marshal(body["toolConfig"])
	providertest.EqualJSON(t, string(got), `{"tools":[{"toolSpec":{"name":"look","description":"Not to be called now.","inputSchema":{"json":{"type":"object"}}}}]}`)
}

func TestRequest_OmitsBlankText(t *testing.T) {
	r := model.Request{System: " \n", Items: []model.Item{providertest.UserMessage("\t"), providertest.AnswerItem(model.Answer{Text: " \n"}), providertest.UserMessage(" ")}}
	body := suite.Do(t, provider.Config{Model: "amazon.nova-lite-v1:0"}, r, 200, ok).Body
	providertest.EqualJSON(t, body, `{"inferenceConfig":{},"messages":[{"role":"user","content":[{"text":"(nothing)"}]}]}`)
}

func TestNew_URL(t *testing.T) {
	for _, c := range []struct {
		config provider.Config
		want   string
	}{
		{provider.Config{Model: "amazon.nova-lite-v1:0", Region: "eu-central-1"}, "https://bedrock-runtime.eu-central-1.amazonaws.com/model/amazon.nova-lite-v1%3A0/converse"},
		{provider.Config{Model: "m", BaseURL: "http://h/p/"}, "http://h/p/model/m/converse"},
		{provider.Config{Model: "arn:aws:bedrock:eu-central-1:1:inference-profile/a b", BaseURL: "http://h"}, "http://h/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A1%3Ainference-profile%2Fa%20b/converse"},
	} {
		var requested string
		c.config.Client = providertest.Client(func(url, _ string) string {
			requested = url
			return ok
		})
		if _, _, err := providertest.Collect(t, bedrock.New(c.config), providertest.HelloRequest()); err != nil || requested != c.want {
			t.Errorf("requested %s (%v), want %s", requested, err, c.want)
		}
	}
	if got, want := bedrock.New(provider.Config{}).Window(), 200_000; got != want {
		t.Errorf("got a window of %d, want %d", got, want)
	}
}

// The note comes after the last cache point: the next request does not have it. Tools that
// may not be called stay in the request, and none is required.
func TestRequest_NoteIsNotCached(t *testing.T) {
	const point = `{"cachePoint":{"type":"default"}}`
	r := providertest.HelloRequest()
	r.Opening, r.Note, r.NoCalls = "You count.", "Make a plan.", true
	r.ToolJSON = providertest.ToolsJSON(t, "look")
	call := model.Answer{Calls: []model.Call{{ID: "c1", Name: "look", Args: json.RawMessage(`{}`)}}}
	for name, c := range map[string]struct {
		items []model.Item
		want  string
	}{
		"after a message": {nil, `[{"role":"user","content":[{"text":"You count.\n\nHello"},` + point + `,{"text":"Make a plan."}]}]`},
		"after a result": {
			[]model.Item{providertest.AnswerItem(call), providertest.ResultItem("c1", "look", `1`)},
			`[{"role":"user","content":[{"text":"You count.\n\nHello"},` + point + `]},
			{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","name":"look","input":{}}}]},
			{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"text":"1"}]}},` + point + `,{"text":"Make a plan."}]}]`,
		},
		"after an answer": {
			[]model.Item{providertest.AnswerItem(model.Answer{Text: "I will."})},
			`[{"role":"user","content":[{"text":"You count.\n\nHello"},` + point + `]},
			{"role":"assistant","content":[{"text":"I will."}]},
			{"role":"user","content":[{"text":"Make a plan."}]}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := r
			q.Items = append(q.Items[:len(q.Items):len(q.Items)], c.items...)
			config := provider.Config{Model: "anthropic.claude-opus-4-1-20250805-v1:0", Options: provider.Options{ToolChoice: provider.ToolsRequired}}
			body := providertest.Decode(t, suite.Do(t, config, q, 200, ok).Body).(map[string]any)
			got, _ := json.Marshal(body["messages"])
			providertest.EqualJSON(t, string(got), c.want)
			if tools := body["toolConfig"].(map[string]any); tools["toolChoice"] != nil || len(tools["tools"].([]any)) != 2 {
				t.Errorf("toolConfig %v", tools)
			}
		})
	}
}
