// Package memory implements journal.Store in memory, for tests, for experiments
// and for organizations that are not resumed after the process ends.
//
// It behaves like a store on disk but is lost with the process. Events,
// payloads and values are not copied: neither the caller of Commit nor readers
// may change them. Memory is freed only for what a batch removes.
package memory

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// Store is a store in memory. All methods are safe for concurrent use.
type Store struct {
	commitMu sync.Mutex // held during a commit; separate from mu, since Prepare may read the store

	mu       sync.RWMutex // guards the fields below
	seq      uint64
	log      log
	inbox    map[identity.AgentID][]journal.Message // elements are never changed; readers get clipped slices
	delayed  map[identity.AgentID][]journal.Message // by recipient; elements are never changed
	runnable map[identity.AgentID]struct{}
	records  map[recordKey][]byte
	notify   chan struct{} // closed by the next commit; nil if no reader waits
	closed   bool
}

type recordKey struct{ kind, key string }

// New returns an empty Store.
func New() *Store {
	return &Store{
		log:      log{last: map[identity.AgentID]int{}},
		inbox:    map[identity.AgentID][]journal.Message{},
		delayed:  map[identity.AgentID][]journal.Message{},
		runnable: map[identity.AgentID]struct{}{},
		records:  map[recordKey][]byte{},
	}
}

var _ journal.Store = (*Store)(nil)

// Commit implements journal.Log.
func (s *Store) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if err := s.checkOpen(ctx); err != nil {
		return 0, err
	}
	if b.Prepare != nil {
		if err := b.Prepare(b); err != nil {
			return 0, err
		}
	}
	if err := checkBatch(b); err != nil {
		if b.Prepare != nil { // the changes that Prepare made in memory cannot be undone
			err = errors.Join(err, journal.ErrClosed, s.Close())
		}
		return 0, err
	}
	if err := addMeasured(b); err != nil {
		return 0, errors.Join(err, journal.ErrClosed, s.Close())
	}
	return s.apply(b), nil
}

// addMeasured adds the records of Measured to a batch. It encodes the bodies of the events
// only for their sizes.
func addMeasured(b *journal.Batch) error {
	if b.Measured == nil {
		return nil
	}
	var written byteCounter
	encoder := json.NewEncoder(&written)
	sizes := make([]int, len(b.Events))
	for i := range b.Events {
		written = 0
		if err := encoder.Encode(b.Events[i].Body); err != nil {
			return err
		}
		sizes[i] = headSize(&b.Events[i]) + int(written)
	}
	b.Put = append(b.Put, b.Measured(sizes)...)
	return nil
}

// headSize returns about the length of an event's fields besides its body, as JSON.
func headSize(e *journal.Event) int {
	const names = len(`{"seq":1000000,"at":"2026-01-02T15:04:05.999999999Z","type":"","task":"","agent":"","role":""`)
	return names + len(e.Body.EventType()) + len(e.Task) + len(e.Agent) + len(e.Role)
}

// byteCounter counts the bytes that are written to it.
type byteCounter int

// Write implements io.Writer.
func (c *byteCounter) Write(p []byte) (int, error) {
	*c += byteCounter(len(p))
	return len(p), nil
}

// checkBatch rejects a batch with an event that has no body.
func checkBatch(b *journal.Batch) error {
	if slices.ContainsFunc(b.Events, func(e journal.Event) bool { return e.Body == nil }) {
		return errors.New("event has no body")
	}
	return nil
}

// apply applies a batch and returns the last sequence number.
func (s *Store) apply(b *journal.Batch) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.append(b)
	s.consume(b.Stream, b.Consume)
	for i := range b.Send {
		s.deliver(&b.Send[i])
	}
	for _, m := range b.Deliver {
		s.deliverDue(m)
	}
	for _, id := range b.Purge {
		delete(s.inbox, id)
		delete(s.delayed, id)
		delete(s.runnable, id)
	}
	s.put(b.Put)
	s.updateRunnable(b)
	s.notifyReaders()
	return s.seq
}

// nextSeq assigns the next sequence number, of an event or a message.
func (s *Store) nextSeq() uint64 {
	s.seq++
	return s.seq
}

// append appends the events of a batch to the log and sets their sequence numbers.
func (s *Store) append(b *journal.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		e.Seq, e.Stream = s.nextSeq(), b.Stream
		s.log.append(*e)
	}
}

// deliver sets the sequence number of a message and adds it to its inbox or to
// the delayed messages.
func (s *Store) deliver(m *journal.Message) {
	m.Seq = s.nextSeq()
	to := identity.AgentID(m.To)
	if !m.Due.IsZero() {
		s.delayed[to] = append(s.delayed[to], *m)
		return
	}
	s.inbox[to] = append(s.inbox[to], *m)
	s.runnable[to] = struct{}{}
}

// deliverDue moves a delayed message to the end of its inbox.
func (s *Store) deliverDue(m journal.Message) {
	to := identity.AgentID(m.To)
	same := func(d journal.Message) bool { return d.Seq == m.Seq }
	if !slices.ContainsFunc(s.delayed[to], same) { // delivered or removed before
		return
	}
	setRemaining(s.delayed, to, without(s.delayed[to], same))
	m.Due = time.Time{}
	s.deliver(&m)
}

// consume removes received messages from the inbox of a stream.
func (s *Store) consume(stream identity.AgentID, taken []uint64) {
	if len(taken) == 0 {
		return
	}
	setRemaining(s.inbox, stream, without(s.inbox[stream], func(m journal.Message) bool { return slices.Contains(taken, m.Seq) }))
}

// setRemaining replaces the messages of an agent by list.
func setRemaining(lists map[identity.AgentID][]journal.Message, id identity.AgentID, list []journal.Message) {
	if len(list) == 0 {
		delete(lists, id)
		return
	}
	lists[id] = list
}

// without returns a new slice without the messages for which gone reports true.
func without(list []journal.Message, gone func(journal.Message) bool) []journal.Message {
	var left []journal.Message
	for _, m := range list {
		if !gone(m) {
			left = append(left, m)
		}
	}
	return left
}

// put stores records. One with a nil value is deleted.
func (s *Store) put(records []journal.Record) {
	for _, r := range records {
		if r.Value == nil {
			delete(s.records, recordKey{r.Kind, r.Key})
			continue
		}
		s.records[recordKey{r.Kind, r.Key}] = r.Value
	}
}

// updateRunnable updates the runnable mark of the batch's agent: set unless the
// agent is idle and its inbox is empty.
func (s *Store) updateRunnable(b *journal.Batch) {
	switch {
	case b.Stream == journal.Org:
	case b.Idle && len(s.inbox[b.Stream]) == 0:
		delete(s.runnable, b.Stream)
	default:
		s.runnable[b.Stream] = struct{}{}
	}
}

// notifyReaders wakes the readers that wait for new events.
func (s *Store) notifyReaders() {
	if s.notify != nil {
		close(s.notify)
		s.notify = nil
	}
}

// Close ends the store: later calls return journal.ErrClosed. It may be called
// more than once and concurrently with other calls.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.notifyReaders()
	return nil
}
