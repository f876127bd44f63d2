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

// FuzzRequestBody checks that every body is answered with JSON and never with an
// internal error.
func FuzzRequestBody(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `{"name":"a","toolGroups":["*"],"limits":{"rounds":1}}`, `{"role":"root","tool":"create_role","group":[]}`,
		`{"who":"read_file","state":"x"}`, `{"payload":{"a":[1,null]},"delayMs":1e9}`, `{"text":"\ud800"}`, `{"name":"\u0000"}`, `{"name":1e400}`,
	} {
		f.Add(seed)
	}
	fx := newFixture(f, teamModel)
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{"POST /api/v1/roles?dryRun=1", "POST /api/v1/can", "POST /api/v1/agents/nobody/messages"} {
			status, text := fx.do(t, path, body)
			if status >= http.StatusInternalServerError || !json.Valid([]byte(text)) {
				t.Errorf("%s: %d %s", path, status, text)
			}
		}
	})
}

// FuzzRequestURL checks that every path and query is answered with an error
// code or with the requested resource, never with another one.
func FuzzRequestURL(f *testing.F) {
	fx := newFixture(f, teamModel)
	task := fx.run(f, "go")
	artifact := collect(f, fx.client().Artifacts(f.Context(), task.ID))[0].ID
	for at := range resources {
		for _, id := range []string{"clerk", "root", "..", "%2e%2e", "artifact:" + artifact, "a/b", "", "\x00", "read_file", "workspace", string(task.ID), string(task.Top)} {
			f.Add(uint8(at), id, "limit=1")
		}
	}
	f.Add(uint8(0), "x", "limit=1&limit=2;a=%zz&cursor=AA&after=18446744073709551615&dryRun=&group=%00")
	f.Fuzz(func(t *testing.T, at uint8, id, query string) {
		thing := resources[int(at)%len(resources)]
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL = &url.URL{Path: "/api/v1/" + thing + "/" + id, RawPath: "/api/v1/" + thing + "/" + url.PathEscape(id), RawQuery: query}
		r.Header.Set("Last-Event-ID", query)
		w := httptest.NewRecorder()
		fx.handler.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if !strings.Contains(id, "/") {
			wantResource(t, id, w)
		}
	})
}

// resources are the collections of the API.
var resources = []string{"roles", "agents", "tasks", "tools", "tool-groups", "artifacts"}

// wantResource wants an error response, or the resource with this id or name.
func wantResource(t *testing.T, id string, w *httptest.ResponseRecorder) {
	t.Helper()
	switch {
	case w.Code >= http.StatusBadRequest:
		decodeError(t, w.Body.String())
		return
	case w.Code >= http.StatusMultipleChoices: // a redirect to a path without dots
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

// FuzzEventStream checks that a client reads the events of a stream unchanged
// and in order, and reports an error at the first invalid one.
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
			t.Errorf("the stream ended before the task, without an error")
		}
	})
}

// FuzzClientResponse checks that a client reads or rejects every response, with
// an error code, and terminates.
func FuzzClientResponse(f *testing.F) {
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
		wantErrorCode(t, err, 200+int(status)%400)
		asked = 0
		n := 0
		for _, err := range c.Roles(t.Context()) {
			if n++; err != nil && errcode.Message(err) == "" {
				t.Errorf("an error without a message: %#v", err)
			}
		}
		asked = 0
		if content, err := c.Content(t.Context(), "x"); err == nil && !bytes.Equal(content, body) {
			t.Errorf("content %q, want %q", content, body)
		}
	})
}

// wantErrorCode wants an error with a code for every status that is not a
// success.
func wantErrorCode(t *testing.T, err error, status int) {
	t.Helper()
	if (status >= 300) && err == nil {
		t.Errorf("status %d was read as a success", status)
	}
	if err != nil && errcode.Of(err) == "" {
		t.Errorf("%v has no code", err)
	}
}
