package responses_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/openai/responses"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

const ok = `{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Good."}]}],"usage":{"input_tokens":1,"output_tokens":1}}`

func TestRequest_Encoding(t *testing.T) {
	zero := 0.0
	r := model.Request{
		System:   "You are \"root\".",
		ToolJSON: providertest.ToolsJSON(t, "read_file", "mail/send"),
		Items: []model.Item{
			{Message: &model.Message{From: "user", Payload: json.RawMessage(`{"text":"Look","images":[{"mediaType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe"}]}`)}},
			providertest.AnswerItem(model.Answer{Text: "Two at once.", Calls: []model.Call{
				{ID: "c1", Provider: "call_1", Name: "read_file", Args: json.RawMessage(`{"path": "a"}`)},
				{ID: "c2", Provider: strings.Repeat("c", 65), Name: "mail/send", Args: json.RawMessage(`"{oops"`)},
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
	if x.Path != "/responses" || x.Header.Get("Authorization") != "Bearer "+key {
		t.Errorf("sent to %s with %v", x.Path, x.Header)
	}
	providertest.EqualJSON(t, x.Body, `{
	"model": "gpt-5-mini", "store": false, "include": ["reasoning.encrypted_content"], "max_output_tokens": 100, "temperature": 0,
	"instructions": "You are \"root\".",
	"input": [
		{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look"}, {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe"}]},
		{"type": "message", "role": "assistant", "content": "Two at once."},
		{"type": "function_call", "call_id": "call_1", "name": "read_file", "arguments": "{\"path\": \"a\"}"},
		{"type": "function_call", "call_id": "x_`+hashed+`", "name": "x__mail_send_f6df7563c1c09ec34de7d9783635c205", "arguments": "{}"},
		{"type": "function_call_output", "call_id": "call_1", "output": [
			{"type": "input_text", "text": "{\"mediaType\":\"image/gif\",\"encoding\":\"base64\",\"content\":\"(shown as an image)\"}"},
			{"type": "input_image", "detail": "auto", "image_url": "data:image/gif;base64,R0lGODlhAQABAAAAAA=="}
		]},
		{"type": "function_call_output", "call_id": "x_`+hashed+`", "output": "{\"error\":\"no JSON\"}"},
		{"type": "message", "role": "user", "content": "And then?"}
	],
	"tools": [
		{"type": "function", "name": "read_file", "description": "Does read_file.", "parameters": {"type": "object"}, "strict": false},
		{"type": "function", "name": "x__mail_send_f6df7563c1c09ec34de7d9783635c205", "description": "Does mail/send.", "parameters": {"type": "object"}, "strict": false}
	]}`)
}

// hashed is the hash of an id that is too long.
const hashed = "b30855e510446ac34706c5acafeedefd"

func TestNew_Defaults(t *testing.T) {
	x := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, ok)
	providertest.EqualJSON(t, x.Body, `{"model":"gpt-5-mini","store":false,"include":["reasoning.encrypted_content"],"stream":true,"input":[{"type":"message","role":"user","content":"Hello"}]}`)
	if got, want := responses.New(provider.Config{}).Window(), 128_000; got != want {
		t.Errorf("got a window of %d, want %d", got, want)
	}
}

// OpenAI rejects the question for encrypted reasoning for models that do not reason.
func TestRequest_AsksForEncryptedReasoning(t *testing.T) {
	for name, want := range map[string]bool{
		"gpt-5-mini": true, "o3": true, "gpt-6": true, "ft:o4-mini:me": true, "qwen3": true, "openai/gpt-oss-20b": true,
		"gpt-4o": false, "gpt-4.1-mini": false, "GPT-4": false, "ft:gpt-4o:me": false, "gpt-3.5-turbo": false, "chatgpt-4o-latest": false, "gpt-5-chat-latest": false,
	} {
		x := suite.Do(t, provider.Config{Model: name}, providertest.HelloRequest(), 200, ok)
		if got := gjson.Get(x.Body, "include.0").Exists(); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	x := suite.Do(t, provider.Config{Options: provider.Options{Body: json.RawMessage(`{"include":[]}`)}}, providertest.HelloRequest(), 200, ok)
	if strings.Count(x.Body, `"include"`) != 1 || gjson.Get(x.Body, "include.0").Exists() {
		t.Errorf("a field of the document is not used: %s", x.Body)
	}
}

func TestNew_URL(t *testing.T) {
	suite.CheckURLs(t, "/responses", map[string]string{"": "https://api.openai.com/v1", "http://h/": "http://h", "http://h/v1/": "http://h/v1"})
}

// The note comes after everything that the next request has, too. Tools that may not be
// called stay in the request, whatever toolChoice is set.
func TestRequest_OpeningAndNote(t *testing.T) {
	r := providertest.HelloRequest()
	r.Opening, r.Note, r.NoCalls = "You count.", "Make a plan.", true
	r.ToolJSON = providertest.ToolsJSON(t, "look")
	image := providertest.UserMessage("Hello")
	image.Message.Payload = json.RawMessage(`{"text":"Hello","images":[{"mediaType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe"}]}`)
	for name, c := range map[string]struct {
		items []model.Item
		want  string
	}{
		"a text":   {r.Items, `"You count.\n\nHello\n\nMake a plan."`},
		"an image": {[]model.Item{image}, `[{"type":"input_text","text":"You count.\n\nHello"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe"},{"type":"input_text","text":"Make a plan."}]`},
	} {
		t.Run(name, func(t *testing.T) {
			r.Items = c.items
			body := suite.Do(t, provider.Config{Options: provider.Options{ToolChoice: provider.ToolsRequired}}, r, 200, ok).Body
			providertest.EqualJSON(t, gjson.Get(body, "input").Raw, `[{"type":"message","role":"user","content":`+c.want+`}]`)
			if strings.Count(body, `"tool_choice"`) != 1 || gjson.Get(body, "tool_choice").Str != "none" || gjson.Get(body, "tools.#").Int() != 1 {
				t.Errorf("tool_choice %s, tools %s", gjson.Get(body, "tool_choice"), gjson.Get(body, "tools"))
			}
		})
	}
}
