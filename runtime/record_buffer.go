package runtime

import (
	"errors"
	"sync"
	"time"

	"github.com/rolecall/rolecall/journal"
)

// Limits of the record buffer: how long events may wait for a shared commit,
// and how many events and bytes may wait.
const (
	flushDelay       = 10 * time.Millisecond
	maxBuffered      = 512
	maxBufferedBytes = 4 << 20
)

// recordBuffer batches the events of calls without effects and commits them in
// order. A commit begins after flushDelay, or when the one before has ended. A
// crash loses the events that wait and the events of the commit in progress. The
// events that wait are bounded in number and size. Safe for concurrent use.
type recordBuffer struct {
	commit func(*journal.Batch) (uint64, error)

	flushMu sync.Mutex // held until the waiting events are committed, which keeps their order

	mu      sync.Mutex // guards the fields below
	waiting []journal.Event
	bytes   int
}

// flushIfFull flushes the buffer if it has reached a limit.
func (b *recordBuffer) flushIfFull() error {
	b.mu.Lock()
	full := len(b.waiting) >= maxBuffered || b.bytes >= maxBufferedBytes
	b.mu.Unlock()
	if full {
		return b.flush()
	}
	return nil
}

// add appends events of about that many bytes and starts the flush timer. It
// does not block on I/O.
func (b *recordBuffer) add(bytes int, events ...journal.Event) {
	b.mu.Lock()
	first := len(b.waiting) == 0
	b.waiting = append(b.waiting, events...)
	b.bytes += bytes
	b.mu.Unlock()
	if first {
		time.AfterFunc(flushDelay, func() { _ = b.flush() }) // commit itself handles a stopped store
	}
}

// flush commits the waiting events and returns when all events added before are
// on disk.
func (b *recordBuffer) flush() error {
	b.flushMu.Lock()
	defer b.flushMu.Unlock()
	b.mu.Lock()
	events := b.waiting
	b.waiting, b.bytes = nil, 0
	b.mu.Unlock()
	if len(events) == 0 {
		return nil
	}
	_, err := b.commit(&journal.Batch{Events: events})
	return err
}

// Flush returns when the events of every call that InvokeTool has returned from are
// on disk. An error means that the store has stopped.
func (rt *Runtime) Flush() error { return rt.buffer.flush() }

// flushAndCommit commits a batch after the events of every call that Invoke has
// returned from.
func (rt *Runtime) flushAndCommit(b *journal.Batch) (uint64, error) {
	if err := rt.buffer.flush(); err != nil {
		return 0, err
	}
	return rt.commit(b)
}

// close flushes the buffer after all work has ended. It ignores
// journal.ErrClosed, which was reported before.
func (b *recordBuffer) close() error {
	if err := b.flush(); !errors.Is(err, journal.ErrClosed) {
		return err
	}
	return nil
}
