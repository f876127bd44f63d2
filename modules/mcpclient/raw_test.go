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

func call(name string) tool.Call { return tool.Call{Name: name, Args: json.RawMessage(`{}`)} }

// head says whether something was answered already.
type head struct {
	http.ResponseWriter
	done bool
}

func (h *head) WriteHeader(code int) { h.done = true; h.ResponseWriter.WriteHeader(code) }

func (h *head) Write(p []byte) (int, error) { h.done = true; return h.ResponseWriter.Write(p) }

// raw serves a server over HTTP with one tool, act, without the library. What
// serve does not answer is answered well. It gives the address.
func raw(t *testing.T, serve func(w http.ResponseWriter, r *http.Request, method string)) string {
	at := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w := &head{ResponseWriter: out}
		var q struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Errorf("the client sent no JSON: %v", err)
		}
		serve(w, r.WithContext(context.WithValue(r.Context(), idKey{}, string(q.ID))), q.Method)
		if !w.done {
			answerWell(w, q.Method, q.ID)
		}
	}))
	t.Cleanup(at.Close)
	return at.URL
}

func answerWell(w http.ResponseWriter, method string, id json.RawMessage) {
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

type idKey struct{}

// idOf gives the id of the request that serve got, as JSON.
func idOf(r *http.Request) string { return r.Context().Value(idKey{}).(string) }
