package persist

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// chunkSize is the number of entries that one read transaction reads. No transaction stays
// open while the caller of an iterator uses them.
const chunkSize = 256

// chunkBytes is the size of events or records after which a chunk ends, in bytes.
const chunkBytes = 1 << 20

// scanBytes is the size of entries, matching or not, after which a chunk of the log ends, in bytes.
const scanBytes = 16 * chunkBytes

// dropCacheEvery is the number of chunks of records after which a long iteration releases
// the pages that it has read.
const dropCacheEvery = 64

// Read implements journal.Log. It yields the events of a stream after a sequence number.
func (s *Store) Read(ctx context.Context, stream identity.AgentID, after uint64) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		seqs, err := s.seqsOf(ctx, stream, after)
		if err != nil {
			yield(journal.Event{}, err)
			return
		}
		for len(seqs) > 0 {
			events, err := s.fetchEvents(ctx, seqs[:min(chunkSize, len(seqs))])
			seqs = seqs[len(events):]
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(journal.Event{}, err)
				return
			}
		}
	}
}

// seqsOf returns the sequence numbers of a stream's events: first the numbers in the index bucket,
// then the numbers in memory.
func (s *Store) seqsOf(ctx context.Context, stream identity.AgentID, after uint64) ([]uint64, error) {
	s.mu.RLock()
	tail := slices.Clone(s.tail[stream])
	s.mu.RUnlock()
	var seqs []uint64
	err := s.view(ctx, func(tx *bolt.Tx) error {
		for key, value := range withPrefix(tx.Bucket(bucketIndex), agentKey(stream)) {
			payload, err := unframe(bucketIndex, key, kindIndex, value)
			if err != nil {
				return err
			}
			more, err := unpackSeqs(payload)
			if err != nil {
				return err
			}
			seqs = append(seqs, more...)
		}
		return nil
	})
	for _, seq := range tail { // a checkpoint between the two reads puts them in both
		if len(seqs) == 0 || seq > seqs[len(seqs)-1] {
			seqs = append(seqs, seq)
		}
	}
	from, _ := slices.BinarySearch(seqs, after+1)
	return seqs[from:], err
}

// fetchEvents reads the events with the given sequence numbers, fewer if they are large, but at
// least one.
func (s *Store) fetchEvents(ctx context.Context, seqs []uint64) ([]journal.Event, error) {
	events := make([]journal.Event, 0, len(seqs))
	err := s.view(ctx, func(tx *bolt.Tx) error {
		b, size := tx.Bucket(bucketLog), 0
		for _, seq := range seqs {
			key := numberKey(seq)
			value := b.Get(key)
			e, err := decodeEvent(key, value)
			if err != nil {
				return err
			}
			events = append(events, e)
			if size += len(value); size >= chunkBytes {
				return nil
			}
		}
		return nil
	})
	return events, err
}

func decodeEvent(key, value []byte) (journal.Event, error) {
	payload, err := unframe(bucketLog, key, kindEvent, value)
	if err != nil {
		return journal.Event{}, err
	}
	return decodePayload(key, payload)
}

// decodePayload decodes the payload of an entry of the log.
func decodePayload(key, payload []byte) (journal.Event, error) {
	var e journal.Event
	if err := e.UnmarshalJSON(payload); err != nil { // not json.Unmarshal, which reads the payload once more
		return e, fmt.Errorf("event %d: %w", decodeNumber(key), err)
	}
	e.Seq = decodeNumber(key)
	return e, nil
}

// FollowEvents implements journal.EventFollower.
func (s *Store) FollowEvents(ctx context.Context, after uint64, wait bool) iter.Seq2[journal.Event, error] {
	return s.follow(ctx, after, wait, nil)
}

// FollowTask implements journal.EventFollower.
func (s *Store) FollowTask(ctx context.Context, task identity.TaskID, after uint64, wait bool) iter.Seq2[journal.Event, error] {
	return s.FollowMatching(ctx, func(h journal.EventHead) bool { return h.Task() == task }, after, wait)
}

// FollowMatching implements journal.EventFollower.
func (s *Store) FollowMatching(ctx context.Context, match journal.EventFilter, after uint64, wait bool) iter.Seq2[journal.Event, error] {
	return s.follow(ctx, after, wait, match)
}

// EventsBefore implements journal.EventSeeker.
func (s *Store) EventsBefore(ctx context.Context, match journal.EventFilter, before uint64) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		for before > 0 {
			part, err := s.earlierChunk(ctx, before, match)
			for e := range part.all {
				before = e.Seq
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(journal.Event{}, err)
				return
			}
			if len(part.seqs) == 0 {
				return
			}
		}
	}
}

// logChunk is a part of the log, in the order in which it was read. Of an event that does not
// match it has only the number. Thousands of followers may each hold a part in which little
// matches.
type logChunk struct {
	seqs    []uint64        // of all events
	events  []journal.Event // those that match
	scanned int             // size of the entries of seqs, in bytes
	decoded int             // size of the entries of events
}

// isFull reports whether the chunk has enough entries, or large ones.
func (c logChunk) isFull() bool {
	return len(c.seqs) >= chunkSize || c.scanned >= scanBytes || c.decoded >= chunkBytes
}

// all yields every event of the chunk. One that does not match has only its number.
func (c logChunk) all(yield func(journal.Event) bool) {
	events := c.events
	for _, seq := range c.seqs {
		e := journal.Event{Seq: seq}
		if len(events) > 0 && events[0].Seq == seq {
			e, events = events[0], events[1:]
		}
		if !yield(e) {
			return
		}
	}
}

// earlierChunk reads a chunk of the log before a sequence number, newest first.
func (s *Store) earlierChunk(ctx context.Context, before uint64, match journal.EventFilter) (logChunk, error) {
	return s.readChunk(ctx, match, func(c *bolt.Cursor) (key, value []byte) { return lastBefore(c, before) }, (*bolt.Cursor).Prev)
}

// laterChunk reads a chunk of the log after a sequence number.
func (s *Store) laterChunk(ctx context.Context, after uint64, match journal.EventFilter) (logChunk, error) {
	return s.readChunk(ctx, match, func(c *bolt.Cursor) (key, value []byte) { return c.Seek(numberKey(after + 1)) }, (*bolt.Cursor).Next)
}

// readChunk reads a chunk of the log from the entry that first returns. A nil match matches
// every event. With an error it returns what it has read before.
func (s *Store) readChunk(ctx context.Context, match journal.EventFilter, first, next func(*bolt.Cursor) (key, value []byte)) (part logChunk, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketLog).Cursor()
		for key, value := first(c); key != nil && !part.isFull(); key, value = next(c) {
			payload, err := unframe(bucketLog, key, kindEvent, value)
			if err != nil {
				return err
			}
			if match == nil || match(journal.NewEventHead(decodeNumber(key), payload)) {
				e, err := decodePayload(key, payload)
				if err != nil {
					return err
				}
				part.events = append(part.events, e)
				part.decoded += len(value)
			}
			part.scanned += len(value)
			part.seqs = append(part.seqs, decodeNumber(key))
		}
		return nil
	})
	return part, err
}

// lastBefore moves a cursor to the last entry before a number.
func lastBefore(c *bolt.Cursor, before uint64) (key, value []byte) {
	if key, _ := c.Seek(numberKey(before)); key == nil {
		return c.Last()
	}
	return c.Prev()
}

// SeqBefore implements journal.EventSeeker. It bisects the log.
func (s *Store) SeqBefore(ctx context.Context, at time.Time) (seq uint64, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketLog).Cursor()
		last, _ := c.Last()
		if last == nil {
			return nil
		}
		from, to := uint64(0), decodeNumber(last)+1 // the first event at or after the time is in [from, to)
		for from < to {
			middle := from + (to-from)/2
			key, value := c.Seek(numberKey(middle))
			if key == nil {
				to = middle
				continue
			}
			payload, err := unframe(bucketLog, key, kindEvent, value)
			if err != nil {
				return err
			}
			if h := journal.NewEventHead(decodeNumber(key), payload); h.At().Before(at) {
				from = h.Seq + 1
			} else {
				to = middle
			}
		}
		if key, _ := lastBefore(c, from); key != nil {
			seq = decodeNumber(key)
		}
		return nil
	})
	return seq, err
}

// follow yields the events after a sequence number. With wait it also yields events that are
// committed later. Of events that do not match it yields only the number; a nil match matches all.
// It reads the notification channel before the log, so that it misses no commit.
func (s *Store) follow(ctx context.Context, after uint64, wait bool, match journal.EventFilter) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		for {
			committed := s.nextCommit()
			part, err := s.laterChunk(ctx, after, match)
			if err != nil {
				if ctx.Err() == nil || !wait { // without wait a silent end would mean that there are no more events
					yield(journal.Event{}, err)
				}
				return
			}
			for e := range part.all {
				after = e.Seq
				if !yield(e, nil) {
					return
				}
			}
			if len(part.seqs) > 0 {
				continue
			}
			if !wait {
				return
			}
			select {
			case <-committed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// nextCommit returns a channel that is closed after the next commit.
func (s *Store) nextCommit() <-chan struct{} {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.notify
}

// ReadInbox implements journal.Mailbox.
func (s *Store) ReadInbox(ctx context.Context, agent identity.AgentID) ([]journal.Message, error) {
	var list []journal.Message
	err := s.view(ctx, func(tx *bolt.Tx) error {
		for key, value := range withPrefix(tx.Bucket(bucketInbox), agentKey(agent)) {
			m, err := decodeMessage(bucketInbox, key, value)
			if err != nil {
				return err
			}
			list = append(list, m)
		}
		return nil
	})
	return list, err
}

// DelayedMessages implements journal.Mailbox. If some messages are damaged, it returns the others
// together with ErrDamaged.
func (s *Store) DelayedMessages(ctx context.Context) ([]journal.Message, error) {
	var list []journal.Message
	var errs []error
	err := s.view(ctx, func(tx *bolt.Tx) error {
		for key, value := range withPrefix(tx.Bucket(bucketDelayed), nil) {
			m, err := decodeMessage(bucketDelayed, key, value)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			m.Due = time.Unix(0, int64(decodeNumber(key))).UTC()
			list = append(list, m)
		}
		return nil
	})
	return list, errors.Join(append(errs, err)...)
}

func decodeMessage(bucket, key, value []byte) (journal.Message, error) {
	payload, err := unframe(bucket, key, kindMessage, value)
	if err != nil {
		return journal.Message{}, err
	}
	m := journal.Message{Seq: decodeNumber(key[len(key)-8:])}
	if err := json.Unmarshal(payload, &m.Message); err != nil {
		return m, fmt.Errorf("message %d: %w", m.Seq, err)
	}
	return m, nil
}

// RunnableAgents implements journal.Mailbox. If some entries are damaged, it returns the others
// together with ErrDamaged.
func (s *Store) RunnableAgents(ctx context.Context) ([]identity.AgentID, error) {
	var list []identity.AgentID
	var errs []error
	err := s.view(ctx, func(tx *bolt.Tx) error {
		for key, value := range withPrefix(tx.Bucket(bucketRunnable), nil) {
			if _, err := unframe(bucketRunnable, key, kindAgent, value); err != nil {
				errs = append(errs, err)
				continue
			}
			list = append(list, identity.AgentID(key[1:]))
		}
		return nil
	})
	return list, errors.Join(append(errs, err)...)
}

// ReadRecord implements journal.RecordReader.
func (s *Store) ReadRecord(ctx context.Context, kind, key string) ([]byte, error) {
	var value []byte
	err := s.view(ctx, func(tx *bolt.Tx) error {
		k := recordKey(kind, key)
		f := tx.Bucket(bucketRecords).Get(k)
		if f == nil {
			return nil
		}
		payload, err := unframe(bucketRecords, k, kindRecord, f)
		value = bytes.Clone(payload)
		return err
	})
	return value, err
}

// ReadRecords implements journal.RecordReader. It yields the records of a kind whose keys begin with
// prefix, sorted by key. A damaged record comes with an error, and the sequence continues.
func (s *Store) ReadRecords(ctx context.Context, kind, prefix string) iter.Seq2[journal.Record, error] {
	within := recordKey(kind, prefix)
	return s.records(ctx, kind, within, within)
}

// ReadRecordsFrom implements journal.RecordReader. It treats damaged records as ReadRecords does.
func (s *Store) ReadRecordsFrom(ctx context.Context, kind, from string) iter.Seq2[journal.Record, error] {
	return s.records(ctx, kind, recordKey(kind, ""), recordKey(kind, from))
}

// records yields the records whose keys begin with within, from a key on.
func (s *Store) records(ctx context.Context, kind string, within, from []byte) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		chunks, part := 0, []recordOrErr(nil)
		for from := from; from != nil; {
			err := s.view(ctx, func(tx *bolt.Tx) error {
				part, from = recordChunk(tx, kind, within, from, part[:0])
				if chunks++; chunks%dropCacheEvery == 0 || chunks > dropCacheEvery && from == nil {
					dropPageCache(s.db, tx)
				}
				return nil
			})
			if err != nil {
				yield(journal.Record{}, err)
				return
			}
			for _, f := range part {
				if !yield(f.record, f.err) {
					return
				}
			}
		}
	}
}

// recordOrErr is a record, or the key of a damaged one and its error.
type recordOrErr struct {
	record journal.Record
	err    error
}

// recordChunk reads a chunk of records into part, fewer if they are large. It returns the
// key to continue with, nil at the end.
func recordChunk(tx *bolt.Tx, kind string, within, from []byte, part []recordOrErr) (_ []recordOrErr, next []byte) {
	c, size := tx.Bucket(bucketRecords).Cursor(), 0
	for key, value := c.Seek(from); key != nil && bytes.HasPrefix(key, within); key, value = c.Next() {
		if len(part) == chunkSize || size > chunkBytes {
			return part, bytes.Clone(key)
		}
		size += len(value)
		payload, err := unframe(bucketRecords, key, kindRecord, value)
		part = append(part, recordOrErr{journal.Record{Kind: kind, Key: string(key[len(kind)+1:]), Value: bytes.Clone(payload)}, err})
	}
	return part, nil
}

// ReadEntries implements journal.RecordReader. It yields keys and sizes, sorted by key.
func (s *Store) ReadEntries(ctx context.Context, kind, prefix string) iter.Seq2[journal.RecordInfo, error] {
	return func(yield func(journal.RecordInfo, error) bool) {
		within := recordKey(kind, prefix)
		for from := within; from != nil; {
			var part []journal.RecordInfo
			err := s.view(ctx, func(tx *bolt.Tx) error {
				part, from = entryChunk(tx, within, from)
				return nil
			})
			if err != nil {
				yield(journal.RecordInfo{}, err)
				return
			}
			for _, e := range part {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// entryChunk reads a chunk of entries. It returns the key to continue with, nil at the end.
func entryChunk(tx *bolt.Tx, within, from []byte) (part []journal.RecordInfo, next []byte) {
	c := tx.Bucket(bucketRecords).Cursor()
	for key, value := c.Seek(from); key != nil && bytes.HasPrefix(key, within); key, value = c.Next() {
		if len(part) == chunkSize {
			return part, bytes.Clone(key)
		}
		_, name, _ := strings.Cut(string(key), "\x00")
		part = append(part, journal.RecordInfo{Key: name, Size: max(0, len(value)-frameHead)})
	}
	return part, nil
}

// withPrefix yields the entries of a bucket whose keys begin with prefix. They are valid
// during the transaction.
func withPrefix(b *bolt.Bucket, prefix []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		c := b.Cursor()
		for key, value := c.Seek(prefix); key != nil && bytes.HasPrefix(key, prefix); key, value = c.Next() {
			if !yield(key, value) {
				return
			}
		}
	}
}
