package gemini_test

import (
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/gemini"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

const ok = `{"candidates":[{"content":{"parts":[{"text":"Good."}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1}}`

func TestRequest_Encoding(t *testing.T) {
	zero := 0.0
	r := model.Request{
		System:   "You are \"root\".",
		ToolJSON: providertest.ToolsJSON(t, "read_file", "mail/send"),
		Items: []model.Item{
			{Message: &model.Message{From: "user", Payload: json.RawMessage(`{"text":"Look","images":[{"mediaType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe"},{"mediaType":"image/gif","data":"R0lGODlhAQABAAAAAA=="}]}`)}},
			providertest.AnswerItem(model.Answer{Text: "Two at once.", Calls: []model.Call{
				{ID: "c1", Name: "read_file", Args: json.RawMessage(`{"path":"a"}`)},
				{ID: "c2", Provider: "theirs", Name: "mail/send", Args: json.RawMessage(`"{oops"`)},
			}}),
			{Result: &model.CallResult{Call: "c2", Tool: "mail/send", Content: json.RawMessage(`{"error":"no JSON"}`), IsError: true}},
			providertest.ResultItem("c1", "read_file", `{"mediaType":"image/webp","encoding":"base64","content":"UklGRhYAAABXRUJQVlA4WAoAAAAAAAAAAAAAAAAA"}`),
			providertest.UserMessage("And then?"),
		},
	}
	x := suite.Do(t, provider.Config{MaxTokens: 100, Temperature: &zero}, r, 200, ok)
	if x.Err != nil {
		t.Fatal(x.Err)
	}
	if x.Path != "/v1beta/models/gemini-3-pro-preview:generateContent" || x.Header.Get("x-goog-api-key") != key {
		t.Errorf("sent to %s with %v", x.Path, x.Header)
	}
	providertest.EqualJSON(t, x.Body, `{
	"tools": [{"functionDeclarations": [
		{"name": "read_file", "description": "Does read_file.", "parametersJsonSchema": {"type": "object"}},
		{"name": "x__mail_send_f6df7563c1c09ec34de7d9783635c205", "description": "Does mail/send.", "parametersJsonSchema": {"type": "object"}}
	]}],
	"systemInstruction": {"parts": [{"text": "You are \"root\"."}]},
	"generationConfig": {"maxOutputTokens": 100, "temperature": 0},
	"contents": [
		{"role": "user", "parts": [
			{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe"}},
			{"text": "(a picture of type image/gif, which this model cannot see)"},
			{"text": "Look"}
		]},
		{"role": "model", "parts": [
			{"text": "Two at once."},
			{"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a"}}, "thoughtSignature": "skip_thought_signature_validator"},
			{"functionCall": {"id": "theirs", "name": "x__mail_send_f6df7563c1c09ec34de7d9783635c205", "args": {}}}
		]},
		{"role": "user", "parts": [
			{"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": {"mediaType": "image/webp", "encoding": "base64", "content": "(shown as an image)"}}}},
			{"functionResponse": {"id": "theirs", "name": "x__mail_send_f6df7563c1c09ec34de7d9783635c205", "response": {"error": {"error": "no JSON"}}}},
			{"inlineData": {"mimeType": "image/webp", "data": "UklGRhYAAABXRUJQVlA4WAoAAAAAAAAAAAAAAAAA"}},
			{"text": "And then?"}
		]}
	]}`)
}

func TestNew_Defaults(t *testing.T) {
	x := suite.Do(t, provider.Config{Stream: true, Model: "models/a b"}, providertest.HelloRequest(), 200, events(ok))
	providertest.EqualJSON(t, x.Body, `{"generationConfig":{},"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`)
	if got, want := x.Path, "/v1beta/models/a%20b:streamGenerateContent?alt=sse"; got != want || x.Err != nil {
		t.Errorf("got %s (%v), want %s", got, x.Err, want)
	}
	if got, want := gemini.New(provider.Config{}).Window(), 1_000_000; got != want {
		t.Errorf("got a window of %d, want %d", got, want)
	}
}

func TestNew_URL(t *testing.T) {
	suite.CheckURLs(t, "/v1beta/models/gemini-3-pro-preview:generateContent", map[string]string{
		"": "https://generativelanguage.googleapis.com", "http://h/": "http://h", "http://h/v1beta": "http://h", "http://h/p/v1beta/": "http://h/p",
	})
}

// The opening comes before the conversation and the note after it. Tools that may not be
// called stay in the request.
func TestRequest_OpeningAndNote(t *testing.T) {
	r := providertest.HelloRequest()
	r.Opening, r.Note, r.NoCalls = "You count.", "Make a plan.", true
	r.ToolJSON = providertest.ToolsJSON(t, "look")
	body := providertest.Decode(t, suite.Do(t, provider.Config{}, r, 200, ok).Body).(map[string]any)
	got, _ := json.Marshal([]any{body["contents"], body["toolConfig"], body["tools"]})
	providertest.EqualJSON(t, string(got), `[[{"role":"user","parts":[{"text":"You count.\n\nHello"},{"text":"Make a plan."}]}],
		{"functionCallingConfig":{"mode":"NONE"}},
		[{"functionDeclarations":[{"name":"look","description":"Does look.","parametersJsonSchema":{"type":"object"}}]}]]`)
}

// A request in which no tool may be called says so once, whatever toolChoice is set.
func TestRequest_NoCallsOverridesToolChoice(t *testing.T) {
	suite.CheckNoCalls(t, "toolConfig")
}
