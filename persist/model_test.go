package persist_test

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
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
)

// naive is what a store holds, in the plainest form.
type naive struct {
	seq      uint64
	log      []journal.Event
	inbox    map[identity.AgentID][]journal.Message
	delayed  []journal.Message
	runnable map[identity.AgentID]bool
	records  map[string]string
}

// apply does what the fields of journal.Batch say.
func (n *naive) apply(b *journal.Batch) {
	for _, e := range b.Events {
		n.seq++
		e.Seq, e.Stream = n.seq, b.Stream
		n.log = append(n.log, e)
	}
	n.inbox[b.Stream] = slices.DeleteFunc(n.inbox[b.Stream], func(m journal.Message) bool { return slices.Contains(b.Take, m.Seq) })
	for _, m := range b.Post {
		n.deliver(m)
	}
	for _, m := range b.Arrived {
		n.delayed = slices.DeleteFunc(n.delayed, func(d journal.Message) bool { return d.Seq == m.Seq })
		m.Due = time.Time{}
		n.deliver(m)
	}
	for _, id := range b.Drop {
		delete(n.inbox, id)
		delete(n.runnable, id)
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

func (n *naive) deliver(m journal.Message) {
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

// agents are ids that begin alike, and of the longest length.
var agents = []identity.AgentID{"a", "aa", "ab", "a\x00", "b", identity.AgentID(fmt.Sprintf("%0255d", 7))}

// batch makes a random one that fits what the store holds.
func (n *naive) batch(r *rand.Rand, step int) *journal.Batch {
	any := func() identity.AgentID { return agents[r.IntN(len(agents))] }
	b := &journal.Batch{Idle: r.IntN(2) == 0}
	if r.IntN(5) > 0 {
		b.Stream = any()
	}
	b.Events = events(b.Stream, r.IntN(4), fmt.Sprint("step ", step))
	for i := range r.IntN(3) {
		m := message(any(), fmt.Sprintf("m%d.%d", step, i))
		if r.IntN(3) == 0 {
			m.Due = at.Add(time.Duration(r.IntN(50)) * time.Hour)
		}
		b.Post = append(b.Post, m)
	}
	for _, m := range n.inbox[b.Stream] {
		if r.IntN(2) == 0 {
			b.Take = append(b.Take, m.Seq)
		}
	}
	for i := 0; i < len(n.delayed) && r.IntN(4) == 0; i++ {
		b.Arrived = append(b.Arrived, n.delayed[i])
	}
	if r.IntN(10) == 0 {
		b.Drop = []identity.AgentID{any()}
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

// Property: whatever is committed, in whatever batches, across checkpoints of
// the index and after opening the file again, a store holds what the naive
// model holds, in its order.
func TestAgainstModel(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r, dir := rand.New(rand.NewPCG(seed, 6)), t.TempDir()
			s := persisttest.OpenIn(t, dir)
			n := &naive{inbox: map[identity.AgentID][]journal.Message{}, runnable: map[identity.AgentID]bool{}, records: map[string]string{}}
			for step := range 900 { // 1,350 events: two checkpoints and a half
				b := n.batch(r, step)
				n.apply(b)
				if got := commit(t, s, b); got != n.seq {
					t.Fatalf("step %d: got seq %d, want %d", step, got, n.seq)
				}
				if r.IntN(100) == 0 {
					sameAsModel(t, s, n, r)
				}
				if r.IntN(150) == 0 {
					persisttest.Close(t, s)
					s = persisttest.OpenIn(t, dir)
					sameAsModel(t, s, n, r)
					n.seq = s.Seq() // numbers of messages that are gone may be given again
				}
				if t.Failed() {
					t.Fatalf("at step %d", step)
				}
			}
			sameAsModel(t, s, n, r)
		})
	}
}

func sameAsModel(t *testing.T, s *persist.Store, n *naive, r *rand.Rand) {
	t.Helper()
	same := func(what string, got, want any) {
		t.Helper()
		if diff := gocmp.Diff(got, want, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s, got before want:\n%s", what, diff)
		}
	}
	after := uint64(r.IntN(int(n.seq) + 1))
	for _, from := range []uint64{0, after, n.seq} {
		later := func(stream identity.AgentID, all bool) (list []journal.Event) {
			for _, e := range n.log {
				if e.Seq > from && (all || e.Stream == stream) {
					list = append(list, e)
				}
			}
			return list
		}
		same("log", collect(t, s.Follow(t.Context(), from, false)), later("", true))
		for _, id := range append(agents, journal.Org, "nobody") {
			same("stream "+string(id), collect(t, s.Read(t.Context(), id, from)), later(id, false))
		}
	}
	for _, id := range append(agents, "nobody") {
		got, err := s.Inbox(t.Context(), id)
		if err != nil {
			t.Error(err)
		}
		same("inbox of "+string(id), got, n.inbox[id])
	}
	got, err := s.Delayed(t.Context())
	if err != nil {
		t.Error(err)
	}
	same("delayed", got, n.delayed)
	runnable, err := s.Runnable(t.Context())
	if err != nil {
		t.Error(err)
	}
	slices.Sort(runnable)
	same("runnable", runnable, slices.Sorted(maps.Keys(n.runnable)))
	records := map[string]string{}
	for _, kind := range []string{"k", "k1"} {
		for _, record := range collect(t, s.Records(t.Context(), kind, "")) {
			records[record.Kind+" "+record.Key] = string(record.Value)
			value, err := s.Record(t.Context(), kind, record.Key)
			if err != nil || string(value) != string(record.Value) {
				t.Errorf("record %s: got %q, %v", record.Key, value, err)
			}
		}
	}
	same("records", records, n.records)
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// Delayed messages of one due time stay in the order they were sent in.
func TestDelayedMessagesAreInOrderOfDueThenSeq(t *testing.T) {
	s := persisttest.Open(t)
	for i, due := range []int{5, 1, 5, 3, 1, 5} {
		commit(t, s, &journal.Batch{Post: []journal.Message{delayed("a", fmt.Sprint(i), at.Add(time.Duration(due)*time.Second))}})
	}
	list, err := s.Delayed(t.Context())
	var got []string
	for _, m := range list {
		got = append(got, m.ID)
	}
	if diff := gocmp.Diff(got, []string{"1", "4", "3", "0", "2", "5"}); err != nil || diff != "" {
		t.Errorf("%v, got before want:\n%s", err, diff)
	}
	if runnable, err := s.Runnable(t.Context()); err != nil || len(runnable) != 0 {
		t.Errorf("got %v, %v runnable, want nobody", runnable, err)
	}
	commit(t, s, &journal.Batch{Arrived: list[:2], Stream: "b", Idle: true})
	inbox, err := s.Inbox(t.Context(), "a")
	if err != nil || len(inbox) != 2 || inbox[0].ID != "1" || inbox[1].ID != "4" || !inbox[0].Due.IsZero() {
		t.Errorf("got %+v, %v", inbox, err)
	}
	if runnable, err := s.Runnable(t.Context()); err != nil || !slices.Equal(runnable, []identity.AgentID{"a"}) {
		t.Errorf("got %v, %v runnable, want a", runnable, err)
	}
}

// A message comes back as it was sent, whatever its payload.
func TestMessagesComeBackAsTheyWereSent(t *testing.T) {
	s := persisttest.Open(t)
	var want []journal.Message
	for i, payload := range []string{`""`, `null`, `{"a":[1,{"b":"é\u0000"}]}`, `"<&>"`} {
		m := journal.Message{Message: model.Message{ID: fmt.Sprint(i), From: "user", To: "a", Task: "t", Payload: []byte(payload), CreatedAt: at}}
		commit(t, s, &journal.Batch{Post: []journal.Message{m}})
		m.Seq = uint64(i + 1)
		want = append(want, m)
	}
	got, err := s.Inbox(t.Context(), "a")
	asText := gocmp.Transformer("payload", func(m model.Message) string { return fmt.Sprint(m.ID, m.From, m.To, m.Task, m.CreatedAt) })
	if diff := gocmp.Diff(got, want, asText); err != nil || diff != "" {
		t.Errorf("%v, got before want:\n%s", err, diff)
	}
	for i := range got {
		if !sameJSON(got[i].Payload, want[i].Payload) {
			t.Errorf("got payload %s, want %s", got[i].Payload, want[i].Payload)
		}
	}
}
