package openai_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

// sentRequest returns the request that a model sends for r.
func sentRequest(t *testing.T, c provider.Config, r model.Request) (header http.Header, body []byte) {
	t.Helper()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" || r.ContentLength != int64(len(body)) {
			t.Errorf("got %s %s with %d of %d bytes", r.Method, r.URL, len(body), r.ContentLength)
		}
		io.WriteString(w, `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}`)
	})
	c.BaseURL, c.Client = server.BaseURL, server.Client
	if o := ask(t, openai.New(c), r); o.err != nil {
		t.Fatal(o.err)
	}
	return header, body
}

func TestRequest_Options(t *testing.T) {
	cold := 0.0
	for _, c := range []struct {
		name   string
		config provider.Config
		want   string
	}{
		{"defaults", provider.Config{Model: "m"}, `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`},
		{"streaming", provider.Config{Model: "m", Stream: true}, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hi"}]}`},
		{"options", provider.Config{Model: "m\"", MaxTokens: 100, Temperature: &cold}, `{"model":"m\"","max_tokens":100,"temperature":0,"messages":[{"role":"user","content":"Hi"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			header, body := sentRequest(t, c.config, model.Request{Items: []model.Item{messageItem("user", `{"text":"Hi"}`)}})
			providertest.EqualJSON(t, string(body), c.want)
			if _, ok := header["Authorization"]; ok || header.Get("Content-Type") != "application/json" {
				t.Errorf("got %v", header)
			}
		})
	}
	if header, _ := sentRequest(t, provider.Config{Key: secret}, hello(t)); header.Get("Authorization") != "Bearer "+secret {
		t.Errorf("got %v", header)
	}
}

// redirectTransport sends requests for any host to server.
type redirectTransport struct{ server *httptest.Server }

func (d redirectTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", d.server.Listener.Addr().String()
	return http.DefaultTransport.RoundTrip(r)
}

// OpenAI's own models reject max_tokens; other servers know only that.
func TestRequest_MaxTokensField(t *testing.T) {
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		io.WriteString(w, `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	for url, want := range map[string]string{
		"":                                     `"max_completion_tokens":7`,
		"https://api.openai.com/v1":            `"max_completion_tokens":7`,
		"https://eu.api.openai.com/v1":         `"max_completion_tokens":7`,
		"https://x.openai.azure.com/openai/v1": `"max_completion_tokens":7`,
		"https://x.services.ai.azure.com/openai/v1": `"max_completion_tokens":7`,
		"https://api.openai.com.example/v1":         `"max_tokens":7`,
		"https://notapi.openai.com/v1":              `"max_tokens":7`,
		"https://api.deepseek.com":                  `"max_tokens":7`,
		"http://localhost:11434/v1":                 `"max_tokens":7`,
	} {
		o := ask(t, openai.New(provider.Config{BaseURL: url, MaxTokens: 7, Client: &http.Client{Transport: redirectTransport{server}}}), hello(t))
		if o.err != nil || !bytes.Contains(body, []byte(want)) {
			t.Errorf("%q: %v, got %s", url, o.err, body)
		}
	}
}

func TestRequest_ToolsAreUnchanged(t *testing.T) {
	wire := []byte(`[ {"type":"function" , "function":{"name":"read_file","description":"<b>","parameters":{"type":"object"}}} ]`)
	_, body := sentRequest(t, provider.Config{}, model.Request{ToolJSON: wire})
	if !bytes.HasSuffix(body, append(append([]byte(`,"tools":`), wire...), '}')) {
		t.Errorf("got %s", body)
	}
	for _, none := range [][]byte{nil, []byte("[]")} {
		if _, body := sentRequest(t, provider.Config{}, model.Request{ToolJSON: none}); bytes.Contains(body, []byte("tool")) {
			t.Errorf("got %s", body)
		}
	}
}

func appendCall(id, provider, name, args string) model.Call {
	return model.Call{ID: identity.CallID(id), Provider: provider, Name: name, Args: json.RawMessage(args)}
}

func TestRequest_Conversation(t *testing.T) {
	const pixel = `{"mediaType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe"}`
	_, body := sentRequest(t, provider.Config{Model: "m"}, model.Request{
		System: "Be \u2028 <brief>.\n",
		Items: []model.Item{
			messageItem("user", `{"text":"What is this?","images":[`+pixel+`]}`),
			providertest.AnswerItem(model.Answer{Text: "I look.", Finish: model.FinishToolCalls, Calls: []model.Call{appendCall("1", "call_x", "read_file", `{"path": "a"}`), appendCall("2", "", "a.b", `"{path: b"`)}}),
			{Result: &model.CallResult{Call: "1", Content: json.RawMessage(`{"encoding":"base64","mediaType":"image/png","content":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe"}`)}},
			{Result: &model.CallResult{Call: "2", Content: json.RawMessage(`{"error":"no JSON"}`), IsError: true}},
			providertest.AnswerItem(model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{appendCall("3", "call_y", "read_file", `{}`)}}),
			resultItem("3", `{"content":"b"}`),
			providertest.AnswerItem(model.Answer{Text: "A pixel.", Finish: model.FinishEnd}),
			messageItem("agent-7", `{"text":"Done?"}`),
		},
	})
	providertest.EqualJSON(t, string(body), `{"model":"m","messages":[
		{"role":"system","content":"Be \u2028 <brief>.\n"},
		{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe"}}]},
		{"role":"assistant","content":"I look.","tool_calls":[
			{"id":"call_x","type":"function","function":{"name":"read_file","arguments":"{\"path\": \"a\"}"}},
			{"id":"2","type":"function","function":{"name":"`+chat.ProviderName("a.b")+`","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"call_x","content":"{\"encoding\":\"base64\",\"mediaType\":\"image/png\",\"content\":\"(shown as an image)\"}"},
		{"role":"tool","tool_call_id":"2","content":"{\"error\":\"no JSON\"}"},
		{"role":"user","content":[{"type":"text","text":"The image in the result of read_file, call call_x:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe"}}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"call_y","type":"function","function":{"name":"read_file","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"call_y","content":"{\"content\":\"b\"}"},
		{"role":"assistant","content":"A pixel."},
		{"role":"user","content":"{\"from\":\"agent-7\",\"payload\":{\"text\":\"Done?\"}}"}]}`)
}

// Reasoning is sent back to the provider it came from if a tool was called in the
// turn.
func TestReasoning_IsSentBack(t *testing.T) {
	thought := func(a model.Answer, reasoning string) model.Item {
		a.Reasoning, a.Provider = json.RawMessage(reasoning), "openai"
		return providertest.AnswerItem(a)
	}
	foreign := model.Answer{Calls: []model.Call{appendCall("4", "", "f", `{}`)}, Reasoning: json.RawMessage(`{"reasoning_content":"foreign"}`), Provider: "anthropic"}
	_, body := sentRequest(t, provider.Config{}, model.Request{Items: []model.Item{
		messageItem("user", `{"text":"a"}`),
		thought(model.Answer{Text: "No tool."}, `{"reasoning_content":"not wanted"}`),
		messageItem("user", `{"text":"b"}`),
		thought(model.Answer{Calls: []model.Call{appendCall("1", "", "f", `{}`)}}, `{"reasoning_content":"first","role":"system","content":"smuggled"}`),
		resultItem("1", `{}`),
		thought(model.Answer{Text: "Done."}, `{"reasoning_details":[{"type":"reasoning.text","text":"second"}]}`),
		messageItem("user", `{"text":"c"}`),
		thought(model.Answer{Calls: []model.Call{appendCall("2", "", "f", `{}`)}}, `{"reasoning":"third"}`),
		resultItem("2", `{}`),
		providertest.AnswerItem(foreign),
		resultItem("4", `{}`),
	}})
	var got struct{ Messages []map[string]any }
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	var kept []any
	for _, m := range got.Messages {
		if m["role"] == "assistant" {
			kept = append(kept, m["reasoning_content"], m["reasoning_details"], m["reasoning"])
		}
		if m["content"] == "smuggled" || m["role"] == "system" {
			t.Errorf("fields of the reasoning replace fields of the message: %v", m)
		}
	}
	want := []any{nil, nil, nil, "first", nil, nil, nil, []any{map[string]any{"type": "reasoning.text", "text": "second"}}, nil, nil, nil, "third", nil, nil, nil}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Reasoning details are sent back as they were received.
func TestReasoning_IsSentBackUnchanged(t *testing.T) {
	details := `[{"type":"reasoning.text","text":"a","format":"f","index":0,"signature":"s","new":{"x":[1]}},{"type":"reasoning.encrypted","data":"d","id":"i","index":1}]`
	reply := `{"choices":[{"message":{"content":null,"reasoning":"a","reasoning_details":` + details + `,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
	c := serve(t, respondWith(reply))
	c.Stream = false
	first := ask(t, openai.New(c), hello(t))
	if first.err != nil {
		t.Fatal(first.err)
	}
	_, body := sentRequest(t, provider.Config{}, model.Request{Items: []model.Item{messageItem("user", `{"text":"x"}`), providertest.AnswerItem(*first.answer)}})
	if !strings.Contains(string(body), `"reasoning_details":`+details) {
		t.Errorf("got %s", body)
	}
}

func TestNew_Window(t *testing.T) {
	if got := openai.New(provider.Config{}).Window(); got != 128_000 {
		t.Errorf("got %d", got)
	}
	if got := openai.New(provider.Config{Window: 8192}).Window(); got != 8192 {
		t.Errorf("got %d", got)
	}
}

// The opening comes before the conversation and the note after it. Tools that may not be
// called stay in the request.
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
		"a text":   {r.Items, `[{"role":"user","content":"You count.\n\nHello\n\nMake a plan."}]`},
		"an image": {[]model.Item{image}, `[{"role":"user","content":[{"type":"text","text":"You count.\n\nHello"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe"}},{"type":"text","text":"Make a plan."}]}]`},
	} {
		t.Run(name, func(t *testing.T) {
			r.Items = c.items
			body := providertest.Decode(t, suite.Do(t, provider.Config{}, r, 200, `{}`).Body).(map[string]any)
			got, _ := json.Marshal(body["messages"])
			providertest.EqualJSON(t, string(got), c.want)
			if tools, _ := body["tools"].([]any); body["tool_choice"] != "none" || len(tools) != 1 {
				t.Errorf("tool_choice %v, tools %v", body["tool_choice"], body["tools"])
			}
		})
	}
}

// A request in which no tool may be called says so once, whatever toolChoice is set.
func TestRequest_NoCallsOverridesToolChoice(t *testing.T) {
	suite.CheckNoCalls(t, "tool_choice")
}
