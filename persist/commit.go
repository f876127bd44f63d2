package persist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"syscall"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

const (
	maxGroupCommit = 256 // batches that share a transaction, at most
	checkpoint     = 512 // events between two writings of the index
	maxID          = 255 // bytes of an agent's id: keys give their number in one byte
)

// commit is a batch on its way to disk.
type commit struct {
	batch                 *journal.Batch
	events, post, arrived [][]byte // encoded: as many as there were when that was done
	seq                   uint64
	err                   error
	done                  chan struct{}
}

// encode writes as JSON what is not yet: before any transaction begins, so
// that what cannot be written fails alone.
func (c *commit) encode() (err error) {
	b := c.batch
	if err := checkKeySizes(b); err != nil {
		return err
	}
	for i := len(c.events); i < len(b.Events); i++ {
		e := &b.Events[i]
		e.Seq, e.Stream = 0, b.Stream   // the key holds the number
		payload, err := e.MarshalJSON() // json.Marshal would read what this gives once more
		if err != nil {
			return fmt.Errorf("encode event %d of %q: %w", i, e.Stream, err)
		}
		c.events = append(c.events, payload)
	}
	if c.post, err = encodeMail(c.post, b.Send); err == nil {
		c.arrived, err = encodeMail(c.arrived, b.Deliver)
	}
	return err
}

// encodeMail adds the messages behind those that are done.
func encodeMail(done [][]byte, list []journal.Message) ([][]byte, error) {
	for i := len(done); i < len(list); i++ {
		payload, err := json.Marshal(&list[i].Message)
		if err != nil {
			return done, fmt.Errorf("encode message to %q: %w", list[i].To, err)
		}
		done = append(done, payload)
	}
	return done, nil
}

// checkKeySizes refuses what no key can hold.
func checkKeySizes(b *journal.Batch) error {
	ids := append([]identity.AgentID{b.Stream}, b.Purge...)
	for _, m := range slices.Concat(b.Send, b.Deliver) {
		ids = append(ids, identity.AgentID(m.To))
		if due := m.Due.UTC(); !m.Due.IsZero() && (due.Year() < 1970 || due.Year() > 2261) {
			return fmt.Errorf("message to %.64q: due in the year %d", m.To, due.Year())
		}
	}
	for _, id := range ids {
		if len(id) > maxID {
			return fmt.Errorf("agent id %.64q has %d bytes; at most %d are kept", id, len(id), maxID)
		}
	}
	for _, r := range b.Put {
		if n := len(recordKey(r.Kind, r.Key)); n > bolt.MaxKeySize {
			return fmt.Errorf("record %s %.64q: its key has %d bytes; at most %d are kept", r.Kind, r.Key, n, bolt.MaxKeySize)
		}
	}
	return nil
}

// Commit implements journal.Log.
func (s *Store) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	c := &commit{batch: b, done: make(chan struct{})}
	if err := c.encode(); err != nil { // here, while the committer waits for the disk
		return 0, err
	}
	if err := s.enqueue(c); err != nil {
		return 0, err
	}
	<-c.done
	return c.seq, c.err
}

func (s *Store) enqueue(c *commit) error {
	s.queueMu.RLock()
	defer s.queueMu.RUnlock()
	if s.closed {
		return journal.ErrClosed
	}
	s.queue <- c
	return nil
}

// commitLoop is the committer: the only writer of the file.
func (s *Store) commitLoop() {
	defer close(s.committerDone)
	for first := range s.queue {
		s.commitGroup(s.collectGroup(first))
	}
}

// collectGroup gathers what is queued behind first. Those who were just answered are
// let go first: what they commit next shares this transaction, not the one after.
func (s *Store) collectGroup(first *commit) []*commit {
	runtime.Gosched()
	list := []*commit{first}
	for len(list) < maxGroupCommit {
		select {
		case c, ok := <-s.queue:
			if !ok {
				return list
			}
			list = append(list, c)
		default:
			return list
		}
	}
	return list
}

// commitGroup commits a list of batches in one transaction and answers each.
func (s *Store) commitGroup(list []*commit) {
	ready := s.prepareAll(list)
	err := s.stopped()
	if err == nil && len(ready) > 0 {
		if err = s.writeAll(ready); err != nil {
			err = s.stop(err)
		}
	}
	for _, c := range ready {
		c.err = err
	}
	s.announce()
	for _, c := range list {
		close(c.done)
	}
}

// prepareAll runs what batches decide at the last moment and keeps out those
// that refuse.
func (s *Store) prepareAll(list []*commit) []*commit {
	ready := make([]*commit, 0, len(list))
	for _, c := range list {
		if c.batch.Prepare != nil && s.stopped() == nil {
			c.err = s.prepareOne(c)
		}
		if c.err == nil {
			ready = append(ready, c)
		}
	}
	return ready
}

// prepareOne lets a batch decide. When what it added cannot be written, memory
// may have changed and cannot follow.
func (s *Store) prepareOne(c *commit) error {
	if err := c.batch.Prepare(c.batch); err != nil {
		return err
	}
	if err := c.encode(); err != nil {
		return s.stop(err)
	}
	return nil
}

func (s *Store) stopped() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.stopErr
}

// stop makes the store take nothing more: what became of the commit is unknown.
func (s *Store) stop(cause error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopErr = fmt.Errorf("commit to %s: %w; what became of it is unknown and %w: %s, then start the program again and resume the task",
		s.db.Path(), cause, journal.ErrClosed, recoveryHint(cause))
	return s.stopErr
}

// recoveryHint says what to do about a commit that failed.
func recoveryHint(cause error) string {
	if errors.Is(cause, syscall.ENOSPC) || errors.Is(cause, syscall.EDQUOT) {
		return "make room on the disk"
	}
	return "look after the disk it is on"
}

func (s *Store) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.notify)
	s.notify = make(chan struct{})
}

// writeAll writes batches; memory follows only when they are on disk.
func (s *Store) writeAll(list []*commit) error {
	w := &writer{ledger: s.ledger, held: s.delayed}
	id := 0
	err := s.db.Update(func(tx *bolt.Tx) error {
		id = tx.ID()
		w.open(tx)
		for _, c := range list {
			if err := w.batch(c); err != nil {
				return err
			}
			c.seq = w.ledger.seq
		}
		if err := w.checkpoint(s); err != nil {
			return err
		}
		return writeLedger(tx, &w.ledger)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	indexed := w.ledger.indexed != s.ledger.indexed
	s.ledger, s.synced = w.ledger, id
	if indexed {
		clear(s.tail)
		s.tailLen = 0
		return nil
	}
	for _, p := range w.places {
		s.remember(p.stream, p.seq)
	}
	return nil
}
