// Package memory is a journal.Store that lasts as long as its process: for
// tests, for trying things out, and for organizations nobody needs to resume.
//
// New makes one; it does what journal says of a Store, except that nothing is
// on disk. Events, payloads and values are kept as they are given and given as
// they are kept: neither who commits nor who reads may change them. Nothing is
// ever let go but what a batch takes away.
package memory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// Store is a store in memory. All methods are safe for concurrent use.
type Store struct {
	turn sync.Mutex // held by the batch that is committed: it may read while it decides

	mu       sync.RWMutex // guards what follows
	seq      uint64
	log      log
	inbox    map[identity.AgentID][]journal.Message // lists are replaced, never changed
	delayed  map[identity.AgentID][]journal.Message // as those, by recipient
	runnable map[identity.AgentID]struct{}
	records  map[recordKey][]byte
	notify   chan struct{} // closed at the next commit; nil while nobody waits
	closed   bool
}

type recordKey struct{ kind, key string }

// New makes an empty Store.
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
	s.turn.Lock()
	defer s.turn.Unlock()
	if err := s.open(ctx); err != nil {
		return 0, err
	}
	if b.Prepare != nil {
		if err := b.Prepare(b); err != nil {
			return 0, err
		}
	}
	if err := checkBatch(b); err != nil {
		if b.Prepare != nil { // what it changed in memory cannot follow
			err = errors.Join(err, journal.ErrClosed, s.Close())
		}
		return 0, err
	}
	return s.apply(b), nil
}

// checkBatch refuses what no journal can hold.
func checkBatch(b *journal.Batch) error {
	if slices.ContainsFunc(b.Events, func(e journal.Event) bool { return e.Body == nil }) {
		return errors.New("the event has no body")
	}
	return nil
}

func (s *Store) apply(b *journal.Batch) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.append(b)
	s.take(b.Stream, b.Consume)
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
	s.announce()
	return s.seq
}

func (s *Store) next() uint64 {
	s.seq++
	return s.seq
}

func (s *Store) append(b *journal.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		e.Seq, e.Stream = s.next(), b.Stream
		s.log.append(*e)
	}
}

// deliver gives a message its number and puts it where it waits.
func (s *Store) deliver(m *journal.Message) {
	m.Seq = s.next()
	to := identity.AgentID(m.To)
	if !m.Due.IsZero() {
		s.delayed[to] = append(s.delayed[to], *m)
		return
	}
	s.inbox[to] = append(s.inbox[to], *m)
	s.runnable[to] = struct{}{}
}

// deliverDue moves a delayed message to its inbox, behind what is there.
func (s *Store) deliverDue(m journal.Message) {
	to := identity.AgentID(m.To)
	same := func(d journal.Message) bool { return d.Seq == m.Seq }
	if !slices.ContainsFunc(s.delayed[to], same) { // it has arrived, or was let go
		return
	}
	remaining(s.delayed, to, without(s.delayed[to], same))
	m.Due = time.Time{}
	s.deliver(&m)
}

func (s *Store) take(stream identity.AgentID, taken []uint64) {
	if len(taken) == 0 {
		return
	}
	remaining(s.inbox, stream, without(s.inbox[stream], func(m journal.Message) bool { return slices.Contains(taken, m.Seq) }))
}

// remaining puts what is left of an agent's list in its place.
func remaining(lists map[identity.AgentID][]journal.Message, id identity.AgentID, list []journal.Message) {
	if len(list) == 0 {
		delete(lists, id)
		return
	}
	lists[id] = list
}

// without gives a list of its own without what is gone.
func without(list []journal.Message, gone func(journal.Message) bool) []journal.Message {
	var left []journal.Message
	for _, m := range list {
		if !gone(m) {
			left = append(left, m)
		}
	}
	return left
}

func (s *Store) put(records []journal.Record) {
	for _, r := range records {
		if r.Value == nil {
			delete(s.records, recordKey{r.Kind, r.Key})
			continue
		}
		s.records[recordKey{r.Kind, r.Key}] = r.Value
	}
}

// updateRunnable keeps the runnable mark of the batch's agent: on while it works, off
// when it is idle and nothing waits for it.
func (s *Store) updateRunnable(b *journal.Batch) {
	switch {
	case b.Stream == journal.Org:
	case b.Idle && len(s.inbox[b.Stream]) == 0:
		delete(s.runnable, b.Stream)
	default:
		s.runnable[b.Stream] = struct{}{}
	}
}

func (s *Store) announce() {
	if s.notify != nil {
		close(s.notify)
		s.notify = nil
	}
}

// Close ends the store: nothing is committed or read any more. It may be
// called twice and while calls run.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.announce()
	return nil
}
