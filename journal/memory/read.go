package memory

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// checkOpen returns the error of reading the store now, if any.
func (s *Store) checkOpen(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return journal.ErrClosed
	}
	return nil
}

// Read implements journal.Log.
func (s *Store) Read(ctx context.Context, stream identity.AgentID, after uint64) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		list, err := read(ctx, s, func() []journal.Event { return s.log.stream(stream, after) })
		yieldAll(list, err, yield)
	}
}

// read calls look with the lock held.
func read[V any](ctx context.Context, s *Store, look func() V) (v V, err error) {
	if err := s.checkOpen(ctx); err != nil {
		return v, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return look(), nil
}

// yieldAll yields a list, then the error if there is one. It returns false if
// the consumer has stopped.
func yieldAll[V any](list []V, err error, yield func(V, error) bool) bool {
	for _, v := range list {
		if !yield(v, nil) {
			return false
		}
	}
	var none V
	return err == nil || yield(none, err)
}

// FollowEvents implements journal.EventFollower.
func (s *Store) FollowEvents(ctx context.Context, after uint64, wait bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		for {
			next := s.nextCommit(wait)
			list, err := read(ctx, s, func() []journal.Event { return s.log.since(after) })
			if err != nil && wait && ctx.Err() != nil { // the requested end
				return
			}
			if !yieldAll(list, err, yield) || err != nil {
				return
			}
			if n := len(list); n > 0 {
				after = list[n-1].Seq
				continue
			}
			if !wait {
				return
			}
			select {
			case <-next:
			case <-ctx.Done():
				return
			}
		}
	}
}

// FollowTask implements journal.EventFollower.
func (s *Store) FollowTask(ctx context.Context, task identity.TaskID, after uint64, wait bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		for e, err := range s.FollowEvents(ctx, after, wait) {
			if e.Task != task {
				e = journal.Event{Seq: e.Seq}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// FollowMatching implements journal.EventFollower.
func (s *Store) FollowMatching(ctx context.Context, match journal.EventFilter, after uint64, wait bool) iter.Seq2[journal.Event, error] {
	return matching(match, s.FollowEvents(ctx, after, wait))
}

// EventsBefore implements journal.EventSeeker.
func (s *Store) EventsBefore(ctx context.Context, match journal.EventFilter, before uint64) iter.Seq2[journal.Event, error] {
	return matching(match, func(yield func(journal.Event, error) bool) {
		for {
			list, err := read(ctx, s, func() []journal.Event { return s.log.before(before) })
			if !yieldAll(list, err, yield) || err != nil || len(list) == 0 {
				return
			}
			before = list[len(list)-1].Seq
		}
	})
}

// matching yields the events that match, and only the sequence numbers of others.
func matching(match journal.EventFilter, events iter.Seq2[journal.Event, error]) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		for e, err := range events {
			if err == nil {
				e, err = matchEvent(match, e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// matchEvent returns an event, or only its sequence number if it does not match.
func matchEvent(match journal.EventFilter, e journal.Event) (journal.Event, error) {
	encoded, err := e.MarshalJSON()
	if err == nil && !match(journal.NewEventHead(e.Seq, encoded)) {
		e = journal.Event{Seq: e.Seq}
	}
	return e, err
}

// SeqBefore implements journal.EventSeeker.
func (s *Store) SeqBefore(ctx context.Context, at time.Time) (uint64, error) {
	return read(ctx, s, func() uint64 { return s.log.seqBefore(at) })
}

// nextCommit returns a channel that the next commit closes, or nil if wait is
// false.
func (s *Store) nextCommit(wait bool) <-chan struct{} {
	if !wait {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notify == nil {
		s.notify = make(chan struct{})
	}
	return s.notify
}

// LastSeq implements journal.EventFollower.
func (s *Store) LastSeq() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.seq
}

// ReadInbox implements journal.Mailbox.
func (s *Store) ReadInbox(ctx context.Context, agent identity.AgentID) ([]journal.Message, error) {
	return read(ctx, s, func() []journal.Message { return slices.Clip(s.inbox[agent]) })
}

// DelayedMessages implements journal.Mailbox.
func (s *Store) DelayedMessages(ctx context.Context) ([]journal.Message, error) {
	list, err := read(ctx, s, func() (list []journal.Message) {
		for _, messages := range s.delayed {
			list = append(list, messages...)
		}
		return list
	})
	slices.SortFunc(list, byDue)
	return list, err
}

// byDue orders messages by due time, then by sequence number.
func byDue(a, b journal.Message) int {
	return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Seq, b.Seq))
}

// RunnableAgents implements journal.Mailbox. The result is sorted.
func (s *Store) RunnableAgents(ctx context.Context) ([]identity.AgentID, error) {
	list, err := read(ctx, s, func() (list []identity.AgentID) {
		for id := range s.runnable {
			list = append(list, id)
		}
		return list
	})
	slices.Sort(list)
	return list, err
}

// ReadRecord implements journal.RecordReader.
func (s *Store) ReadRecord(ctx context.Context, kind, key string) ([]byte, error) {
	return read(ctx, s, func() []byte { return s.records[recordKey{kind, key}] })
}

// ReadRecords implements journal.RecordReader.
func (s *Store) ReadRecords(ctx context.Context, kind, prefix string) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		list, err := s.recordsOf(ctx, kind, prefix)
		yieldAll(list, err, yield)
	}
}

// ReadRecordsFrom implements journal.RecordReader.
func (s *Store) ReadRecordsFrom(ctx context.Context, kind, from string) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		list, err := s.recordsOf(ctx, kind, "")
		at, _ := slices.BinarySearchFunc(list, from, func(r journal.Record, key string) int { return cmp.Compare(r.Key, key) })
		yieldAll(list[at:], err, yield)
	}
}

// ReadEntries implements journal.RecordReader.
func (s *Store) ReadEntries(ctx context.Context, kind, prefix string) iter.Seq2[journal.RecordInfo, error] {
	return func(yield func(journal.RecordInfo, error) bool) {
		list, err := s.recordsOf(ctx, kind, prefix)
		for _, r := range list {
			if !yield(journal.RecordInfo{Key: r.Key, Size: len(r.Value)}, nil) {
				return
			}
		}
		yieldAll(nil, err, yield)
	}
}

// recordsOf returns the records of a kind with a prefix, sorted by key.
func (s *Store) recordsOf(ctx context.Context, kind, prefix string) ([]journal.Record, error) {
	list, err := read(ctx, s, func() (list []journal.Record) {
		for k, value := range s.records {
			if k.kind == kind && strings.HasPrefix(k.key, prefix) {
				list = append(list, journal.Record{Kind: kind, Key: k.key, Value: value})
			}
		}
		return list
	})
	slices.SortFunc(list, func(a, b journal.Record) int { return cmp.Compare(a.Key, b.Key) })
	return list, err
}
