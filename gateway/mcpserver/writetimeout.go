package mcpserver

import (
	"net/http"
	"time"
)

// writeTimeout is how long a client may take to read a part of an answer, unless a
// Config says otherwise, and maxPart how many bytes such a part has at most.
const (
	writeTimeout = 30 * time.Second
	maxPart      = 64 << 10
)

// WithWriteTimeout gives a ResponseWriter that gives up on a client who does not read for
// so long, 0 is 30 seconds: else it would hold for ever whoever writes to it,
// and the call that waits for that. A writer without deadlines stays as it is.
//
// The last deadline is left for what the server sends when the handler has
// returned; net/http takes it away after that. One that passes while nothing is
// written breaks nothing: the next write has its own.
func WithWriteTimeout(w http.ResponseWriter, within time.Duration) http.ResponseWriter {
	if within == 0 {
		within = writeTimeout
	}
	return timeoutWriter{w, within}
}

type timeoutWriter struct {
	http.ResponseWriter
	timeout time.Duration
}

// extend begins a part of the answer.
func (h timeoutWriter) extend() {
	_ = http.NewResponseController(h.ResponseWriter).SetWriteDeadline(time.Now().Add(h.timeout)) // not every writer has one
}

// Write implements http.ResponseWriter.
func (h timeoutWriter) Write(b []byte) (int, error) {
	for sent := 0; ; {
		h.extend()
		n, err := h.ResponseWriter.Write(b[sent:min(len(b), sent+maxPart)])
		if sent += n; err != nil || sent >= len(b) {
			return sent, err
		}
	}
}

// FlushError serves http.ResponseController: what was written may wait until
// here to be sent.
func (h timeoutWriter) FlushError() error {
	h.extend()
	return http.NewResponseController(h.ResponseWriter).Flush()
}

// Unwrap serves http.ResponseController.
func (h timeoutWriter) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// unwrapWriter gives the writer that a Hasty one is around: net/http looks for its own.
func unwrapWriter(w http.ResponseWriter) http.ResponseWriter {
	if h, ok := w.(timeoutWriter); ok {
		return h.ResponseWriter
	}
	return w
}
