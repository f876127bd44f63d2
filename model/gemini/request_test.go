package gemini_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/gemini"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/tool"
)

func callID(s string) identity.CallID { return identity.CallID(s) }

const ok = `{"candidates":[{"content":{"parts":[{"text":"Good."}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1}}`

// wire serialises tools as a View does.
func wire(t *testing.T, names ...string) []byte {
	t.Helper()
	var list []tool.Definition
	for _, n := range names {
		list = append(list, tool.Definition{Name: n, Description: "Does " + n + ".", Input: json.RawMessage(`{"type":"object"}`)})
	}
	doc, err := tool.Wire(list)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestRequest(t *testing.T) {
	zero := 0.0
	r := model.Request{
		System:   "You are \"root\".",
		ToolJSON: wire(t, "read_file", "mail/send"),
		Items: []model.Item{
			{Message: &model.Message{From: "user", Payload: json.RawMessage(`{"text":"Look","images":[{"mediaType":"image/png","data":"AAEC"},{"mediaType":"image/gif","data":"R0lG"}]}`)}},
			answered(model.Answer{Text: "Two at once.", Calls: []model.Call{
				{ID: "c1", Name: "read_file", Args: json.RawMessage(`{"path":"a"}`)},
				{ID: "c2", Provider: "theirs", Name: "mail/send", Args: json.RawMessage(`"{oops"`)},
			}}),
			{Result: &model.Result{Call: "c2", Tool: "mail/send", Content: json.RawMessage(`{"error":"no JSON"}`), IsError: true}},
			came("c1", "read_file", `{"mediaType":"image/webp","encoding":"base64","content":"UklG"}`),
			said("And then?"),
		},
	}
	x := play(t, provider.Config{MaxTokens: 100, Temperature: &zero}, r, 200, ok)
	if x.err != nil {
		t.Fatal(x.err)
	}
	if x.path != "/v1beta/models/gemini-3-pro-preview:generateContent" || x.header.Get("x-goog-api-key") != key {
		t.Errorf("sent to %s with %v", x.path, x.header)
	}
	same(t, x.body, `{
	"tools": [{"functionDeclarations": [
		{"name": "read_file", "description": "Does read_file.", "parametersJsonSchema": {"type": "object"}},
		{"name": "x__mail_send_f6df7563c1c09ec34de7d9783635c205", "description": "Does mail/send.", "parametersJsonSchema": {"type": "object"}}
	]}],
	"systemInstruction": {"parts": [{"text": "You are \"root\"."}]},
	"generationConfig": {"maxOutputTokens": 100, "temperature": 0},
	"contents": [
		{"role": "user", "parts": [
			{"inlineData": {"mimeType": "image/png", "data": "AAEC"}},
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
			{"inlineData": {"mimeType": "image/webp", "data": "UklG"}},
			{"text": "And then?"}
		]}
	]}`)
}

func TestDefaults(t *testing.T) {
	x := play(t, provider.Config{Stream: true, Model: "models/a b"}, hello(), 200, events(ok))
	same(t, x.body, `{"generationConfig":{},"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`)
	if got, want := x.path, "/v1beta/models/a%20b:streamGenerateContent?alt=sse"; got != want || x.err != nil {
		t.Errorf("got %s (%v), want %s", got, x.err, want)
	}
	if got, want := gemini.New(provider.Config{}).Window(), 1_000_000; got != want {
		t.Errorf("got a window of %d, want %d", got, want)
	}
}

// Names that the provider would refuse, or take for another tool's, are
// offered by a digest and read back.
func TestNamesThereAndBack(t *testing.T) {
	for _, real := range []string{"plain", "mail/send", "mail.send", "x__mine", strings.Repeat("n", 65), "ünï", `a"b`, "1st"} {
		r := hello()
		r.ToolJSON = wire(t, real, "other")
		body := decode(t, play(t, provider.Config{}, r, 200, ok).body).(map[string]any)
		list := body["tools"].([]any)[0].(map[string]any)["functionDeclarations"].([]any)
		offered := list[0].(map[string]any)["name"].(string)
		reply := strings.Replace(ok, `{"text":"Good."}`, `{"functionCall":{"name":"`+offered+`","args":{}}}`, 1)
		x := play(t, provider.Config{Stream: true}, r, 200, events(reply))
		if x.err != nil || x.answer.Calls[0].Name != real || x.deltas[0].Tool != real {
			t.Errorf("%q is offered as %q and comes back as %+v (%v)", real, offered, x.answer, x.err)
		}
	}
}

func TestAddressOfTheProvider(t *testing.T) {
	for given, want := range map[string]string{"": "https://generativelanguage.googleapis.com", "http://h/": "http://h", "http://h/v1beta": "http://h", "http://h/p/v1beta/": "http://h/p"} {
		var asked string
		m := gemini.New(provider.Config{Model: name, BaseURL: given, Key: key, Client: client(func(url string) (int, string) {
			asked = url
			return 200, ok
		})})
		if _, _, err := gather(t, m, hello()); err != nil || asked != want+"/v1beta/models/gemini-3-pro-preview:generateContent" {
			t.Errorf("%q: asked %s (%v)", given, asked, err)
		}
	}
}

// A canary for the key: no error holds it, even if the provider repeats it.
func TestKeyInNoError(t *testing.T) {
	for _, status := range []int{400, 403, 429, 500, 200} {
		x := play(t, provider.Config{}, hello(), status, `{"error":{"code":400,"message":"API key `+key+` expired. Please renew the API key.","status":"INVALID_ARGUMENT"}}`)
		if x.err == nil || strings.Contains(x.err.Error(), key) || errcode.Message(x.err) == "" || strings.Contains(x.path, key) {
			t.Errorf("status %d: %v", status, x.err)
		}
	}
}
