package mcpserver

import (
	"net/http"
	"time"
)

// writeTimeout is the default time in which a client must read a part of an
// answer. maxWriteBytes is the size of such a part.
const (
	writeTimeout  = 30 * time.Second
	maxWriteBytes = 64 << 10
)

// WithWriteTimeout returns a ResponseWriter whose writes fail if the client
// does not read a part of the answer within timeout; 0 means 30 seconds.
// Without it a client that does not read would block the handler, and a call
// waiting for it, forever. Writers without deadlines are not limited. A timeout that w has
// already is replaced.
//
// The last deadline stays for what the server sends after the handler has
// returned; net/http then clears it. A deadline that passes between writes has
// no effect, because each write sets a new one.
func WithWriteTimeout(w http.ResponseWriter, timeout time.Duration) http.ResponseWriter {
	if timeout == 0 {
		timeout = writeTimeout
	}
	return timeoutWriter{WithoutWriteTimeout(w), timeout}
}

// WithoutWriteTimeout returns the ResponseWriter that WithWriteTimeout has got. It is for handlers with
// deadlines of their own, and for http.MaxBytesReader, which closes connections of net/http's own type only.
func WithoutWriteTimeout(w http.ResponseWriter) http.ResponseWriter {
	if t, ok := w.(timeoutWriter); ok {
		return t.ResponseWriter
	}
	return w
}

// timeoutWriter is the ResponseWriter of WithWriteTimeout.
type timeoutWriter struct {
	http.ResponseWriter
	timeout time.Duration
}

// extend sets the deadline for the next part.
func (t timeoutWriter) extend() {
	_ = http.NewResponseController(t.ResponseWriter).SetWriteDeadline(time.Now().Add(t.timeout)) // some writers have no deadlines
}

// Write implements http.ResponseWriter.
func (t timeoutWriter) Write(b []byte) (int, error) {
	for sent := 0; ; {
		t.extend()
		n, err := t.ResponseWriter.Write(b[sent:min(len(b), sent+maxWriteBytes)])
		if sent += n; err != nil || sent >= len(b) {
			return sent, err
		}
	}
}

// FlushError supports http.ResponseController. Buffered bytes may be sent here,
// so the deadline is extended.
func (t timeoutWriter) FlushError() error {
	t.extend()
	return http.NewResponseController(t.ResponseWriter).Flush()
}

// Unwrap supports http.ResponseController.
func (t timeoutWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }
