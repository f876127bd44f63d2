package mcpserver

import (
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// idRestoringWriter writes the SDK's answer to a request. It restores the
// client's ids and turns plain text errors into JSON-RPC errors. It relies on
// the SDK writing one message at a time.
type idRestoringWriter struct {
	http.ResponseWriter
	ids         idEncoder
	id          string // of the request; "" if not known
	errorStatus int    // set when the next Write is a plain text error
}

// WriteHeader implements http.ResponseWriter.
func (w *idRestoringWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.errorStatus = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *idRestoringWriter) Write(text []byte) (int, error) {
	if w.errorStatus != 0 {
		writeError(w.ResponseWriter, w.errorStatus, w.id, jsonrpc.CodeInvalidRequest, strings.TrimSpace(string(text)))
		return len(text), nil
	}
	if _, err := w.ResponseWriter.Write(w.ids.decode(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Unwrap supports http.ResponseController.
func (w *idRestoringWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
