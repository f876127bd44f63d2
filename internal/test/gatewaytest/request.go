package gatewaytest

import (
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
)

// SendText sends a request and returns status and body. path may be preceded by a
// method.
func (f *Fixture) SendText(t testing.TB, path, body string) (int, string) {
	t.Helper()
	answer := f.SendRequest(t, path, body, nil)
	return answer.Code, answer.Body.String()
}

// SendRequest sends a request with a header and returns the response. path may be
// preceded by a method.
func (f *Fixture) SendRequest(t testing.TB, path, body string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	method, target, ok := strings.Cut(path, " ")
	if !ok {
		method, target = http.MethodGet, path
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	f.Handler.ServeHTTP(w, r)
	return w
}

// GetJSON sends a request and decodes the answer; it fails the test for an
// error.
func GetJSON[T any](t testing.TB, f *Fixture, path, body string) T {
	t.Helper()
	var v T
	status, text := f.SendText(t, path, body)
	if status >= 300 {
		t.Fatalf("%s answered %d: %s", path, status, text)
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v in %s", path, err, text)
	}
	return v
}

// CollectAll returns all items of a sequence.
func CollectAll[T any](t testing.TB, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var list []T
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}

// DecodeError decodes an error response and fails the test for others.
func DecodeError(t testing.TB, body string) errcode.Error {
	t.Helper()
	var v struct {
		Error struct {
			Code    errcode.Code
			Message string
			Details map[string]any
		}
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil || v.Error.Code == "" || v.Error.Message == "" {
		t.Fatalf("not an error response: %s", body)
	}
	return errcode.Error{Code: v.Error.Code, Message: v.Error.Message, Details: v.Error.Details}
}

// SendNamed sends a request with name filled in and returns status and body,
// with name replaced.
func SendNamed(t *testing.T, f *Fixture, form, name string) string {
	t.Helper()
	path, body, _ := strings.Cut(form, " {")
	if body != "" {
		body = "{" + strings.ReplaceAll(body, "%s", name)
	}
	status, answer := f.SendText(t, strings.ReplaceAll(path, "%s", strings.ReplaceAll(strings.ReplaceAll(name, "/", "%2F"), " ", "%20")), body)
	return fmt.Sprintf("%d %s", status, strings.ReplaceAll(answer, name, "NAME"))
}
