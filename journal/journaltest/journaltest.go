// Package journaltest is a test suite for implementations of journal.Store.
//
//	func TestStore(t *testing.T) {
//		journaltest.Run(t, func(testing.TB) (journal.Store, func() journal.Store) {
//			s := memory.New()
//			return s, func() journal.Store { return s }
//		})
//	}
package journaltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// Open opens an empty store that is closed when the test ends. reopen closes it
// and opens it again with the same content.
type Open func(t testing.TB) (s journal.Store, reopen func() journal.Store)

// Run tests the stores that open returns against the contract of journal.Store.
func Run(t *testing.T, open Open) {
	tests := []struct {
		name string
		test func(*testing.T, journal.Store)
	}{
		{"Prepare", prepare},
		{"Measured", measured},
		{"Commit returns the last sequence number", sequenceNumbers},
		{"Follow waits for new events", follow},
		{"delayed message is delivered once", deliverOnce},
		{"FollowTask hides other tasks", followTask},
		{"FollowMatching and EventsBefore hide other events", matchingEvents},
		{"SeqBefore finds a time", seqBefore},
		{"readers may stop early", stopEarly},
		{"delayed messages are sorted by due, then seq", delayedOrder},
		{"Purge removes waiting messages", purge},
		{"records", records},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := open(t)
			tt.test(t, s)
		})
	}
	t.Run("matches the model", func(t *testing.T) { runModel(t, open) })
}

func prepare(t *testing.T, s journal.Store) {
	errRejected := errors.New("no")
	t.Run("adds to its batch, once", func(t *testing.T) {
		ran := 0
		b := &journal.Batch{Stream: "a", Prepare: func(b *journal.Batch) error {
			ran++
			b.Events = append(b.Events, events("a", 1, "added")...)
			b.Put = append(b.Put, journal.Record{Kind: "k", Key: "x", Value: []byte("v")})
			return nil
		}}
		Commit(t, s, b)
		if got := summaries(Collect(t, s.Read(t.Context(), "a", 0))); ran != 1 || !slices.Equal(got, []string{"added"}) {
			t.Errorf("ran %d times, got %v", ran, got)
		}
	})
	t.Run("rejects only its own batch", func(t *testing.T) {
		var wait sync.WaitGroup
		for i := range 60 {
			wait.Go(func() {
				b := &journal.Batch{Stream: "b", Events: events("b", 1, fmt.Sprint(i))}
				if i%3 == 0 {
					b.Prepare = func(*journal.Batch) error { return errRejected }
				}
				if _, err := s.Commit(t.Context(), b); errors.Is(err, errRejected) != (i%3 == 0) || err != nil && i%3 != 0 {
					t.Errorf("%d: got %v", i, err)
				}
			})
		}
		wait.Wait()
		got := Collect(t, s.Read(t.Context(), "b", 0))
		for _, e := range got {
			var n int
			if _, err := fmt.Sscan(e.Body.(journal.ContextCompressed).Summary, &n); err != nil || n%3 == 0 {
				t.Errorf("%d was rejected and is stored", n)
			}
		}
		if len(got) != 40 || s.LastSeq() != 41 {
			t.Errorf("got %d events and seq %d, want 40 and 41", len(got), s.LastSeq())
		}
	})
}

// measured checks that Measured gets the sizes of all events, also of events that Prepare adds. It
// checks that the records of Measured are committed.
func measured(t *testing.T, s journal.Store) {
	var sizes []int
	Commit(t, s, &journal.Batch{
		Stream: "a", Events: events("a", 1, strings.Repeat("<", 1000)),
		Prepare: func(b *journal.Batch) error {
			b.Events = append(b.Events, events("a", 1, strings.Repeat("x", 1000))...)
			return nil
		},
		Measured: func(got []int) []journal.Record {
			sizes = append(sizes, got...)
			return []journal.Record{{Kind: "k", Key: "x", Value: []byte("v")}}
		},
	})
	want := []int{}
	for _, e := range Collect(t, s.Read(t.Context(), "a", 0)) {
		text, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, len(text))
	}
	if len(sizes) != 2 || sizes[0] > want[0] || sizes[0] < want[0]-50 || sizes[1] > want[1] || sizes[1] < want[1]-50 {
		t.Errorf("got sizes %v, want about %v", sizes, want)
	}
	if v, err := s.ReadRecord(t.Context(), "k", "x"); err != nil || string(v) != "v" {
		t.Errorf("the record is %q, %v", v, err)
	}
}

func follow(t *testing.T, s journal.Store) {
	Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", 2, "before")})
	next, stop := iter.Pull2(s.FollowEvents(t.Context(), 1, journal.WaitForMore))
	defer stop()
	for i, want := range []string{"before", "during", "after"} {
		if i == 1 {
			Commit(t, s, &journal.Batch{Stream: "b", Events: events("b", 1, "during")})
		}
		if i == 2 {
			go s.Commit(context.Background(), &journal.Batch{Stream: "c", Events: events("c", 1, "after")})
		}
		e, err, ok := next()
		if !ok || err != nil || e.Body.(journal.ContextCompressed).Summary != want || e.Seq != uint64(i+2) {
			t.Errorf("got %+v, %v, want %s", e, err, want)
		}
	}
}

func followTask(t *testing.T, s journal.Store) {
	for _, task := range []identity.TaskID{"mine", "theirs", "mine"} {
		list := events("a", 1, "of "+string(task))
		list[0].Task = task
		Commit(t, s, &journal.Batch{Stream: "a", Events: list})
	}
	for i, e := range Collect(t, s.FollowTask(t.Context(), "mine", 0, journal.StoredOnly)) {
		want := journal.EventBody(journal.ContextCompressed{Summary: "of mine"})
		if i == 1 {
			want = nil
		}
		if e.Seq != uint64(i+1) || e.Body != want {
			t.Errorf("event %d: got %+v, want %v", i+1, e, want)
		}
	}
}

func matchingEvents(t *testing.T, s journal.Store) {
	list := events("a", 600, "x")
	for i := range list {
		list[i].Role = fmt.Sprint("r", i%2)
	}
	Commit(t, s, &journal.Batch{Stream: "a", Events: list})
	match := func(h journal.EventHead) bool { return h.Role() == "r1" }
	forward := Collect(t, s.FollowMatching(t.Context(), match, 0, journal.StoredOnly))
	backward := Collect(t, s.EventsBefore(t.Context(), match, s.LastSeq()+1))
	slices.Reverse(backward)
	for name, got := range map[string][]journal.Event{"FollowMatching": forward, "EventsBefore": backward} {
		if len(got) != 600 {
			t.Errorf("%s: got %d events, want 600", name, len(got))
			continue
		}
		for i, e := range got {
			if e.Seq != uint64(i+1) || (e.Body != nil) != (i%2 == 1) {
				t.Errorf("%s: event %d is %+v", name, i+1, e)
			}
		}
	}
	for before, want := range map[uint64]int{0: 0, 1: 0, 2: 1, 300: 299, 600: 599, 1 << 40: 600} {
		if got := len(Collect(t, s.EventsBefore(t.Context(), match, before))); got != want {
			t.Errorf("before %d: got %d events, want %d", before, got, want)
		}
	}
	for range s.EventsBefore(t.Context(), match, 1<<40) {
		break
	}
}

func seqBefore(t *testing.T, s journal.Store) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	check := func(at time.Time, want uint64) {
		t.Helper()
		if got, err := s.SeqBefore(t.Context(), at); err != nil || got != want {
			t.Errorf("before %v: got %d, %v, want %d", at, got, err, want)
		}
	}
	check(begin, 0)
	var seqs []uint64
	for i := range 50 {
		b := &journal.Batch{Stream: "a", Events: events("a", 1, "x")}
		b.Events[0].At = begin.Add(time.Duration(i) * time.Second)
		if i%3 == 0 { // messages have numbers of their own
			b.Send = []journal.Message{{Message: model.Message{ID: fmt.Sprint(i), To: "b", Payload: []byte(`1`)}}}
		}
		Commit(t, s, b)
		seqs = append(seqs, b.Events[0].Seq)
	}
	check(begin, 0)
	for i := range seqs {
		check(begin.Add(time.Duration(i)*time.Second+1), seqs[i])
		if i > 0 {
			check(begin.Add(time.Duration(i)*time.Second), seqs[i-1])
		}
	}
}

func deliverOnce(t *testing.T, s journal.Store) {
	b := &journal.Batch{Send: []journal.Message{{Message: model.Message{ID: "m", To: "a", Payload: []byte(`"x"`)}, Due: time.Now().UTC()}}}
	Commit(t, s, b)
	for range 2 {
		Commit(t, s, &journal.Batch{Deliver: []journal.Message{b.Send[0]}})
	}
	if list, err := s.ReadInbox(t.Context(), "a"); err != nil || len(list) != 1 {
		t.Errorf("got %d messages, %v, want 1", len(list), err)
	}
}

func stopEarly(t *testing.T, s journal.Store) {
	Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", 600, "x"), Put: []journal.Record{{Kind: "k", Key: "a", Value: []byte("1")}, {Kind: "k", Key: "b", Value: []byte("2")}}})
	n := 0
	for range s.Read(t.Context(), "a", 590) {
		n++
		break
	}
	for range s.FollowEvents(t.Context(), 590, journal.StoredOnly) {
		n++
		break
	}
	for range s.ReadRecords(t.Context(), "k", "") {
		n++
		break
	}
	for range s.ReadEntries(t.Context(), "k", "") {
		n++
		break
	}
	if n != 4 {
		t.Errorf("got %d", n)
	}
	if got := len(Collect(t, s.Read(t.Context(), "a", 590))); got != 10 {
		t.Errorf("got %d events after 590, want 10", got)
	}
}

func records(t *testing.T, s journal.Store) {
	var put []journal.Record
	for i := range 700 { // more than a store fetches in one transaction
		put = append(put, journal.Record{Kind: "k", Key: fmt.Sprintf("%03d/x", i), Value: []byte(fmt.Sprint(i))})
	}
	put = append(put, journal.Record{Kind: "k2", Key: "000/x", Value: []byte("other kind")}, journal.Record{Kind: "k", Key: "é\x00\xff", Value: []byte{}})
	Commit(t, s, &journal.Batch{Put: put})
	t.Run("list by kind and prefix, sorted", func(t *testing.T) {
		for prefix, want := range map[string]int{"": 701, "0": 100, "00": 10, "699/x": 1, "700": 0, "é": 1} {
			list := Collect(t, s.ReadRecords(t.Context(), "k", prefix))
			if len(list) != want || !slices.IsSortedFunc(list, func(a, b journal.Record) int { return strings.Compare(a.Key, b.Key) }) {
				t.Errorf("%q: got %d, want %d sorted", prefix, len(list), want)
			}
			for _, r := range list {
				if r.Kind != "k" || !strings.HasPrefix(r.Key, prefix) {
					t.Errorf("%q: got %s %q", prefix, r.Kind, r.Key)
				}
			}
		}
	})
	t.Run("list from a key on", func(t *testing.T) { recordsFrom(t, s) })
	t.Run("list without values in the same order", func(t *testing.T) {
		for _, prefix := range []string{"", "0", "699/x", "700", "é"} {
			var want []journal.RecordInfo
			for _, r := range Collect(t, s.ReadRecords(t.Context(), "k", prefix)) {
				want = append(want, journal.RecordInfo{Key: r.Key, Size: len(r.Value)})
			}
			if diff := cmp.Diff(Collect(t, s.ReadEntries(t.Context(), "k", prefix)), want); diff != "" {
				t.Errorf("%q (-got +want):\n%s", prefix, diff)
			}
		}
	})
	t.Run("replace and remove", func(t *testing.T) {
		Commit(t, s, &journal.Batch{Put: []journal.Record{{Kind: "k", Key: "000/x", Value: []byte("new")}, {Kind: "k", Key: "001/x"}, {Kind: "k", Key: "nowhere"}}})
		for key, want := range map[string]string{"000/x": "new", "001/x": "", "002/x": "2", "nowhere": ""} {
			value, err := s.ReadRecord(t.Context(), "k", key)
			if err != nil || string(value) != want || (value == nil) != (want == "") {
				t.Errorf("%s: got %q, %v, want %q", key, value, err, want)
			}
		}
	})
	t.Run("empty value is not nil", func(t *testing.T) {
		if value, err := s.ReadRecord(t.Context(), "k", "é\x00\xff"); value == nil || len(value) != 0 || err != nil {
			t.Errorf("got %v, %v", value, err)
		}
	})
}

// recordsFrom lists the records that records has written.
func recordsFrom(t *testing.T, s journal.Store) {
	all := Collect(t, s.ReadRecords(t.Context(), "k", ""))
	for from, want := range map[string]int{"": 701, "0": 701, "001/x": 700, "3": 401, "699/x": 2, "699/y": 1, "é": 1, "\xff": 0} {
		got := Collect(t, s.ReadRecordsFrom(t.Context(), "k", from))
		if diff := cmp.Diff(all[len(all)-want:], append([]journal.Record{}, got...)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", from, diff)
		}
	}
}

func sequenceNumbers(t *testing.T, s journal.Store) {
	b := &journal.Batch{Stream: "a", Events: events("a", 3, "x")}
	if seq := Commit(t, s, b); seq != 3 || s.LastSeq() != 3 || b.Events[0].Seq != 1 || b.Events[2].Seq != 3 || b.Events[0].Stream != "a" {
		t.Errorf("got %d, %d and %+v", seq, s.LastSeq(), b.Events)
	}
	empty := Commit(t, s, &journal.Batch{})
	if diff := cmp.Diff(empty, uint64(3)); diff != "" {
		t.Errorf("empty batch (-got +want):\n%s", diff)
	}
}

// Delayed messages with the same due time keep the order in which they were
// sent.
func delayedOrder(t *testing.T, s journal.Store) {
	for i, due := range []int{5, 1, 5, 3, 1, 5} {
		Commit(t, s, &journal.Batch{Send: []journal.Message{delayedMessage("a", fmt.Sprint(i), at.Add(time.Duration(due)*time.Second))}})
	}
	list, err := s.DelayedMessages(t.Context())
	var got []string
	for _, m := range list {
		got = append(got, m.ID)
	}
	if diff := cmp.Diff(got, []string{"1", "4", "3", "0", "2", "5"}); err != nil || diff != "" {
		t.Errorf("%v (-got +want):\n%s", err, diff)
	}
	if runnable, err := s.RunnableAgents(t.Context()); err != nil || len(runnable) != 0 {
		t.Errorf("got %v, %v runnable, want none", runnable, err)
	}
	Commit(t, s, &journal.Batch{Deliver: list[:2], Stream: "b", Idle: true})
	inbox, err := s.ReadInbox(t.Context(), "a")
	if err != nil || len(inbox) != 2 || inbox[0].ID != "1" || inbox[1].ID != "4" || !inbox[0].Due.IsZero() {
		t.Errorf("got %+v, %v", inbox, err)
	}
	if runnable, err := s.RunnableAgents(t.Context()); err != nil || !slices.Equal(runnable, []identity.AgentID{"a"}) {
		t.Errorf("got %v, %v runnable, want a", runnable, err)
	}
}

// A purged agent has no waiting messages, not even those sent in the same
// batch.
func purge(t *testing.T, s journal.Store) {
	Commit(t, s, &journal.Batch{Send: []journal.Message{message("a", "1"), delayedMessage("a", "2", at), delayedMessage("ab", "3", at)}})
	Commit(t, s, &journal.Batch{Send: []journal.Message{message("a", "4"), delayedMessage("a", "5", at)}, Purge: []identity.AgentID{"a", "nobody"}})
	list, err := s.DelayedMessages(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != "3" {
		t.Errorf("delayed: got %+v, %v, want only 3", list, err)
	}
	if inbox, err := s.ReadInbox(t.Context(), "a"); err != nil || len(inbox) != 0 {
		t.Errorf("inbox: got %+v, %v, want nothing", inbox, err)
	}
	if runnable, err := s.RunnableAgents(t.Context()); err != nil || len(runnable) != 0 {
		t.Errorf("got %v, %v runnable, want none", runnable, err)
	}
}

// at is the time of all test events.
var at = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// events returns n events of a stream that have a text and a number.
func events(stream identity.AgentID, n int, text string) []journal.Event {
	list := make([]journal.Event, n)
	for i := range list {
		list[i] = journal.Event{At: at, Agent: stream, Task: "t", Role: "r", Body: journal.ContextCompressed{Summary: text, Items: i}}
	}
	return list
}

func message(to identity.AgentID, text string) journal.Message {
	return journal.Message{Message: model.Message{ID: text, From: "user", To: string(to), Payload: json.RawMessage(`"` + text + `"`), CreatedAt: at}}
}

func delayedMessage(to identity.AgentID, text string, due time.Time) journal.Message {
	m := message(to, text)
	m.Due = due
	return m
}

// Commit commits a batch and returns its sequence number. It fails the test on
// an error.
func Commit(t testing.TB, s journal.Store, b *journal.Batch) uint64 {
	t.Helper()
	seq, err := s.Commit(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// Collect returns all values of a sequence. It fails the test on an error.
func Collect[V any](t testing.TB, seq iter.Seq2[V, error]) []V {
	t.Helper()
	var list []V
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}

// summaries returns the texts of events.
func summaries(list []journal.Event) []string {
	var texts []string
	for _, e := range list {
		texts = append(texts, e.Body.(journal.ContextCompressed).Summary)
	}
	return texts
}
