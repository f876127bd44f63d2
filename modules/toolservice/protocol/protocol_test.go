package protocol_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

func TestParseTopic_BothSpellings(t *testing.T) {
	for text, want := range map[string][2]string{
		"non-persistent://tg/request/joke":  {"tg.request.joke", "non-persistent://tg/request/joke"},
		"request:tg:joke":                   {"tg.request.joke", "non-persistent://tg/request/joke"},
		"non-persistent://tg/response/joke": {"tg.response.joke", "non-persistent://tg/response/joke"},
		"response:lab:a:b":                  {"lab.response.a.b", "non-persistent://lab/response/a.b"},
		"persistent://tg/flow/x-1_y":        {"tg.flow.x-1_y", "persistent://tg/flow/x-1_y"},
		"flow:tg:x":                         {"tg.flow.x", "persistent://tg/flow/x"},
		"x":                                 {"tg.flow.x", "persistent://tg/flow/x"},
		"notify:tg:x.y":                     {"tg.notify.x.y", "non-persistent://tg/notify/x.y"},
	} {
		topic, err := protocol.ParseTopic(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, [2]string{topic.Subject(), topic.URL()}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestParseTopic_Rejects(t *testing.T) {
	for _, text := range []string{
		"", "request:tg:", "request::joke", "request:tg", "other:tg:joke", "request:tg:a b", "request:tg:*", "request:tg:>", "request:tg:a.>",
		"request:tg:.a", "request:tg:a..b", "request:tg:a::b", "request:tg:ä", "request:tg:a\nb", "request:t/g:a", "non-persistent://tg/request",
		"non-persistent://tg/request/a/b", "non-persistent://tg/request/a b", "persistent://tg/request/a", "non-persistent://tg/flow/a", "http://tg/request/a",
		"request:tg:" + strings.Repeat("x", 300), "$SYS.a",
	} {
		if topic, err := protocol.ParseTopic(text); errcode.CodeOf(err) != errcode.InvalidConfig {
			t.Errorf("%.50q: %+v, %v", text, topic, err)
		}
	}
}

// The bodies of TrustGraph's versions before and after 2.4, as they were seen on the wire.
func TestDecodeRequest_BodiesOfTrustGraph(t *testing.T) {
	for body, want := range map[string]protocol.Request{
		`{"config": "{\"style\": \"pun\"}", "arguments": "{\"topic\": \"llamas\"}"}`:                                       {"", `{"style": "pun"}`, `{"topic": "llamas"}`},
		`{"user": "alice", "config": "{\"collection\": \"customers\"}", "arguments": "{\"question\": \"...\"}", "x": [1]}`: {"alice", `{"collection": "customers"}`, `{"question": "..."}`},
		`{"config": "", "arguments": ""}`: {"", "{}", "{}"},
		`{}`:                              {"", "{}", "{}"},
	} {
		got, err := protocol.DecodeRequest([]byte(body))
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
}

func TestDecodeResponse_BodiesOfTrustGraph(t *testing.T) {
	for body, want := range map[string]protocol.Response{
		`{"error": null, "response": "...text...", "end_of_stream": true}`:                                                     {nil, "...text...", true},
		`{"error": {"type": "tool-service-error", "message": "bad input: \"\u00e9\""}, "response": "", "end_of_stream": true}`: {&protocol.Error{Type: "tool-service-error", Message: `bad input: "é"`}, "", true},
		`{"response": {"a": [1, 2]}}`: {nil, `{"a": [1, 2]}`, false},
		`{"response": 5}`:             {nil, "5", false},
		`{"response": null}`:          {nil, "", false},
		`{}`:                          {nil, "", false},
	} {
		got, err := protocol.DecodeResponse([]byte(body))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", body, err, diff)
		}
	}
	for _, body := range []string{"", "text", "[]", `"text"`, `{"error": "text"}`, `{"end_of_stream": "yes"}`} {
		if got, err := protocol.DecodeResponse([]byte(body)); err == nil {
			t.Errorf("%s: %+v is accepted", body, got)
		}
	}
}

// moment is the time of the tests of tokens.
var moment = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// request is the request of the tests of tokens.
var request = protocol.Request{User: "ann", Config: "{}", Arguments: `{"a":1}`}

func TestVerifyToken(t *testing.T) {
	token := protocol.Token{Service: "joke", Organization: "o", Agent: "a", Role: "r", Tool: "t", CallID: "c", Expires: moment.Add(time.Second)}
	signed := token.SignRequest(request, "new", "old")
	for _, key := range []string{"new", "old"} {
		got, err := protocol.VerifyToken(signed, "joke", request, moment, key)
		got.Digest, got.ConfigDigest = "", ""
		want := token
		want.Caller = "ann"
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("key %s: %v (-want +got):\n%s", key, err, diff)
		}
	}
	for _, c := range []struct {
		name, text, service, key string
		now                      time.Time
		want                     error
	}{
		{"none", "", "joke", "new", moment, protocol.ErrTokenMissing},
		{"unsigned", token.SignRequest(request), "joke", "new", moment, protocol.ErrTokenInvalid},
		{"signed with nothing", token.SignRequest(request, ""), "joke", "", moment, protocol.ErrTokenInvalid},
		{"of another key", signed, "joke", "other", moment, protocol.ErrTokenInvalid},
		{"of another service", signed, "bank", "new", moment, protocol.ErrTokenOther},
		{"expired", signed, "joke", "new", moment.Add(time.Second), protocol.ErrTokenExpired},
		{"with a changed body", "e30" + signed, "joke", "new", moment, protocol.ErrTokenInvalid},
		{"too long", signed + strings.Repeat(".x", 8000), "joke", "new", moment, protocol.ErrTokenInvalid},
	} {
		if _, err := protocol.VerifyToken(c.text, c.service, request, c.now, c.key); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if _, err := protocol.VerifyToken(signed, "joke", request, moment); err != protocol.ErrTokenInvalid {
		t.Errorf("without a key: %v", err)
	}
}

func FuzzParseTopic(f *testing.F) {
	for _, text := range []string{"request:tg:joke", "non-persistent://tg/request/joke", "x", "a::b://"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		topic, err := protocol.ParseTopic(text)
		if err != nil {
			return
		}
		if strings.ContainsAny(topic.Subject(), "*> \t\r\n:/") || strings.Contains(topic.Subject(), "..") {
			t.Errorf("%q has the subject %q", text, topic.Subject())
		}
		again, err := protocol.ParseTopic(topic.URL())
		if err != nil || again != topic {
			t.Errorf("%q: %+v is read again as %+v, %v", text, topic, again, err)
		}
	})
}

func FuzzVerifyToken(f *testing.F) {
	f.Add(protocol.Token{Service: "joke", Expires: moment.Add(time.Second)}.SignRequest(request, "new"))
	f.Add("a.b.c")
	valid := protocol.Token{Service: "joke", Expires: moment.Add(time.Second)}.SignRequest(request, "new")
	f.Fuzz(func(t *testing.T, text string) {
		body, _, _ := strings.Cut(valid, ".")
		if _, err := protocol.VerifyToken(text, "joke", request, moment, "new"); err == nil && !strings.HasPrefix(text, body+".") {
			t.Errorf("%q is accepted", text)
		}
	})
}

func FuzzDecodeResponse(f *testing.F) {
	f.Add([]byte(`{"error": null, "response": "x", "end_of_stream": true}`))
	f.Add([]byte(`{"response": {"a": 1}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := protocol.DecodeResponse(body)
		if err != nil {
			return
		}
		again, err := protocol.DecodeResponse(r.Encode())
		if diff := cmp.Diff(r, again); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", body, err, diff)
		}
	})
}
