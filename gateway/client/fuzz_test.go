package client_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
)

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
		for e, err := range client.NewLocal(handler).TaskEvents(t.Context(), "t", 0, true) {
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
		c := client.NewLocal(handler)
		_, err := c.FindRole(t.Context(), "r")
		wantErrorCode(t, err, 200+int(status)%400)
		asked = 0
		n := 0
		for _, err := range c.ListRoles(t.Context()) {
			if n++; err != nil && errcode.Message(err) == "" {
				t.Errorf("an error without a message: %#v", err)
			}
		}
		asked = 0
		if content, err := c.ArtifactContent(t.Context(), "x"); err == nil && !bytes.Equal(content, body) {
			t.Errorf("content %q, want %q", content, body)
		}
	})
}

// wantErrorCode requires an error with a code for every status that is not a
// success.
func wantErrorCode(t *testing.T, err error, status int) {
	t.Helper()
	if (status >= 300) && err == nil {
		t.Errorf("status %d was read as a success", status)
	}
	if err != nil && errcode.CodeOf(err) == "" {
		t.Errorf("%v has no code", err)
	}
}
