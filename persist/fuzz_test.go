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

// FuzzDamage changes some bytes of an entry or its key. Open must reject the file, or
// everything that is read must be what was written, or reading must return ErrDamaged.
// CheckIntegrity must not panic. An entry with a damaged key may be missing but must not replace another.
func FuzzDamage(f *testing.F) {
	file := sampleFile(f, 3)
	places := entrySpans(f, file)
	for at := range places {
		f.Add(uint8(at), uint16(0), []byte{0xff})
		f.Add(uint8(at), uint16(1), []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
		f.Add(uint8(at), uint16(8), []byte("\x01r\x00\x00\x00\x00"))
		f.Add(uint8(at), uint16(30), []byte(`{"type":"result"}`))
	}
	want := dumpFile(f, file)
	f.Fuzz(func(t *testing.T, entry uint8, at uint16, piece []byte) {
		place := places[int(entry)%len(places)]
		broken := bytes.Clone(file)
		within := broken[place.from:place.to]
		copy(within[int(at)%len(within):], piece)
		wantOnly(t, dirWith(t, broken), want)
	})
}

// span is the part of a file with the key and the frame of an entry.
type span struct{ from, to int }

// entrySpans returns the spans of the entries of a file.
func entrySpans(t testing.TB, file []byte) (list []span) {
	t.Helper()
	editFile(t, dirWith(t, file), func(tx *bolt.Tx) error {
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

// dumpFile returns the contents of an undamaged file as lines.
func dumpFile(t testing.TB, file []byte) map[string]bool {
	t.Helper()
	s, err := persist.Open(dirWith(t, file))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lines, errs := dumpLines(s)
	if len(errs) > 0 || len(lines) < 10 {
		t.Fatalf("got %d things, %v", len(lines), errs)
	}
	return lines
}

// wantOnly checks that a damaged data directory has no contents but those in want.
func wantOnly(t *testing.T, dir string, want map[string]bool) {
	t.Helper()
	s, err := persist.Open(dir)
	if err != nil {
		if !errors.Is(err, journal.ErrDamaged) && errcode.CodeOf(err) != errcode.Conflict {
			t.Errorf("Open returns %v, want ErrDamaged", err)
		}
		return
	}
	defer s.Close()
	_ = s.CheckIntegrity(t.Context())
	lines, errs := dumpLines(s)
	for line := range lines {
		if !want[line] {
			t.Errorf("read %s, which was not written", line)
		}
	}
	for _, err := range errs {
		if !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("reading returns %v, want ErrDamaged", err)
		}
	}
	wantCommits(t, s)
}

// wantCommits checks that a damaged store assigns the next sequence number.
func wantCommits(t *testing.T, s *persist.Store) {
	t.Helper()
	before := s.LastSeq()
	seq, err := s.Commit(t.Context(), &journal.Batch{Stream: "c", Events: events("c", 1, "after")})
	if err != nil || seq != before+1 || seq > 1000 {
		t.Errorf("got %d after %d, %v", seq, before, err)
	}
}

// dumpLines returns the contents of a store as lines, and the errors of reading.
func dumpLines(s *persist.Store) (lines map[string]bool, errs []error) {
	lines = map[string]bool{}
	ctx := context.Background()
	note := func(what string, v any, err error) {
		if err != nil {
			errs = append(errs, err)
			return
		}
		text, err := json.Marshal(v)
		lines[fmt.Sprintf("%s %s %v", what, text, err)] = true
	}
	for e, err := range s.FollowEvents(ctx, 0, journal.StoredOnly) {
		note("event", e, err)
	}
	for _, id := range []identity.AgentID{"a", "b", journal.Org} {
		for e, err := range s.Read(ctx, id, 0) {
			note("event of "+string(id), e, err)
		}
		list, err := s.ReadInbox(ctx, id)
		for _, m := range list {
			note("mail of "+string(id), m, nil)
		}
		errs = appendError(errs, err)
	}
	later, err := s.DelayedMessages(ctx)
	for _, m := range later {
		note("delayed", m, nil)
	}
	errs = appendError(errs, err)
	runnable, err := s.RunnableAgents(ctx)
	for _, id := range runnable {
		note("runnable", id, nil)
	}
	errs = appendError(errs, err)
	for r, err := range s.ReadRecords(ctx, "k", "") {
		note("record", r, err)
	}
	return lines, errs
}

func appendError(list []error, err error) []error {
	if err == nil {
		return list
	}
	return append(list, err)
}
