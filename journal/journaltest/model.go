package journaltest

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
)

// storeModel is a naive model of a store.
type storeModel struct {
	seq      uint64
	log      []journal.Event
	inbox    map[identity.AgentID][]journal.Message
	delayed  []journal.Message
	runnable map[identity.AgentID]bool
	records  map[string]string
}

// apply applies a batch as journal.Batch specifies.
func (n *storeModel) apply(b *journal.Batch) {
	for _, e := range b.Events {
		n.seq++
		e.Seq, e.Stream = n.seq, b.Stream
		n.log = append(n.log, e)
	}
	n.inbox[b.Stream] = slices.DeleteFunc(n.inbox[b.Stream], func(m journal.Message) bool { return slices.Contains(b.Consume, m.Seq) })
	for _, m := range b.Send {
		n.deliver(m)
	}
	for _, m := range b.Deliver {
		n.delayed = slices.DeleteFunc(n.delayed, func(d journal.Message) bool { return d.Seq == m.Seq })
		m.Due = time.Time{}
		n.deliver(m)
	}
	for _, id := range b.Purge {
		delete(n.inbox, id)
		delete(n.runnable, id)
		n.delayed = slices.DeleteFunc(n.delayed, func(m journal.Message) bool { return m.To == string(id) })
	}
	for _, r := range b.Put {
		n.records[r.Kind+" "+r.Key] = string(r.Value)
		if r.Value == nil {
			delete(n.records, r.Kind+" "+r.Key)
		}
	}
	if b.Stream == journal.Org {
		return
	}
	delete(n.runnable, b.Stream)
	if !b.Idle || len(n.inbox[b.Stream]) > 0 {
		n.runnable[b.Stream] = true
	}
}

func (n *storeModel) deliver(m journal.Message) {
	n.seq++
	m.Seq = n.seq
	if !m.Due.IsZero() {
		n.delayed = append(n.delayed, m)
		slices.SortFunc(n.delayed, func(a, b journal.Message) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Seq, b.Seq)) })
		return
	}
	id := identity.AgentID(m.To)
	n.inbox[id] = append(n.inbox[id], m)
	n.runnable[id] = true
}

// agents are ids with common prefixes, and one of maximal length.
var agents = []identity.AgentID{"a", "aa", "ab", "a\x00", "b", identity.AgentID(fmt.Sprintf("%0255d", 7))}

// batch returns a random batch that is valid for the current content.
func (n *storeModel) batch(r *rand.Rand, step int) *journal.Batch {
	anyAgent := func() identity.AgentID { return agents[r.IntN(len(agents))] }
	b := &journal.Batch{Idle: r.IntN(2) == 0}
	if r.IntN(5) > 0 {
		b.Stream = anyAgent()
	}
	b.Events = events(b.Stream, r.IntN(4), fmt.Sprint("step ", step))
	for i := range r.IntN(3) {
		m := message(anyAgent(), fmt.Sprintf("m%d.%d", step, i))
		if r.IntN(3) == 0 {
			m.Due = at.Add(time.Duration(r.IntN(50)) * time.Hour)
		}
		b.Send = append(b.Send, m)
	}
	for _, m := range n.inbox[b.Stream] {
		if r.IntN(2) == 0 {
			b.Consume = append(b.Consume, m.Seq)
		}
	}
	for i := 0; i < len(n.delayed) && r.IntN(4) == 0; i++ {
		b.Deliver = append(b.Deliver, n.delayed[i])
	}
	if r.IntN(10) == 0 {
		b.Purge = []identity.AgentID{anyAgent()}
	}
	for range r.IntN(3) {
		record := journal.Record{Kind: []string{"k", "k1"}[r.IntN(2)], Key: fmt.Sprint(r.IntN(20)), Value: []byte(fmt.Sprint(step))}
		if r.IntN(4) == 0 {
			record.Value = nil
		}
		b.Put = append(b.Put, record)
	}
	return b
}

// compareWithModel compares everything a store returns with the model.
func compareWithModel(t *testing.T, s journal.Store, n *storeModel, r *rand.Rand) {
	t.Helper()
	for _, from := range []uint64{0, uint64(r.IntN(int(n.seq) + 1)), n.seq} {
		compareEvents(t, s, n, from)
	}
	compareMessages(t, s, n)
	compareRecords(t, s, n)
}

// same reports a difference between what a store returned and what the model has.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := gocmp.Diff(got, want, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-got +want):\n%s", what, diff)
	}
}

// compareEvents compares the log and each stream after a sequence number.
func compareEvents(t *testing.T, s journal.Store, n *storeModel, after uint64) {
	t.Helper()
	later := func(belongs func(journal.Event) bool) (list []journal.Event) {
		for _, e := range n.log {
			if e.Seq > after && belongs(e) {
				list = append(list, e)
			}
		}
		return list
	}
	same(t, "log", Collect(t, s.FollowEvents(t.Context(), after, journal.StoredOnly)), later(func(journal.Event) bool { return true }))
	for _, id := range append(agents, journal.Org, "nobody") {
		same(t, "stream "+string(id), Collect(t, s.Read(t.Context(), id, after)), later(func(e journal.Event) bool { return e.Stream == id }))
	}
}

// compareMessages compares the inboxes, the delayed messages and the runnable agents.
func compareMessages(t *testing.T, s journal.Store, n *storeModel) {
	t.Helper()
	for _, id := range append(agents, "nobody") {
		got, err := s.ReadInbox(t.Context(), id)
		if err != nil {
			t.Error(err)
		}
		same(t, "inbox of "+string(id), got, n.inbox[id])
	}
	got, err := s.DelayedMessages(t.Context())
	if err != nil {
		t.Error(err)
	}
	same(t, "delayed", got, n.delayed)
	runnable, err := s.RunnableAgents(t.Context())
	if err != nil {
		t.Error(err)
	}
	slices.Sort(runnable)
	same(t, "runnable", runnable, slices.Sorted(maps.Keys(n.runnable)))
}

// compareRecords compares the records, as they are listed and as they are read one by one.
func compareRecords(t *testing.T, s journal.Store, n *storeModel) {
	t.Helper()
	records := map[string]string{}
	for _, kind := range []string{"k", "k1"} {
		for _, record := range Collect(t, s.ReadRecords(t.Context(), kind, "")) {
			records[record.Kind+" "+record.Key] = string(record.Value)
			value, err := s.ReadRecord(t.Context(), kind, record.Key)
			if err != nil || string(value) != string(record.Value) {
				t.Errorf("record %s: got %q, %v", record.Key, value, err)
			}
		}
	}
	same(t, "records", records, n.records)
}

// Property: after any sequence of batches and reopens, a store has the same
// content as the model, in the same order.
func runModel(t *testing.T, open Open) {
	for _, seed := range short.SampleList(t, 1, []uint64{1, 2, 3}) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 6))
			s, reopen := open(t)
			n := &storeModel{inbox: map[identity.AgentID][]journal.Message{}, runnable: map[identity.AgentID]bool{}, records: map[string]string{}}
			for step := range 900 { // 1,350 events
				b := n.batch(r, step)
				n.apply(b)
				if got := Commit(t, s, b); got != n.seq {
					t.Fatalf("step %d: got seq %d, want %d", step, got, n.seq)
				}
				if r.IntN(100) == 0 {
					compareWithModel(t, s, n, r)
				}
				if r.IntN(150) == 0 {
					s = reopen()
					compareWithModel(t, s, n, r)
					n.seq = s.LastSeq() // sequence numbers of removed messages may be used again
				}
				if t.Failed() {
					t.Fatalf("at step %d", step)
				}
			}
			compareWithModel(t, s, n, r)
		})
	}
}
