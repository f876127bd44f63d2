package app

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/rolecall/rolecall/internal/config"
)

// Ollama says with which context a model runs after it was asked. What to set follows from
// that.
func TestProbeModel_AsksOllama(t *testing.T) {
	for _, c := range []struct {
		name, ps, show string
		window         int // of the document
		advice         string
	}{
		{"a smaller context", `{"models":[{"model":"qwen3:latest","context_length":4096}]}`, "", 32768, "contextWindow: 4096   the server accepts no more; Ollama is started with OLLAMA_CONTEXT_LENGTH for another window"},
		{"the same", `{"models":[{"model":"qwen3:latest","context_length":4096}]}`, "", 4096, ""},
		{"the model's own only", `{}`, `{"model_info":{"qwen3.context_length":262144}}`, 0, "contextWindow: …   128000 is assumed; set what the server is started with, for Ollama OLLAMA_CONTEXT_LENGTH"},
		{"nonsense", `{"models":[{"model":"qwen3","context_length":-7}]}`, `{"model_info":{"qwen3.context_length":1e300}}`, 0, "contextWindow: …   128000 is assumed; set what the server is started with"},
	} {
		asked := false
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch r.URL.Path {
			case "/v1/models":
				fmt.Fprint(w, `{"object":"list","data":[{"id":"qwen3:latest","object":"model"}]}`)
			case "/api/ps":
				if !asked {
					t.Errorf("%s: the model was not in memory", c.name)
				}
				fmt.Fprint(w, c.ps)
			case "/api/show":
				fmt.Fprint(w, c.show)
			default:
				asked = true
				fmt.Fprint(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"ready"},"finish_reason":"stop"}]}`)
			}
		}))
		t.Cleanup(server.Close)
		r, err := ProbeModel(t.Context(), config.Model{Name: "m", Type: "openai", Model: "qwen3", BaseURL: server.URL + "/v1", ContextWindow: c.window})
		if err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		got := ""
		if len(r.Advice) > 0 && strings.HasPrefix(r.Advice[0], "contextWindow") {
			got = r.Advice[0]
		}
		if got != c.advice {
			t.Errorf("%s: got %q, want %q", c.name, got, c.advice)
		}
	}
}

// A stream of Bedrock counts as one, also with a single part of the answer.
func TestProbeModel_FindsStreamOfBedrock(t *testing.T) {
	var stream bytes.Buffer
	for _, event := range [][2]string{
		{"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"ready"}}`}, {"messageStop", `{"stopReason":"end_turn"}`}, {"metadata", `{}`},
	} {
		m := eventstream.Message{Payload: []byte(event[1])}
		m.Headers.Set(":event-type", eventstream.StringValue(event[0]))
		if err := eventstream.NewEncoder().Encode(&stream, m); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		w.Write(stream.Bytes())
	}))
	defer server.Close()
	r, err := ProbeModel(t.Context(), config.Model{Name: "m", Type: "bedrock", Model: "m", BaseURL: server.URL, Stream: true})
	if err != nil || r.Err != nil || r.Text != "ready" || !r.Streams {
		t.Errorf("got %+v (%v)", r, err)
	}
}
