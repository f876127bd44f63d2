package runtime

import (
	"errors"
	"sync"
	"time"

	"github.com/rolecall/rolecall/journal"
)

// How long events may wait for others to share a commit with, and how many
// events, of how many bytes, may wait.
const (
	flushDelay       = 10 * time.Millisecond
	maxBuffered      = 512
	maxBufferedBytes = 4 << 20
)

// recordBuffer takes the events of calls that change nothing, and puts them on disk
// together, in the order they came: a crash loses what came within flushDelay
// at most (decision 17). Safe for concurrent use.
type recordBuffer struct {
	commit func(*journal.Batch) (uint64, error)

	flushing sync.Mutex // held until what waited is on disk: the order stays

	mu      sync.Mutex // guards what follows
	waiting []journal.Event
	bytes   int
}

// flushIfFull puts on disk what waits if it is as much as may.
func (t *recordBuffer) flushIfFull() error {
	t.mu.Lock()
	full := len(t.waiting) >= maxBuffered || t.bytes >= maxBufferedBytes
	t.mu.Unlock()
	if full {
		return t.flush()
	}
	return nil
}

// add takes events whose texts have so many bytes. It waits for nothing.
func (t *recordBuffer) add(bytes int, events ...journal.Event) {
	t.mu.Lock()
	first := len(t.waiting) == 0
	t.waiting = append(t.waiting, events...)
	t.bytes += bytes
	t.mu.Unlock()
	if first {
		time.AfterFunc(flushDelay, func() { _ = t.flush() }) // that the store has stopped is told by commit
	}
}

// flush returns when all that was added before is on disk.
func (t *recordBuffer) flush() error {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	t.mu.Lock()
	events := t.waiting
	t.waiting, t.bytes = nil, 0
	t.mu.Unlock()
	if len(events) == 0 {
		return nil
	}
	_, err := t.commit(&journal.Batch{Events: events})
	return err
}

// Flush returns when the record of every call that Invoke has returned from is
// on disk. The error says that the store has stopped. Safe for concurrent use.
func (rt *Runtime) Flush() error { return rt.buffer.flush() }

// flushAndCommit puts a batch on disk behind the record of every call that Invoke
// has returned from.
func (rt *Runtime) flushAndCommit(b *journal.Batch) (uint64, error) {
	if err := rt.buffer.flush(); err != nil {
		return 0, err
	}
	return rt.commit(b)
}

// close puts what still waits on disk when all work has ended. A store that
// has stopped said so before.
func (t *recordBuffer) close() error {
	if err := t.flush(); !errors.Is(err, journal.ErrClosed) {
		return err
	}
	return nil
}
