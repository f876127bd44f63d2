package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/anthropic"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/tool"
)

func callID(s string) identity.CallID { return identity.CallID(s) }

const ok = `{"type":"message","role":"assistant","content":[{"type":"text","text":"Good."}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`

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
			{Message: &model.Message{From: "user", Payload: json.RawMessage(`{"text":"Look","images":[{"mediaType":"image/png","data":"AAEC"}]}`)}},
			answered(model.Answer{Text: "Two at once.", Calls: []model.Call{
				{ID: "c1", Provider: "toolu_1", Name: "read_file", Args: json.RawMessage(`{"path":"a"}`)},
				{ID: "c2", Provider: "toolu_2", Name: "mail/send", Args: json.RawMessage(`"{oops"`)},
			}}),
			{Result: &model.Result{Call: "c2", Tool: "mail/send", Content: json.RawMessage(`{"error":"no JSON"}`), IsError: true}},
			came("c1", "read_file", `{"mediaType":"image/gif","encoding":"base64","content":"R0lG"}`),
			said("And then?"),
		},
	}
	x := play(t, provider.Config{Stream: false, MaxTokens: 100, Temperature: &zero}, r, 200, ok)
	if x.err != nil {
		t.Fatal(x.err)
	}
	if x.path != "/v1/messages" || x.header.Get("x-api-key") != key || x.header.Get("anthropic-version") != "2023-06-01" {
		t.Errorf("sent to %s with %v", x.path, x.header)
	}
	same(t, x.body, `{
	"model": "claude-sonnet-4-5", "max_tokens": 100, "temperature": 0,
	"system": [{"type": "text", "text": "You are \"root\".", "cache_control": {"type": "ephemeral"}}],
	"tools": [
		{"name": "read_file", "description": "Does read_file.", "input_schema": {"type": "object"}},
		{"name": "x__mail_send_f6df7563c1c09ec34de7d9783635c205", "description": "Does mail/send.", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}
	],
	"messages": [
		{"role": "user", "content": [
			{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAEC"}},
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
				{"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lG"}}
			]},
			{"type": "tool_result", "tool_use_id": "toolu_2", "is_error": true, "content": [{"type": "text", "text": "{\"error\":\"no JSON\"}"}]},
			{"type": "text", "text": "And then?", "cache_control": {"type": "ephemeral"}}
		]}
	]}`)
}

// A provider refuses calls in a conversation whose request declares no tools:
// that of a summary, or of a role that may call none any more.
func TestNoToolsAnyMore(t *testing.T) {
	r := hello()
	r.Items = append(r.Items,
		answered(model.Answer{Calls: []model.Call{{ID: "c1", Name: "look", Args: json.RawMessage(`{}`)}, {ID: "c2", Name: "look", Args: json.RawMessage(`{}`)}}}),
		came("c1", "look", `1`), came("c2", "look", `2`))
	body := decode(t, play(t, provider.Config{}, r, 200, ok).body).(map[string]any)
	got, _ := json.Marshal([]any{body["tool_choice"], body["tools"]})
	same(t, string(got), `[{"type":"none"},[{"name":"look","description":"Not to be called now.","input_schema":{"type":"object"}}]]`)
}

func TestDefaults(t *testing.T) {
	x := play(t, provider.Config{Stream: true}, hello(), 200, events(`{"type":"message_stop"}`))
	same(t, x.body, `{"model":"claude-sonnet-4-5","max_tokens":8192,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Hello","cache_control":{"type":"ephemeral"}}]}]}`)
	if got, want := anthropic.New(provider.Config{}).Window(), 200_000; got != want {
		t.Errorf("got a window of %d, want %d", got, want)
	}
}

func TestBlankTextIsNotSent(t *testing.T) {
	r := model.Request{System: " \n", Items: []model.Item{said("\t"), answered(model.Answer{Text: " \n"}), said(" ")}}
	body := play(t, provider.Config{}, r, 200, ok).body
	same(t, body, `{"model":"claude-sonnet-4-5","max_tokens":8192,"messages":[{"role":"user","content":[{"type":"text","text":"(nothing)","cache_control":{"type":"ephemeral"}}]}]}`)
}

// Names that the provider would refuse, or take for another tool's, are
// offered by a digest and read back.
func TestNamesThereAndBack(t *testing.T) {
	for _, real := range []string{"plain", "mail/send", "mail.send", "x__mine", strings.Repeat("n", 65), "ünï", `a"b`, "1st"} {
		r := hello()
		r.ToolJSON = wire(t, real, "other")
		body := decode(t, play(t, provider.Config{}, r, 200, ok).body)
		offered := body.(map[string]any)["tools"].([]any)[0].(map[string]any)["name"].(string)
		reply, _ := json.Marshal(map[string]any{"stop_reason": "tool_use", "content": []any{
			map[string]any{"type": "tool_use", "id": "t", "name": offered, "input": map[string]any{}},
		}})
		x := play(t, provider.Config{}, r, 200, string(reply))
		if x.err != nil || x.answer.Calls[0].Name != real {
			t.Errorf("%q is offered as %q and comes back as %+v (%v)", real, offered, x.answer, x.err)
		}
	}
}

func TestAddressOfTheProvider(t *testing.T) {
	for given, want := range map[string]string{"": "https://api.anthropic.com", "http://h/": "http://h", "http://h/v1": "http://h", "http://h/p/v1/": "http://h/p"} {
		var asked string
		m := anthropic.New(provider.Config{Model: name, BaseURL: given, Client: client(func(url string) (int, string) {
			asked = url
			return 200, ok
		})})
		if _, _, err := gather(t, m, hello()); err != nil || asked != want+"/v1/messages" {
			t.Errorf("%q: asked %s (%v)", given, asked, err)
		}
	}
}

// A canary for the key: no error holds it, even if the provider repeats it.
func TestKeyInNoError(t *testing.T) {
	for _, status := range []int{400, 401, 429, 500, 200} {
		x := play(t, provider.Config{}, hello(), status, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key `+key+`"}}`)
		if x.err == nil || strings.Contains(x.err.Error(), key) || errcode.Message(x.err) == "" {
			t.Errorf("status %d: %v", status, x.err)
		}
	}
}
