package property_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// memory is a journal.Store that keeps nothing on disk. Commits are
// serialised, as those of persist are.
type memory struct {
	commits sync.Mutex // held for a whole commit

	mu      sync.RWMutex // guards what follows
	events  []journal.Event
	inbox   map[identity.AgentID][]journal.Message
	records map[string][]byte // by kind, a zero byte, key
	seq     uint64
}

func newMemory() *memory {
	return &memory{inbox: map[identity.AgentID][]journal.Message{}, records: map[string][]byte{}}
}

// Commit implements journal.Log.
func (m *memory) Commit(_ context.Context, b *journal.Batch) (uint64, error) {
	m.commits.Lock()
	defer m.commits.Unlock()
	if b.Prepare != nil {
		if err := b.Prepare(b); err != nil {
			return 0, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range b.Events {
		m.seq++
		b.Events[i].Seq, b.Events[i].Stream = m.seq, b.Stream
		m.events = append(m.events, b.Events[i])
	}
	m.inbox[b.Stream] = slices.DeleteFunc(m.inbox[b.Stream], func(q journal.Message) bool { return slices.Contains(b.Take, q.Seq) })
	for i := range b.Post {
		m.seq++
		b.Post[i].Seq = m.seq
		to := identity.AgentID(b.Post[i].To)
		m.inbox[to] = append(m.inbox[to], b.Post[i])
	}
	for _, id := range b.Drop {
		delete(m.inbox, id)
	}
	for _, r := range b.Put {
		m.records[r.Kind+"\x00"+r.Key] = r.Value
	}
	return m.seq, nil
}

// Read implements journal.Log.
func (m *memory) Read(_ context.Context, stream identity.AgentID, after uint64) iter.Seq2[journal.Event, error] {
	return m.since(after, func(e journal.Event) bool { return e.Stream == stream })
}

// Follow implements journal.Feed; it never waits.
func (m *memory) Follow(_ context.Context, after uint64, _ bool) iter.Seq2[journal.Event, error] {
	return m.since(after, func(journal.Event) bool { return true })
}

func (m *memory) since(after uint64, choose func(journal.Event) bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		m.mu.RLock()
		events := m.events[:len(m.events):len(m.events)]
		m.mu.RUnlock()
		for _, e := range events {
			if e.Seq > after && choose(e) && !yield(e, nil) {
				return
			}
		}
	}
}

// Seq implements journal.Feed.
func (m *memory) Seq() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.seq
}

// Inbox implements journal.Post.
func (m *memory) Inbox(_ context.Context, id identity.AgentID) ([]journal.Message, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Clone(m.inbox[id]), nil
}

// Delayed implements journal.Post: messages with a delay are delivered at once.
func (m *memory) Delayed(context.Context) ([]journal.Message, error) { return nil, nil }

// Runnable implements journal.Post.
func (m *memory) Runnable(context.Context) ([]identity.AgentID, error) { return nil, nil }

// Record implements journal.Records.
func (m *memory) Record(_ context.Context, kind, key string) ([]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.records[kind+"\x00"+key], nil
}

// Entries implements journal.Records.
func (m *memory) Entries(ctx context.Context, kind, prefix string) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for r, err := range m.Records(ctx, kind, prefix) {
			if !yield(journal.Entry{Key: r.Key, Size: len(r.Value)}, err) {
				return
			}
		}
	}
}

// Records implements journal.Records.
func (m *memory) Records(_ context.Context, kind, prefix string) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		m.mu.RLock()
		var list []journal.Record
		for name, value := range m.records {
			if key, ok := strings.CutPrefix(name, kind+"\x00"); ok && strings.HasPrefix(key, prefix) && value != nil {
				list = append(list, journal.Record{Kind: kind, Key: key, Value: value})
			}
		}
		m.mu.RUnlock()
		slices.SortFunc(list, func(a, b journal.Record) int { return strings.Compare(a.Key, b.Key) })
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}
