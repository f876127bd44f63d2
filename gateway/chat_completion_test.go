package gateway_test

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/persist/persisttest"
)

// The models of a caller are the roles that it may ask; those of the operator are all roles.
func TestModels_AreAskableRoles(t *testing.T) {
	operator, caller, _ := newAskFixture(t, echoTools)
	operator.AddRole(t, "other", "docs")
	for _, tt := range []struct {
		f    *gatewaytest.Fixture
		want string
	}{{operator, `["clerk","other"]`}, {caller, `["clerk"]`}} {
		status, text := tt.f.SendText(t, "/v1/models", "")
		if got := gjson.Get(text, "data.#.id").Raw; status != http.StatusOK || got != tt.want || gjson.Get(text, "object").Str != "list" {
			t.Errorf("%d %s, want %s", status, text, tt.want)
		}
	}
	for name, want := range map[string]int{"clerk": http.StatusOK, "other": http.StatusNotFound, "nobody": http.StatusNotFound} {
		if status, text := caller.SendText(t, "/v1/models/"+name, ""); status != want {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
}

// A completion asks an agent of the role with the last message; the messages before are data.
func TestChatCompletion_AsksRole(t *testing.T) {
	var seen gjson.Result
	_, f, _ := newAskFixture(t, func(r model.Request) model.Answer {
		seen = gjson.ParseBytes(r.Items[0].Message.Payload)
		return gatewaytest.EndAnswer("found: " + strings.Join(r.Tools, " "))
	})
	status, text := f.SendText(t, "POST /v1/chat/completions", `{"model":"clerk","temperature":0.2,"tools":[],"messages":[
		{"role":"system","content":"You are root."},{"role":"assistant","content":null},
		{"role":"user","content":[{"type":"text","text":"Which"},{"type":"text","text":"page?"}]}]}`)
	answer := gjson.Parse(text)
	if status != http.StatusOK || answer.Get("choices.0.message.content").Str != "found: find_page" || answer.Get("choices.0.finish_reason").Str != "stop" ||
		answer.Get("object").Str != "chat.completion" || !strings.HasPrefix(answer.Get("id").Str, "chatcmpl-") || answer.Get("model").Str != "clerk" {
		t.Errorf("%d %s", status, text)
	}
	if seen.Get("text").Str != "Which\npage?" || seen.Get("input.history.0.text").Str != "You are root." {
		t.Errorf("the agent read %s", seen.Raw)
	}
}

// An answer that must fit a schema is the text of a JSON value.
func TestChatCompletion_FitsSchema(t *testing.T) {
	_, f, _ := newAskFixture(t, func(r model.Request) model.Answer {
		return model.Answer{Finish: model.FinishEnd, Value: []byte(`{"n":1}`)}
	})
	for format, want := range map[string]string{
		`{"type":"json_object"}`: `{"n":1}`,
		`{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","required":["n"]}}}`: `{"n":1}`,
	} {
		_, text := f.SendText(t, "POST /v1/chat/completions", `{"model":"clerk","messages":[{"role":"user","content":"q"}],"response_format":`+format+`}`)
		if got := gjson.Get(text, "choices.0.message.content").Str; got != want {
			t.Errorf("%s: %s", format, text)
		}
	}
	status, text := f.SendText(t, "POST /v1/chat/completions", `{"model":"clerk","messages":[{"role":"user","content":"q"}],"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"array"}}}}`)
	if status != http.StatusBadGateway || gjson.Get(text, "error.code").Str != "invalid_result" {
		t.Errorf("an answer that does not fit: %d %s", status, text)
	}
}

// Requests that an agent cannot fulfil are rejected.
func TestChatCompletion_Rejects(t *testing.T) {
	_, f, _ := newAskFixture(t, echoTools)
	user := `"messages":[{"role":"user","content":"q"}]`
	for body, want := range map[string]string{
		`{}`:                                   "model",
		`[]`:                                   "malformed",
		`{"model":"clerk"}`:                    "messages",
		`{"model":"clerk","messages":[]}`:      "messages",
		`{"model":"clerk","messages":{}}`:      "messages",
		`{"model":"clerk",` + user + `,"n":2}`: "answers once",
		`{"model":"clerk",` + user + `,"tools":[{"type":"function"}]}`:                                                                             "tools of its role",
		`{"model":"clerk",` + user + `,"response_format":{"type":"xml"}}`:                                                                          "response_format",
		`{"model":"clerk",` + user + `,"response_format":{"type":"json_schema"}}`:                                                                  "response_format",
		`{"model":"clerk","messages":[{"role":"assistant","content":"q"}]}`:                                                                        "the user's",
		`{"model":"clerk","messages":[{"role":"root","content":"q"},{"role":"user","content":"q"}]}`:                                               "root",
		`{"model":"clerk","messages":[{"role":"user","content":""}]}`:                                                                              "without text",
		`{"model":"clerk","messages":[{"role":"user","content":7}]}`:                                                                               "content",
		`{"model":"clerk","messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`:                                                        "input_audio",
		`{"model":"clerk","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://10.0.0.1/x.png"}}]}]}`:              "data URL",
		`{"model":"clerk","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/svg+xml;base64,PHN2Zz4="}}]}]}`: "data URL",
		`{"model":"clerk","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%%"}}]}]}`:           "base64",
	} {
		if status, text := f.SendText(t, "POST /v1/chat/completions", body); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %s", body, status, text, want)
		}
	}
	if status, text := f.SendText(t, "POST /v1/chat/completions", `{"model":"root",`+user+`}`); status != http.StatusNotFound {
		t.Errorf("another role: %d %s", status, text)
	}
}

// deltaModel streams its answers in parts.
type deltaModel struct{ answers [][]string }

// Generate implements model.Model. Each answer but the last calls find_page.
func (m deltaModel) Generate(_ context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		n := gatewaytest.CountAnswers(r)
		parts := m.answers[min(n, len(m.answers)-1)]
		for _, text := range parts {
			if !yield(model.AnswerDelta{Text: text}, nil) {
				return
			}
		}
		answer := model.Answer{Finish: model.FinishEnd, Text: strings.Join(parts, ""), MessagesRead: 1}
		if n > 0 {
			answer.MessagesRead = 0
		}
		if n < len(m.answers)-1 {
			answer.Finish, answer.Calls = model.FinishToolCalls, []model.Call{{Name: "find_page", Args: []byte(`{}`)}}
		}
		yield(model.AnswerDelta{Answer: &answer}, nil)
	}
}

// chunks returns the joined text of a stream, its finish reasons and its last line.
func chunks(t *testing.T, stream string) (text, finish, last string) {
	t.Helper()
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		last = data
		text += gjson.Get(data, "choices.0.delta.content").Str
		finish += gjson.Get(data, "choices.0.finish_reason").Str
	}
	return text, finish, last
}

// A stream has the text of all answers, each once, and ends as OpenAI's streams do.
func TestChatCompletion_Streams(t *testing.T) {
	for _, tt := range []struct {
		answers [][]string
		want    string
	}{
		{[][]string{{"It is ", "here."}}, "It is here."},
		{[][]string{{"I look. "}, {"It is ", "here."}}, "I look. \n\nIt is here."},
		{[][]string{{}, {"It is here."}}, "It is here."},
	} {
		g := gatewaytest.NewFixture(t, persisttest.Open(t), deltaModel{tt.answers})
		g.AddTool(t, "docs", "find_page")
		g.AddRole(t, "reader", "docs")
		body := `{"model":"reader","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"q"}]}`
		stream := g.SendRequest(t, "POST /v1/chat/completions", body, nil).Body.String()
		text, finish, last := chunks(t, stream)
		if diff := cmp.Diff(tt.want, text); diff != "" || finish != "stop" || last != "[DONE]" || !strings.Contains(stream, `"choices":[],"usage":{`) {
			t.Errorf("text (-want +got):\n%s\nfinish %q, last %q\n%s", diff, finish, last, stream)
		}
	}
}

// The value of a script and an error come at the end of a stream.
func TestChatCompletion_StreamEnds(t *testing.T) {
	_, f, _ := newAskFixture(t, func(r model.Request) model.Answer {
		if gjson.GetBytes(r.Items[0].Message.Payload, "text").Str == "fail" {
			return model.Answer{}
		}
		return model.Answer{Finish: model.FinishEnd, Value: []byte(`{"n":1}`)}
	})
	body := `{"model":"clerk","stream":true,"messages":[{"role":"user","content":"%s"}]}`
	text, _, last := chunks(t, f.SendRequest(t, "POST /v1/chat/completions", strings.Replace(body, "%s", "q", 1), nil).Body.String())
	if text != `{"n":1}` || last != "[DONE]" {
		t.Errorf("text %q, last %q", text, last)
	}
	_, _, last = chunks(t, f.SendRequest(t, "POST /v1/chat/completions", strings.Replace(body, "%s", "fail", 1), nil).Body.String())
	if gjson.Get(last, "error.message").Str == "" {
		t.Errorf("last %q", last)
	}
}
