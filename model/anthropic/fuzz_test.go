package anthropic_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/anthropic"
	"github.com/rolecall/rolecall/model/provider"
)

// record gives a client that keeps what is sent and answers with a word.
func record(sent *string) *http.Client {
	return &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		*sent = string(body)
		return &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader([]byte(ok))), Request: r}, err
	})}
}

// FuzzAnswer: whatever a server sends, streamed or whole, a request ends with
// one answer or one trouble (gather); the answer can be recorded, and sent
// back in a conversation the provider takes.
func FuzzAnswer(f *testing.F) {
	for _, stream := range []string{parallel, thoughtful, text + called + stop("refusal"), text + called + stop("max_tokens"), text + stop("model_context_window_exceeded")} {
		f.Add([]byte(events(stream)), true)
	}
	f.Add([]byte(parallelWhole), false)
	f.Add([]byte(`{"stop_reason":"tool_use","content":`+inOrder+`}`), false)
	f.Add([]byte("data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"), true)
	f.Add([]byte("data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":-1e99}}\ndata:\n\ndata: {\"type\":\"message_stop\"}"), true)
	f.Fuzz(func(t *testing.T, reply []byte, stream bool) {
		m := anthropic.New(provider.Config{Model: name, Key: key, Stream: stream, Client: client(func(string) (int, string) { return 200, string(reply) })})
		_, a, err := gather(t, m, hello())
		if err != nil {
			if _, ok := errors.AsType[*model.Trouble](err); !ok {
				t.Fatalf("an error that is no trouble: %v", err)
			}
			return
		}
		doc, err := json.Marshal(a)
		var b model.Answer
		if err != nil || json.Unmarshal(doc, &b) != nil {
			t.Fatalf("the answer cannot be recorded: %v\n%+v", err, a)
		}
		if u := a.Usage; u.Input < 0 || u.Cached < 0 || u.Cached > u.Input || u.Output < 0 {
			t.Errorf("used %+v", u)
		}
		for i := range b.Calls {
			b.Calls[i].ID = callID(string(rune('a' + i)))
		}
		var sent string
		again := anthropic.New(provider.Config{Model: name, Client: record(&sent)})
		r := hello()
		r.Items = append(r.Items, answered(b))
		if _, _, err := gather(t, again, r); err != nil {
			t.Fatal(err)
		}
		if fault := fault(sent); fault != "" {
			t.Errorf("%s: %s", fault, sent)
		}
	})
}
