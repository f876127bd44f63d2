package mcp

import (
	"net/http"
	"time"
)

// patience is how long a client may take to read a part of an answer, unless a
// Config says otherwise, and maxPart how many bytes such a part has at most.
const (
	patience = 30 * time.Second
	maxPart  = 64 << 10
)

// Hasty gives a ResponseWriter that gives up on a client who does not read for
// so long, 0 is 30 seconds: else it would hold for ever whoever writes to it,
// and the call that waits for that. A writer without deadlines stays as it is.
//
// The last deadline is left for what the server sends when the handler has
// returned; net/http takes it away after that. One that passes while nothing is
// written breaks nothing: the next write has its own.
func Hasty(w http.ResponseWriter, within time.Duration) http.ResponseWriter {
	if within == 0 {
		within = patience
	}
	return hasty{w, within}
}

type hasty struct {
	http.ResponseWriter
	within time.Duration
}

// hurry begins a part of the answer.
func (h hasty) hurry() {
	_ = http.NewResponseController(h.ResponseWriter).SetWriteDeadline(time.Now().Add(h.within)) // not every writer has one
}

// Write implements http.ResponseWriter.
func (h hasty) Write(b []byte) (int, error) {
	for sent := 0; ; {
		h.hurry()
		n, err := h.ResponseWriter.Write(b[sent:min(len(b), sent+maxPart)])
		if sent += n; err != nil || sent >= len(b) {
			return sent, err
		}
	}
}

// FlushError serves http.ResponseController: what was written may wait until
// here to be sent.
func (h hasty) FlushError() error {
	h.hurry()
	return http.NewResponseController(h.ResponseWriter).Flush()
}

// Unwrap serves http.ResponseController.
func (h hasty) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// bare gives the writer that a Hasty one is around: net/http looks for its own.
func bare(w http.ResponseWriter) http.ResponseWriter {
	if h, ok := w.(hasty); ok {
		return h.ResponseWriter
	}
	return w
}
