// Package providertest holds the test suite that every client of a provider must
// pass, and helpers for its other tests.
//
//	var suite = providertest.Suite{New: openai.New, Model: "m", Key: "sk-test", …}
//
//	func TestSuite(t *testing.T) { suite.Run(t) }
//	func FuzzAnswer(f *testing.F) { suite.Fuzz(f) }
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

// Exchange is one request and its outcome.
type Exchange struct {
	Path   string // with the query
	Host   string
	Header http.Header
	Body   string
	Deltas []model.AnswerDelta
	Answer *model.Answer
	Err    error
}

// Do sends r to a server that responds with status and reply.
func (s Suite) Do(t *testing.T, c provider.Config, r model.Request, status int, reply string) (x Exchange) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		x.Path, x.Host, x.Header, x.Body = r.URL.String(), r.Host, r.Header.Clone(), string(body)
		w.WriteHeader(status)
		io.WriteString(w, reply)
	}))
	defer server.Close()
	c.BaseURL, c.Key = server.URL, s.Key
	if c.Model == "" {
		c.Model = s.Model
	}
	x.Deltas, x.Answer, x.Err = Collect(t, s.New(c), r)
	if !json.Valid([]byte(x.Body)) {
		t.Fatalf("the request is not JSON: %s", x.Body)
	}
	return x
}

// Collect returns what a model yields: deltas, then either an answer or an error.
func Collect(t testing.TB, m model.Model, r model.Request) (deltas []model.AnswerDelta, answer *model.Answer, failure error) {
	t.Helper()
	for delta, err := range m.Generate(context.Background(), r) {
		switch {
		case answer != nil || failure != nil:
			t.Fatalf("yielded after the end: %+v, %v", delta, err)
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

// Client returns an HTTP client that responds with status 200 and the result of
// answer, without a server.
func Client(answer func(url, body string) string) *http.Client {
	return &http.Client{Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		reply := answer(r.URL.String(), string(body))
		return &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader([]byte(reply))), Request: r}, err
	})}
}

// roundTripFunc is an http.RoundTripper.
type roundTripFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// WantError checks that err is a *model.Error with this code, retryable or not, whose
// text contains text. It returns the error.
func WantError(t testing.TB, err error, code errcode.Code, retryable bool, text string) *model.Error {
	t.Helper()
	failure, ok := errors.AsType[*model.Error](err)
	switch {
	case !ok:
		t.Fatalf("got %v, want a *model.Error", err)
	case failure.Err.Code != code || failure.Retryable != retryable:
		t.Errorf("got %s, retryable %v: %v; want %s, retryable %v", failure.Err.Code, failure.Retryable, err, code, retryable)
	case !strings.Contains(err.Error(), text):
		t.Errorf("got %q, want %q in it", err, text)
	}
	return failure
}

// EqualJSON reports an error if two JSON documents differ in value.
func EqualJSON(t testing.TB, got, want string) {
	t.Helper()
	if diff := cmp.Diff(Decode(t, want), Decode(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Decode returns the value of a JSON document.
func Decode(t testing.TB, doc string) (value any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber() // large numbers keep their last digits
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	return value
}

// HelloRequest returns a request with one message of the user.
func HelloRequest() model.Request { return model.Request{Items: []model.Item{UserMessage("Hello")}} }

// UserMessage returns an item with a message of the user.
func UserMessage(text string) model.Item {
	payload, _ := json.Marshal(map[string]string{"text": text})
	return model.Item{Message: &model.Message{From: "user", Payload: payload}}
}

// AnswerItem returns an item with an answer.
func AnswerItem(a model.Answer) model.Item { return model.Item{Answer: &a} }

// ResultItem returns an item with the result of a call.
func ResultItem(call identity.CallID, tool, content string) model.Item {
	return model.Item{Result: &model.CallResult{Call: call, Tool: tool, Content: json.RawMessage(content)}}
}

// ToolsJSON returns the serialized definitions of tools with these names.
func ToolsJSON(t testing.TB, names ...string) []byte {
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
