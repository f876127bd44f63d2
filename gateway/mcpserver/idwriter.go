package mcpserver

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/tidwall/gjson"
)

// idRestoringWriter writes the SDK's answer to a request. It restores the
// client's ids, turns plain text errors into JSON-RPC errors, and adds a code to errors
// without one. It relies on the SDK writing one message at a time.
type idRestoringWriter struct {
	http.ResponseWriter
	ids         idEncoder
	id          string // of the request; "" if not known
	errorStatus int    // set when the next Write is a plain text error
	encoded     func() // called when the SDK has encoded an answer; nil if that does not matter
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
	if w.encoded != nil && bytes.IndexByte(text, '{') >= 0 { // a stream begins with an event without a message
		w.encoded()
	}
	if w.errorStatus != 0 {
		writeError(w.ResponseWriter, w.errorStatus, w.id, jsonrpc.CodeInvalidRequest, strings.TrimSpace(string(text)))
		return len(text), nil
	}
	if _, err := w.ResponseWriter.Write(w.ids.decode(withErrorCodes(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Unwrap supports http.ResponseController.
func (w *idRestoringWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// withErrorCodes replaces the code 0 that the SDK sets in errors without a code, for
// example to a second initialize. text is a message, an array of messages, or an event
// with one of these.
func withErrorCodes(text []byte) []byte {
	if !bytes.Contains(text, []byte(`"code":0`)) {
		return text
	}
	start := max(0, bytes.IndexAny(text, "{["))
	paths := []string{"error.code"}
	if text[start] == '[' {
		paths = nil
		for i := range gjson.GetBytes(text[start:], "#").Int() {
			paths = append(paths, strconv.FormatInt(i, 10)+".error.code")
		}
	}
	for _, path := range slices.Backward(paths) { // the last first, so that the others stay where they are
		if code := gjson.GetBytes(text[start:], path); code.Raw == "0" {
			at := start + code.Index
			text = slices.Concat(text[:at], strconv.AppendInt(nil, jsonrpc.CodeInvalidRequest, 10), text[at+1:])
		}
	}
	return text
}
