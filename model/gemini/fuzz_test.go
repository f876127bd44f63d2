package gemini_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/gemini"
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
	for _, stream := range []string{parallel, signed, text + called + finish("SAFETY"), text + called + finish("MAX_TOKENS"), finish("MALFORMED_FUNCTION_CALL")} {
		f.Add([]byte(events(stream)), true)
	}
	f.Add([]byte(parallelWhole), false)
	f.Add([]byte(exhausted), false)
	f.Add([]byte(`{"promptFeedback":{"blockReason":"OTHER"}}`), false)
	f.Add([]byte("data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":-1e99}}"), true)
	f.Add([]byte(`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"cachedContentTokenCount":9}}`), false)
	f.Fuzz(func(t *testing.T, reply []byte, stream bool) {
		m := gemini.New(provider.Config{Model: name, Key: key, Stream: stream, Client: client(func(string) (int, string) { return 200, string(reply) })})
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
		again := gemini.New(provider.Config{Model: name, Client: record(&sent)})
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
