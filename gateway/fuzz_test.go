package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
)

// Whatever a body holds, the answer is JSON and never the process's fault.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `{"name":"a","toolGroups":["*"],"limits":{"rounds":1}}`, `{"role":"root","tool":"create_role","group":[]}`,
		`{"who":"read_file","state":"x"}`, `{"payload":{"a":[1,null]},"delayMs":1e9}`, `{"text":"\ud800"}`, `{"name":"\u0000"}`, `{"name":1e400}`,
	} {
		f.Add(seed)
	}
	h := open(f, team)
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{"POST /api/v1/roles?dryRun=1", "POST /api/v1/can", "POST /api/v1/agents/nobody/messages"} {
			status, text := h.ask(t, path, body)
			if status >= http.StatusInternalServerError || !json.Valid([]byte(text)) {
				t.Errorf("%s: %d %s", path, status, text)
			}
		}
	})
}

// FuzzAddresses: whatever stands in a path or a query, the answer is JSON with
// a code, or what was asked for: nobody is taken for somebody else.
func FuzzAddresses(f *testing.F) {
	h := open(f, team)
	task := h.work(f, "go")
	artifact := collect(f, h.client().Artifacts(f.Context(), task.ID))[0].ID
	for at := range things {
		for _, id := range []string{"clerk", "root", "..", "%2e%2e", "artifact:" + artifact, "a/b", "", "\x00", "read_file", "workspace", string(task.ID), string(task.Top)} {
			f.Add(uint8(at), id, "limit=1")
		}
	}
	f.Add(uint8(0), "x", "limit=1&limit=2;a=%zz&cursor=AA&after=18446744073709551615&dryRun=&group=%00")
	f.Fuzz(func(t *testing.T, at uint8, id, query string) {
		thing := things[int(at)%len(things)]
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL = &url.URL{Path: "/api/v1/" + thing + "/" + id, RawPath: "/api/v1/" + thing + "/" + url.PathEscape(id), RawQuery: query}
		r.Header.Set("Last-Event-ID", query)
		w := httptest.NewRecorder()
		h.handler.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if !strings.Contains(id, "/") {
			wantAskedFor(t, id, w)
		}
	})
}

// things are what the API has many of.
var things = []string{"roles", "agents", "tasks", "tools", "tool-groups", "artifacts"}

// wantAskedFor wants a refusal in its shape, or the thing of this id or name.
func wantAskedFor(t *testing.T, id string, w *httptest.ResponseRecorder) {
	t.Helper()
	switch {
	case w.Code >= http.StatusBadRequest:
		refused(t, w.Body.String())
		return
	case w.Code >= http.StatusMultipleChoices: // to a path without dots
		return
	}
	var got struct{ ID, Name, Role string }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%q: %v in %s", id, err, w.Body)
	}
	if !slices.Contains([]string{got.ID, got.Name, got.Role, "artifact:" + got.ID}, id) {
		t.Errorf("asked for %q, got %s", id, w.Body)
	}
}

// FuzzEventStream: what a client reads of a stream are its events, unchanged
// and in order, up to what is none; and that is an error.
func FuzzEventStream(f *testing.F) {
	for _, tail := range []string{"", "\n", "{}", `{"type":"result"}`, `{"type":"tool_call","tool":7}`, "null", "[", "\x00", `{"type":"message_sent","seq":-1}`, strings.Repeat("[", 20_000)} {
		f.Add(uint8(3), []byte(tail))
	}
	f.Fuzz(func(t *testing.T, n uint8, tail []byte) {
		var body bytes.Buffer
		var want []string
		for i := range int(n % 8) {
			text := fmt.Sprintf(`{"at":"2026-01-02T03:04:05Z","seq":%d,"stream":"a","agent":"a","role":"r","task":"t","type":"state_transition","from":"x","to":"y"}`, i+1)
			want = append(want, fmt.Sprint(i+1))
			body.WriteString(text + "\n")
		}
		body.Write(tail)
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body.Bytes()) })
		var got []string
		var last error
		for e, err := range gateway.Local(handler).Events(t.Context(), "t", 0, true) {
			if last = err; err != nil {
				break
			}
			got = append(got, fmt.Sprint(e.Seq))
			if e.Body == nil {
				t.Fatalf("event %d has no body", e.Seq)
			}
		}
		if len(got) < len(want) {
			t.Fatalf("got %d events and %v, want %d", len(got), last, len(want))
		}
		if !slices.Equal(got[:len(want)], want) {
			t.Errorf("got events %q, want %q", got, want)
		}
		if last == nil && !bytes.Contains(tail, []byte("result")) {
			t.Errorf("the stream ended before the task and there is no error")
		}
	})
}

// FuzzAnswers: whoever answers on the socket, a client gives an error with a
// code or what it could read, and comes to an end.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{``, `{}`, `null`, `[]`, `{"error":{"code":"x","message":"m","details":{"a":1}}}`, `{"items":[{}],"next":"x"}`, `{"items":null}`, `{"error":null}`, `{"id":"\ud800"}`} {
		f.Add(uint16(200), []byte(body))
		f.Add(uint16(404), []byte(body))
	}
	f.Fuzz(func(t *testing.T, status uint16, body []byte) {
		asked := 0
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked > 1 {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			w.WriteHeader(200 + int(status)%400)
			_, _ = w.Write(body)
		})
		c := gateway.Local(handler)
		_, err := c.Role(t.Context(), "r")
		wantRead(t, err, 200+int(status)%400)
		asked = 0
		n := 0
		for _, err := range c.Roles(t.Context()) {
			if n++; err != nil && errcode.Message(err) == "" {
				t.Errorf("an error without words: %#v", err)
			}
		}
		asked = 0
		if content, err := c.Content(t.Context(), "x"); err == nil && !bytes.Equal(content, body) {
			t.Errorf("content %q, want %q", content, body)
		}
	})
}

// wantRead wants a refusal's code to be one.
func wantRead(t *testing.T, err error, status int) {
	t.Helper()
	if (status >= 300) && err == nil {
		t.Errorf("an answer of %d is taken for a success", status)
	}
	if err != nil && errcode.Of(err) == "" {
		t.Errorf("%v has no code", err)
	}
}
