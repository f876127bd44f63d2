package mcpclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rolecall/rolecall/tool"
)

// call returns a call without arguments.
func call(name string) tool.Call { return tool.Call{Name: name, Args: json.RawMessage(`{}`)} }

// trackingWriter records whether a response was begun.
type trackingWriter struct {
	http.ResponseWriter
	answered bool
}

func (h *trackingWriter) WriteHeader(code int) { h.answered = true; h.ResponseWriter.WriteHeader(code) }

func (h *trackingWriter) Write(p []byte) (int, error) {
	h.answered = true
	return h.ResponseWriter.Write(p)
}

// newRawServer starts a server over HTTP with one tool, act, without the library, and
// returns its URL. Requests that serve does not answer get a valid answer.
func newRawServer(t *testing.T, serve func(w http.ResponseWriter, r *http.Request, method string)) string {
	at := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w := &trackingWriter{ResponseWriter: out}
		var q struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Errorf("the client sent malformed JSON: %v", err)
		}
		serve(w, r.WithContext(context.WithValue(r.Context(), idKey{}, string(q.ID))), q.Method)
		if !w.answered {
			writeDefault(w, q.Method, q.ID)
		}
	}))
	t.Cleanup(at.Close)
	return at.URL
}

// writeDefault writes a valid answer.
func writeDefault(w http.ResponseWriter, method string, id json.RawMessage) {
	results := map[string]string{
		"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"act","description":"acts","inputSchema":{"type":"object"}}]}`,
		"tools/call": `{"content":[{"type":"text","text":"acted"}]}`,
	}
	result, ok := results[method]
	switch {
	case len(id) == 0:
		w.WriteHeader(http.StatusAccepted)
	case !ok:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, id)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
	}
}

// idKey is the context key of idOf.
type idKey struct{}

// idOf returns the JSON-RPC id of a request to serve.
func idOf(r *http.Request) string { return r.Context().Value(idKey{}).(string) }
