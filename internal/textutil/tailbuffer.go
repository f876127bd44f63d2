package textutil

import "sync"

// TailBuffer is an io.Writer that keeps the last bytes written to it, such as the
// end of what a program wrote to standard error. It is safe for concurrent use.
// The zero TailBuffer keeps nothing.
type TailBuffer struct {
	Size int // how many bytes are kept at most

	mu   sync.Mutex
	text []byte // guarded by mu
}

// Write implements io.Writer. It never fails.
func (b *TailBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p[max(0, len(p)-b.Size):]...)
	if over := len(b.text) - b.Size; over > 0 {
		b.text = append(b.text[:0], b.text[over:]...)
	}
	return len(p), nil
}

// String returns the bytes that are kept.
func (b *TailBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}
