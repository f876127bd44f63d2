package persist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

const (
	maxGroupCommit = 256 // maximum number of batches in a transaction
	checkpoint     = 512 // number of events after which the index is written
	maxID          = 255 // maximum length of an agent id in bytes: keys have the length in one byte

	settleDelay = time.Second            // time without commits after which the last is settled
	checkPeriod = 400 * time.Millisecond // between checks that the data file has its name
)

// commit is a batch on its way to disk.
type commit struct {
	batch                         *journal.Batch
	events, sendJSON, deliverJSON [][]byte // the first entries of batch.Events, Send and Deliver, encoded
	seq                           uint64
	err                           error
	done                          chan struct{} // closed when seq and err are set
}

// encode encodes the events and messages that are not encoded yet. It runs before the
// transaction begins, so that a batch that cannot be encoded fails alone.
func (c *commit) encode() (err error) {
	b := c.batch
	if err := checkKeySizes(b); err != nil {
		return err
	}
	for i := len(c.events); i < len(b.Events); i++ {
		e := &b.Events[i]
		e.Seq, e.Stream = 0, b.Stream   // the key has the sequence number
		payload, err := e.MarshalJSON() // json.Marshal would parse the result again
		if err != nil {
			return fmt.Errorf("encode event %d of %q: %w", i, e.Stream, err)
		}
		c.events = append(c.events, payload)
	}
	if c.sendJSON, err = encodeMessages(c.sendJSON, b.Send); err == nil {
		c.deliverJSON, err = encodeMessages(c.deliverJSON, b.Deliver)
	}
	return err
}

// encodeMessages appends to done the messages of list that are not encoded yet.
func encodeMessages(done [][]byte, list []journal.Message) ([][]byte, error) {
	for i := len(done); i < len(list); i++ {
		payload, err := json.Marshal(&list[i].Message)
		if err != nil {
			return done, fmt.Errorf("encode message to %q: %w", list[i].To, err)
		}
		done = append(done, payload)
	}
	return done, nil
}

// checkKeySizes returns an error if a key of the batch cannot be encoded.
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
			return fmt.Errorf("agent id %.64q has %d bytes; at most %d are allowed", id, len(id), maxID)
		}
	}
	for _, r := range b.Put {
		if n := len(recordKey(r.Kind, r.Key)); n > bolt.MaxKeySize {
			return fmt.Errorf("record %s %.64q: its key has %d bytes; at most %d are allowed", r.Kind, r.Key, n, bolt.MaxKeySize)
		}
	}
	return nil
}

// Commit implements journal.Log. Once the batch is queued, ctx has no effect: Commit then
// waits for the outcome.
func (s *Store) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if s.readOnly {
		return s.commitReadOnly(b)
	}
	c := &commit{batch: b, done: make(chan struct{})}
	if err := c.encode(); err != nil { // in this goroutine, while the committer waits for the disk
		return 0, err
	}
	if err := s.enqueue(c); err != nil {
		return 0, err
	}
	<-c.done
	return c.seq, c.err
}

// commitReadOnly is Commit of a store that is open for reading. It runs Prepare and then accepts
// only an empty batch, such as the batch of a dry run.
func (s *Store) commitReadOnly(b *journal.Batch) (uint64, error) {
	s.queueMu.Lock() // one Prepare at a time
	defer s.queueMu.Unlock()
	if b.Prepare != nil {
		if err := b.Prepare(b); err != nil {
			return 0, err
		}
	}
	if b.Stream == journal.Org && len(b.Events)+len(b.Send)+len(b.Consume)+len(b.Deliver)+len(b.Purge)+len(b.Put) == 0 {
		return s.LastSeq(), nil
	}
	return 0, errcode.New(errcode.PermissionDenied, "commit to %s: it is open for reading only", s.db.Path())
}

// enqueue queues a commit, unless the store is closed.
func (s *Store) enqueue(c *commit) error {
	s.queueMu.RLock()
	defer s.queueMu.RUnlock()
	if s.closed {
		return journal.ErrClosed
	}
	s.queue <- c
	return nil
}

// commitLoop is the committer. It ends when the queue is closed and empty.
func (s *Store) commitLoop() {
	defer close(s.committerDone)
	check := time.NewTicker(checkPeriod)
	defer check.Stop()
	last := time.Now() // of the last commit
	for {
		select {
		case first, ok := <-s.queue:
			if !ok {
				s.settle()
				s.stopIfMoved()
				return
			}
			s.commitGroup(s.collectGroup(first))
			last = time.Now()
		case <-check.C:
			s.stopIfMoved()
			if time.Since(last) >= settleDelay {
				s.settle()
			}
		}
	}
}

// settle commits the contents of the last commit once more, unless that is done. bbolt
// writes its two meta pages in turn, so both then lead to these contents. If the write of
// one is lost, or an older page is in its place, Open finds them or rejects the file.
func (s *Store) settle() {
	if s.settled || s.stopReason() != nil {
		return
	}
	if err := s.writeAll(nil); err != nil {
		_ = s.stop(err) // Close and later commits return it
	}
	s.settled = true
	s.notifyAll()
}

// collectGroup returns first and the commits that are queued after it. It lets other
// goroutines run first, so that writers whose last commit has just returned can join.
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

// commitGroup commits a list of batches in one transaction and sets the outcome of each.
func (s *Store) commitGroup(list []*commit) {
	ready := s.prepareAll(list)
	err := s.stopReason()
	if err == nil && len(ready) > 0 {
		if err = s.writeAll(ready); err != nil {
			err = s.stop(err)
		} else {
			err = s.stopIfMoved()
		}
		s.settled, s.committed = false, true
	}
	for _, c := range ready {
		c.err = err
	}
	s.notifyAll()
	for _, c := range list {
		close(c.done)
	}
}

// prepareAll calls the Prepare functions of the batches, in order. It returns the batches
// that are to be written.
func (s *Store) prepareAll(list []*commit) []*commit {
	ready := make([]*commit, 0, len(list))
	for _, c := range list {
		if s.stopReason() == nil {
			c.err = s.prepareOne(c)
		}
		if c.err == nil {
			ready = append(ready, c)
		}
	}
	return ready
}

// prepareOne calls Prepare and Measured of a batch. If what Prepare added cannot be
// encoded, the store stops: Prepare may have changed memory, which would differ from the
// file.
func (s *Store) prepareOne(c *commit) error {
	if c.batch.Prepare != nil {
		if err := c.batch.Prepare(c.batch); err != nil {
			return err
		}
		if err := c.encode(); err != nil {
			return s.stop(err)
		}
	}
	if c.batch.Measured != nil {
		c.batch.Put = append(c.batch.Put, c.batch.Measured(c.eventSizes())...)
	}
	return nil
}

// eventSizes returns the sizes of the encoded events.
func (c *commit) eventSizes() []int {
	sizes := make([]int, len(c.events))
	for i, payload := range c.events {
		sizes[i] = len(payload)
	}
	return sizes
}

// stopReason returns the reason if the store has stopped, else nil.
func (s *Store) stopReason() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.stopErr
}

// stop stops the store after a failed commit, whose outcome is unknown. It returns the
// error for all later commits.
func (s *Store) stop(cause error) error {
	if err := s.brokenBy(); err != nil {
		return err
	}
	return s.stopWith(fmt.Errorf("commit to %s: %w; its outcome is unknown and the store has stopped (%w): %s, then start the program again and resume the task",
		s.db.Path(), cause, journal.ErrClosed, recoveryHint(cause)))
}

// stopWith stops the store for a reason, which it returns.
func (s *Store) stopWith(reason error) error {
	s.mu.Lock()
	s.stopErr = reason
	s.mu.Unlock()
	s.endLife(reason)
	return reason
}

// NotifyStop implements journal.StopNotifier.
func (s *Store) NotifyStop(fn func(reason error)) (cancel func() bool) {
	return context.AfterFunc(s.life, func() { fn(context.Cause(s.life)) })
}

// recoveryHint returns what the operator can do about a failed commit.
func recoveryHint(cause error) string {
	if errors.Is(cause, syscall.ENOSPC) || errors.Is(cause, syscall.EDQUOT) {
		return "free some space on the disk"
	}
	return "check the disk"
}

// notifyAll wakes the readers that wait for a commit.
func (s *Store) notifyAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.notify)
	s.notify = make(chan struct{})
}

// writeAll writes batches in one transaction. It updates memory when they are on disk.
func (s *Store) writeAll(list []*commit) error {
	w := &writer{integrity: s.integrity, due: s.delayed}
	id := 0
	write := func(tx *bolt.Tx) error {
		id = tx.ID()
		w.openBuckets(tx)
		for _, c := range list {
			if err := w.writeBatch(c); err != nil {
				return err
			}
			c.seq = w.integrity.seq
		}
		if err := w.checkpoint(s); err != nil {
			return err
		}
		return writeIntegrity(tx, &w.integrity)
	}
	if err := s.useBolt(func() error { return s.db.Update(write) }, nil); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	indexed := w.integrity.indexed != s.integrity.indexed
	s.integrity, s.synced = w.integrity, id
	if indexed {
		clear(s.tail)
		s.tailLen = 0
		return nil
	}
	for _, p := range w.positions {
		s.addToTail(p.stream, p.seq)
	}
	return nil
}
