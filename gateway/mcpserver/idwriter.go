package mcpserver

import (
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// idRestoringWriter passes on what the SDK answers to a request: with the ids that clients
// know, and with errors of the protocol where it has but a sentence. The SDK
// writes a message at a time.
type idRestoringWriter struct {
	http.ResponseWriter
	ids     idEncoder
	id      string // of the request; "" when it is not known
	refusal int    // the status of a sentence that is about to come
}

// WriteHeader implements http.ResponseWriter.
func (r *idRestoringWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest && strings.HasPrefix(r.Header().Get("Content-Type"), "text/plain") {
		r.refusal = status
		return
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *idRestoringWriter) Write(text []byte) (int, error) {
	if r.refusal != 0 {
		refuse(r.ResponseWriter, r.refusal, r.id, jsonrpc.CodeInvalidRequest, strings.TrimSpace(string(text)))
		return len(text), nil
	}
	if _, err := r.ResponseWriter.Write(r.ids.decode(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Unwrap serves http.ResponseController.
func (r *idRestoringWriter) Unwrap() http.ResponseWriter { return r.ResponseWriter }
