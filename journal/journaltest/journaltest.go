// Package journaltest is what every journal.Store has to pass.
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

// Open opens an empty store, closed when the test ends. reopen ends it and
// opens it again: it holds what it held.
type Open func(t testing.TB) (s journal.Store, reopen func() journal.Store)

// Run holds the stores that open gives against what journal.Store says.
func Run(t *testing.T, open Open) {
	tests := []struct {
		name string
		test func(*testing.T, journal.Store)
	}{
		{"Prepare", prepare},
		{"Commit gives the number of its last event", numbers},
		{"Follow waits for what comes", follow},
		{"a delayed message arrives once", deliverTwice},
		{"FollowTask gives of others the numbers alone", followTask},
		{"readers may stop early", stopEarly},
		{"delayed messages are in order of due, then seq", delayedOrder},
		{"who is no more leaves nothing that waits", dropped},
		{"records", recordsOf},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := open(t)
			tt.test(t, s)
		})
	}
	t.Run("a store holds what the naive model holds", func(t *testing.T) { againstModel(t, open) })
}

func prepare(t *testing.T, s journal.Store) {
	refused := errors.New("no")
	t.Run("may add to its batch, once", func(t *testing.T) {
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
	t.Run("keeps only its own batch out", func(t *testing.T) {
		var wait sync.WaitGroup
		for i := range 60 {
			wait.Go(func() {
				b := &journal.Batch{Stream: "b", Events: events("b", 1, fmt.Sprint(i))}
				if i%3 == 0 {
					b.Prepare = func(*journal.Batch) error { return refused }
				}
				if _, err := s.Commit(t.Context(), b); errors.Is(err, refused) != (i%3 == 0) || err != nil && i%3 != 0 {
					t.Errorf("%d: got %v", i, err)
				}
			})
		}
		wait.Wait()
		got := Collect(t, s.Read(t.Context(), "b", 0))
		for _, e := range got {
			var n int
			if _, err := fmt.Sscan(e.Body.(journal.ContextCompressed).Summary, &n); err != nil || n%3 == 0 {
				t.Errorf("%d was refused and is there", n)
			}
		}
		if len(got) != 40 || s.Seq() != 41 {
			t.Errorf("got %d events and seq %d, want 40 and 41", len(got), s.Seq())
		}
	})
}

func follow(t *testing.T, s journal.Store) {
	Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", 2, "before")})
	next, stop := iter.Pull2(s.Follow(t.Context(), 1, true))
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
	for i, e := range Collect(t, s.FollowTask(t.Context(), "mine", 0, false)) {
		want := journal.Body(journal.ContextCompressed{Summary: "of mine"})
		if i == 1 {
			want = nil
		}
		if e.Seq != uint64(i+1) || e.Body != want {
			t.Errorf("event %d: got %+v, want %v", i+1, e, want)
		}
	}
}

func deliverTwice(t *testing.T, s journal.Store) {
	b := &journal.Batch{Send: []journal.Message{{Message: model.Message{ID: "m", To: "a", Payload: []byte(`"x"`)}, Due: time.Now().UTC()}}}
	Commit(t, s, b)
	for range 2 {
		Commit(t, s, &journal.Batch{Deliver: []journal.Message{b.Send[0]}})
	}
	if list, err := s.Inbox(t.Context(), "a"); err != nil || len(list) != 1 {
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
	for range s.Follow(t.Context(), 590, false) {
		n++
		break
	}
	for range s.Records(t.Context(), "k", "") {
		n++
		break
	}
	for range s.Entries(t.Context(), "k", "") {
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

func recordsOf(t *testing.T, s journal.Store) {
	var put []journal.Record
	for i := range 700 { // more than one transaction fetches
		put = append(put, journal.Record{Kind: "k", Key: fmt.Sprintf("%03d/x", i), Value: []byte(fmt.Sprint(i))})
	}
	put = append(put, journal.Record{Kind: "k2", Key: "000/x", Value: []byte("other kind")}, journal.Record{Kind: "k", Key: "é\x00\xff", Value: []byte{}})
	Commit(t, s, &journal.Batch{Put: put})
	t.Run("are listed by kind and prefix, sorted", func(t *testing.T) {
		for prefix, want := range map[string]int{"": 701, "0": 100, "00": 10, "699/x": 1, "700": 0, "é": 1} {
			list := Collect(t, s.Records(t.Context(), "k", prefix))
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
	t.Run("are listed without their values in the same order", func(t *testing.T) {
		for _, prefix := range []string{"", "0", "699/x", "700", "é"} {
			var want []journal.RecordInfo
			for _, r := range Collect(t, s.Records(t.Context(), "k", prefix)) {
				want = append(want, journal.RecordInfo{Key: r.Key, Size: len(r.Value)})
			}
			if diff := cmp.Diff(Collect(t, s.Entries(t.Context(), "k", prefix)), want); diff != "" {
				t.Errorf("%q, got before want:\n%s", prefix, diff)
			}
		}
	})
	t.Run("are replaced and removed whole", func(t *testing.T) {
		Commit(t, s, &journal.Batch{Put: []journal.Record{{Kind: "k", Key: "000/x", Value: []byte("new")}, {Kind: "k", Key: "001/x"}, {Kind: "k", Key: "nowhere"}}})
		for key, want := range map[string]string{"000/x": "new", "001/x": "", "002/x": "2", "nowhere": ""} {
			value, err := s.Record(t.Context(), "k", key)
			if err != nil || string(value) != want || (value == nil) != (want == "") {
				t.Errorf("%s: got %q, %v, want %q", key, value, err, want)
			}
		}
	})
	t.Run("an empty value is there", func(t *testing.T) {
		if value, err := s.Record(t.Context(), "k", "é\x00\xff"); value == nil || len(value) != 0 || err != nil {
			t.Errorf("got %v, %v", value, err)
		}
	})
}

func numbers(t *testing.T, s journal.Store) {
	b := &journal.Batch{Stream: "a", Events: events("a", 3, "x")}
	if seq := Commit(t, s, b); seq != 3 || s.Seq() != 3 || b.Events[0].Seq != 1 || b.Events[2].Seq != 3 || b.Events[0].Stream != "a" {
		t.Errorf("got %d, %d and %+v", seq, s.Seq(), b.Events)
	}
	empty := Commit(t, s, &journal.Batch{})
	if diff := cmp.Diff(empty, uint64(3)); diff != "" {
		t.Errorf("an empty batch, got before want:\n%s", diff)
	}
}

// Delayed messages of one due time stay in the order they were sent in.
func delayedOrder(t *testing.T, s journal.Store) {
	for i, due := range []int{5, 1, 5, 3, 1, 5} {
		Commit(t, s, &journal.Batch{Send: []journal.Message{delayed("a", fmt.Sprint(i), at.Add(time.Duration(due)*time.Second))}})
	}
	list, err := s.Delayed(t.Context())
	var got []string
	for _, m := range list {
		got = append(got, m.ID)
	}
	if diff := cmp.Diff(got, []string{"1", "4", "3", "0", "2", "5"}); err != nil || diff != "" {
		t.Errorf("%v, got before want:\n%s", err, diff)
	}
	if runnable, err := s.Runnable(t.Context()); err != nil || len(runnable) != 0 {
		t.Errorf("got %v, %v runnable, want nobody", runnable, err)
	}
	Commit(t, s, &journal.Batch{Deliver: list[:2], Stream: "b", Idle: true})
	inbox, err := s.Inbox(t.Context(), "a")
	if err != nil || len(inbox) != 2 || inbox[0].ID != "1" || inbox[1].ID != "4" || !inbox[0].Due.IsZero() {
		t.Errorf("got %+v, %v", inbox, err)
	}
	if runnable, err := s.Runnable(t.Context()); err != nil || !slices.Equal(runnable, []identity.AgentID{"a"}) {
		t.Errorf("got %v, %v runnable, want a", runnable, err)
	}
}

// Of somebody a batch drops nothing waits, not even what the batch posts.
func dropped(t *testing.T, s journal.Store) {
	Commit(t, s, &journal.Batch{Send: []journal.Message{message("a", "1"), delayed("a", "2", at), delayed("ab", "3", at)}})
	Commit(t, s, &journal.Batch{Send: []journal.Message{message("a", "4"), delayed("a", "5", at)}, Purge: []identity.AgentID{"a", "nobody"}})
	list, err := s.Delayed(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != "3" {
		t.Errorf("delayed: got %+v, %v, want 3 alone", list, err)
	}
	if inbox, err := s.Inbox(t.Context(), "a"); err != nil || len(inbox) != 0 {
		t.Errorf("inbox: got %+v, %v, want nothing", inbox, err)
	}
	if runnable, err := s.Runnable(t.Context()); err != nil || len(runnable) != 0 {
		t.Errorf("got %v, %v runnable, want nobody", runnable, err)
	}
}

var at = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// events makes n events of a stream that say what they are.
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

func delayed(to identity.AgentID, text string, due time.Time) journal.Message {
	m := message(to, text)
	m.Due = due
	return m
}

// Commit commits a batch and gives its sequence number; an error ends the test.
func Commit(t testing.TB, s journal.Store, b *journal.Batch) uint64 {
	t.Helper()
	seq, err := s.Commit(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// Collect gives all of a sequence; an error in it ends the test.
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

// summaries lists what events say.
func summaries(list []journal.Event) []string {
	var texts []string
	for _, e := range list {
		texts = append(texts, e.Body.(journal.ContextCompressed).Summary)
	}
	return texts
}
