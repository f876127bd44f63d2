package mcpclient

import (
	"strings"
	"sync"
)

// maxStderr is how much of what a server wrote to stderr is kept.
const maxStderr = 64 << 10

// tailBuffer keeps the end of what is written to it. It is safe for concurrent use.
type tailBuffer struct {
	mu   sync.Mutex // guards text
	text []byte
}

// Write implements io.Writer; it never fails.
func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-maxStderr):]...)
	if over := len(t.text) - maxStderr; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// String gives what is kept, without characters that a terminal obeys.
func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(visible(string(t.text)))
}
