package gemini_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/gemini"
	"github.com/rolecall/rolecall/model/provider"
)

const (
	key  = "AIza-canary-5a1f"
	name = "gemini-3-pro-preview"
)

// exchange is one request and what came of it.
type exchange struct {
	path   string
	header http.Header
	body   string
	deltas []model.Delta
	answer *model.Answer
	err    error
}

// play asks a server that answers with a status and a body.
func play(t *testing.T, c provider.Config, r model.Request, status int, reply string) (x exchange) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		x.path, x.header, x.body = r.URL.String(), r.Header.Clone(), string(body)
		w.WriteHeader(status)
		io.WriteString(w, reply)
	}))
	defer server.Close()
	c.BaseURL, c.Key = server.URL, key
	if c.Model == "" {
		c.Model = name
	}
	x.deltas, x.answer, x.err = gather(t, gemini.New(c), r)
	if !json.Valid([]byte(x.body)) {
		t.Fatalf("the request is no JSON: %s", x.body)
	}
	return x
}

// gather takes what a model yields: deltas, then one answer or one error.
func gather(t *testing.T, m model.Model, r model.Request) (deltas []model.Delta, answer *model.Answer, failure error) {
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

// events gives data as a stream: each line is one event.
func events(lines string) string {
	var stream strings.Builder
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" {
			stream.WriteString("data: " + line + "\r\n\r\n")
		}
	}
	return stream.String()
}

// same compares two JSON documents.
func same(t *testing.T, got, want string) {
	t.Helper()
	if diff := cmp.Diff(decode(t, want), decode(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func decode(t *testing.T, doc string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(doc), &value); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	return value
}

func said(text string) model.Item {
	payload, _ := json.Marshal(map[string]string{"text": text})
	return model.Item{Message: &model.Message{From: "user", Payload: payload}}
}

func answered(a model.Answer) model.Item { return model.Item{Answer: &a} }

func came(of, tool, content string) model.Item {
	return model.Item{Result: &model.Result{Call: callID(of), Tool: tool, Content: json.RawMessage(content)}}
}

func hello() model.Request { return model.Request{Items: []model.Item{said("Hello")}} }
