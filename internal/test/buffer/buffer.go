// Package buffer provides the buffer that tests use as the log or the output of what
// they start:
//
//	var log buffer.SyncBuffer
//	config.Log = slog.New(slog.NewTextHandler(&log, nil))
//	…
//	if !strings.Contains(log.String(), "reloaded") { … }
package buffer

import (
	"bytes"
	"sync"
)

// SyncBuffer is a bytes.Buffer that is safe for concurrent use. The zero value is
// empty.
type SyncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (b *SyncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns what was written and not drained.
func (b *SyncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Drain returns what String returns and empties the buffer.
func (b *SyncBuffer) Drain() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.text.Reset()
	return b.text.String()
}
