package persist_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/persist"
)

// FuzzDamage: some bytes of an entry, its key among them, are others. Open
// refuses the file, or whatever is read is what was written, or says
// ErrDamaged; and Check does not break. An entry whose key is damaged may be
// missing, but never stand in another's place.
func FuzzDamage(f *testing.F) {
	file := specimen(f, 3)
	places := placesOf(f, file)
	for at := range places {
		f.Add(uint8(at), uint16(0), []byte{0xff})
		f.Add(uint8(at), uint16(1), []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
		f.Add(uint8(at), uint16(8), []byte("\x01r\x00\x00\x00\x00"))
		f.Add(uint8(at), uint16(30), []byte(`{"type":"result"}`))
	}
	want := wholeFile(f, file)
	f.Fuzz(func(t *testing.T, entry uint8, at uint16, piece []byte) {
		place := places[int(entry)%len(places)]
		broken := bytes.Clone(file)
		within := broken[place.from:place.to]
		copy(within[int(at)%len(within):], piece)
		wantNothingElse(t, write(t, broken), want)
	})
}

// span is where an entry stands in a file, its key and its frame.
type span struct{ from, to int }

func placesOf(t testing.TB, file []byte) (list []span) {
	t.Helper()
	edit(t, write(t, file), func(tx *bolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
			return b.ForEach(func(key, value []byte) error {
				whole := append(bytes.Clone(key), value...)
				if from := bytes.Index(file, whole); from >= 0 {
					list = append(list, span{from, from + len(whole)})
				}
				return nil
			})
		})
	})
	if len(list) < 10 {
		t.Fatalf("got %d entries, want more", len(list))
	}
	return list
}

// wholeFile gives what a good file says.
func wholeFile(t testing.TB, file []byte) map[string]bool {
	t.Helper()
	s, err := persist.Open(write(t, file))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	said, faults := everything(s)
	if len(faults) > 0 || len(said) < 10 {
		t.Fatalf("got %d things, %v", len(said), faults)
	}
	return said
}

func wantNothingElse(t *testing.T, dir string, want map[string]bool) {
	t.Helper()
	s, err := persist.Open(dir)
	if err != nil {
		if !errors.Is(err, journal.ErrDamaged) && errcode.Of(err) != errcode.Conflict {
			t.Errorf("Open says %v, want ErrDamaged", err)
		}
		return
	}
	defer s.Close()
	_ = s.Check(t.Context())
	said, faults := everything(s)
	for line := range said {
		if !want[line] {
			t.Errorf("read %s, which nobody wrote", line)
		}
	}
	for _, err := range faults {
		if !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("reading says %v, want ErrDamaged", err)
		}
	}
	wantGoesOn(t, s)
}

// wantGoesOn commits to a damaged store: numbers go on behind what is there.
func wantGoesOn(t *testing.T, s *persist.Store) {
	t.Helper()
	before := s.Seq()
	seq, err := s.Commit(t.Context(), &journal.Batch{Stream: "c", Events: events("c", 1, "after")})
	if err != nil || seq != before+1 || seq > 1000 {
		t.Errorf("got %d after %d, %v", seq, before, err)
	}
}

// everything reads all that a store says, a line for each thing.
func everything(s *persist.Store) (said map[string]bool, faults []error) {
	said = map[string]bool{}
	ctx := context.Background()
	note := func(what string, v any, err error) {
		if err != nil {
			faults = append(faults, err)
			return
		}
		text, err := json.Marshal(v)
		said[fmt.Sprintf("%s %s %v", what, text, err)] = true
	}
	for e, err := range s.Follow(ctx, 0, false) {
		note("event", e, err)
	}
	for _, id := range []identity.AgentID{"a", "b", journal.Org} {
		for e, err := range s.Read(ctx, id, 0) {
			note("event of "+string(id), e, err)
		}
		list, err := s.Inbox(ctx, id)
		for _, m := range list {
			note("mail of "+string(id), m, nil)
		}
		faults = appendError(faults, err)
	}
	later, err := s.Delayed(ctx)
	for _, m := range later {
		note("delayed", m, nil)
	}
	faults = appendError(faults, err)
	runnable, err := s.Runnable(ctx)
	for _, id := range runnable {
		note("runnable", id, nil)
	}
	faults = appendError(faults, err)
	for r, err := range s.Records(ctx, "k", "") {
		note("record", r, err)
	}
	return said, faults
}

func appendError(list []error, err error) []error {
	if err == nil {
		return list
	}
	return append(list, err)
}
