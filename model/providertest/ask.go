// Package providertest is what every client of a provider has to pass, and the
// words the tests of one are written with.
package providertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/tool"
)

// Exchange is one request and what came of it.
type Exchange struct {
	Path   string
	Header http.Header
	Body   string
	Deltas []model.Delta
	Answer *model.Answer
	Err    error
}

// Do asks a server that answers with a status and a body.
func (s Suite) Do(t *testing.T, c provider.Config, r model.Request, status int, reply string) (x Exchange) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		x.Path, x.Header, x.Body = r.URL.String(), r.Header.Clone(), string(body)
		w.WriteHeader(status)
		io.WriteString(w, reply)
	}))
	defer server.Close()
	c.BaseURL, c.Key = server.URL, s.Key
	if c.Model == "" {
		c.Model = s.Model
	}
	x.Deltas, x.Answer, x.Err = Gather(t, s.New(c), r)
	if !json.Valid([]byte(x.Body)) {
		t.Fatalf("the request is no JSON: %s", x.Body)
	}
	return x
}

// Gather takes what a model yields: deltas, then one answer or one error.
func Gather(t testing.TB, m model.Model, r model.Request) (deltas []model.Delta, answer *model.Answer, failure error) {
	t.Helper()
	for delta, err := range m.Generate(context.Background(), r) {
		switch {
		case answer != nil || failure != nil:
			t.Fatalf("something came behind the end: %+v, %v", delta, err)
		case err != nil:
			failure = err
		case delta.Answer != nil:
			answer = delta.Answer
		default:
			deltas = append(deltas, delta)
		}
	}
	if answer == nil && failure == nil {
		t.Fatal("neither an answer nor an error")
	}
	return deltas, answer, failure
}

// Client gives a client that answers itself, with status 200.
func Client(answer func(url, body string) string) *http.Client {
	return &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		reply := answer(r.URL.String(), string(body))
		return &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader([]byte(reply))), Request: r}, err
	})}
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// WantError checks what a request ended with, and gives it.
func WantError(t testing.TB, err error, code errcode.Code, again bool, words string) *model.Error {
	t.Helper()
	trouble, ok := errors.AsType[*model.Error](err)
	switch {
	case !ok:
		t.Fatalf("got %v, want a trouble", err)
	case trouble.Err.Code != code || trouble.Retryable != again:
		t.Errorf("got %s, again %v: %v; want %s, again %v", trouble.Err.Code, trouble.Retryable, err, code, again)
	case !strings.Contains(err.Error(), words):
		t.Errorf("got %q, want %q in it", err, words)
	}
	return trouble
}

// Same compares two JSON documents.
func Same(t testing.TB, got, want string) {
	t.Helper()
	if diff := cmp.Diff(Decode(t, want), Decode(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Decode reads a JSON document.
func Decode(t testing.TB, doc string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(doc), &value); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	return value
}

// Hello is a conversation that begins.
func Hello() model.Request { return model.Request{Items: []model.Item{Said("Hello")}} }

// Said is a message of the user.
func Said(text string) model.Item {
	payload, _ := json.Marshal(map[string]string{"text": text})
	return model.Item{Message: &model.Message{From: "user", Payload: payload}}
}

// Answered is an answer in a conversation.
func Answered(a model.Answer) model.Item { return model.Item{Answer: &a} }

// ResultItem is the result of a call.
func ResultItem(of identity.CallID, tool, content string) model.Item {
	return model.Item{Result: &model.Result{Call: of, Tool: tool, Content: json.RawMessage(content)}}
}

// Wire serialises tools as a View does.
func Wire(t testing.TB, names ...string) []byte {
	t.Helper()
	var list []tool.Definition
	for _, n := range names {
		list = append(list, tool.Definition{Name: n, Description: "Does " + n + ".", Input: json.RawMessage(`{"type":"object"}`)})
	}
	doc, err := tool.MarshalTools(list)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
