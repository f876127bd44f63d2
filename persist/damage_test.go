package persist_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/journaltest"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
)

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// sampleFile returns a data file with n events of stream a and entries in all buckets. The
// index has entries only after 512 events. Each frame occurs once in the file.
func sampleFile(t testing.TB, n int) []byte {
	t.Helper()
	dir := t.TempDir()
	s := persisttest.OpenIn(t, dir)
	journaltest.Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", n, "checkpoint")})
	journaltest.Commit(t, s, &journal.Batch{Stream: "b", Events: events("b", 4, "checkpoint")})
	journaltest.Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", 2, "tail"), Send: []journal.Message{message("b", "hello"), delayed("b", "later", at)},
		Put: []journal.Record{{Kind: "k", Key: "x", Value: []byte(`"value"`)}}})
	persisttest.Close(t, s)
	return compactFile(t, filepath.Join(dir, persist.FileName))
}

// compactFile returns a copy of a file without unused pages.
func compactFile(t testing.TB, path string) []byte {
	t.Helper()
	src, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	small := filepath.Join(t.TempDir(), "small.db")
	dst, err := bolt.Open(small, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	numbered := src.Update(func(tx *bolt.Tx) error { return persist.NumberCommit(tx, 2) }) // that of the copy
	if err := errors.Join(numbered, bolt.Compact(dst, src, 0), dst.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(small)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// entry is an entry of a bucket.
type entry struct{ key, frame []byte }

// entries returns the first and the last entry of each bucket.
func entries(t testing.TB, file []byte) map[string]entry {
	t.Helper()
	list := map[string]entry{}
	editFile(t, dirWith(t, file), func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			c := b.Cursor()
			for at, move := range map[string]func() ([]byte, []byte){"first": c.First, "last": c.Last} {
				key, value := move()
				if key != nil {
					list[string(name)+", "+at] = entry{bytes.Clone(key), bytes.Clone(value)}
				}
			}
			return nil
		})
	})
	return list
}

// dirWith returns a new data directory with the given data file.
func dirWith(t testing.TB, file []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, persist.FileName), file, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// dump returns everything that a store contains, as text.
func dump(s *persist.Store) (string, error) {
	var out strings.Builder
	ctx := context.Background()
	for e, err := range s.FollowEvents(ctx, 0, journal.StoredOnly) {
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&out, e)
	}
	for _, id := range []identity.AgentID{"a", "b", journal.Org} {
		for e, err := range s.Read(ctx, id, 0) {
			if err != nil {
				return "", err
			}
			fmt.Fprintln(&out, id, e.Seq, e)
		}
		list, err := s.ReadInbox(ctx, id)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&out, id, list)
	}
	later, err := s.DelayedMessages(ctx)
	if err != nil {
		return "", err
	}
	runnable, err := s.RunnableAgents(ctx)
	if err != nil {
		return "", err
	}
	fmt.Fprintln(&out, later, runnable)
	for r, err := range s.ReadRecords(ctx, "k", "") {
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&out, r)
	}
	_, err = s.ReadRecord(ctx, "k", "x")
	return out.String(), err
}

// Property: damage of a value is detected before the value is used. Whichever bit of a value
// is flipped, Open rejects the file, or reading returns ErrDamaged, or everything is read as
// it was written. Check finds the damage that Open does not.
func TestOpen_DetectsDamagedBytes(t *testing.T) {
	small, large := sampleFile(t, 3), sampleFile(t, 510)
	for name, e := range entries(t, small) {
		t.Run(name, func(t *testing.T) { t.Parallel(); flipBits(t, small, e) })
	}
	for name, e := range entries(t, large) {
		if strings.HasPrefix(name, "index") || strings.HasPrefix(name, "persist") {
			t.Run(name+", after a checkpoint", func(t *testing.T) { t.Parallel(); flipBits(t, large, e) })
		}
	}
}

// flipBits flips bits of an entry's frame, one at a time.
func flipBits(t *testing.T, file []byte, e entry) {
	good, err := persist.Open(dirWith(t, file))
	if err != nil {
		t.Fatal(err)
	}
	want, err := dump(good)
	if err := errors.Join(err, good.CheckIntegrity(t.Context()), good.Close()); err != nil {
		t.Fatal(err)
	}
	start := bytes.Index(file, append(bytes.Clone(e.key), e.frame...)) + len(e.key)
	if start < len(e.key) || bytes.Contains(file[start:], append(bytes.Clone(e.key), e.frame...)) {
		t.Fatalf("the entry %x does not occur exactly once", e.key)
	}
	dir := dirWith(t, file)
	var places []int
	for i := 0; i < len(e.frame); i += 1 + len(e.frame)/300 {
		places = append(places, i)
	}
	for _, i := range short.SampleList(t, 60, places) {
		broken := bytes.Clone(file)
		broken[start+i] ^= 1 << (i % 8)
		if err := os.WriteFile(filepath.Join(dir, persist.FileName), broken, 0o600); err != nil {
			t.Fatal(err)
		}
		wantDetected(t, dir, want, fmt.Sprintf("byte %d of %x", i, e.frame))
	}
}

// wantDetected checks that the damage of a data directory is detected or has no effect.
func wantDetected(t *testing.T, dir, want, what string) {
	t.Helper()
	s, err := persist.Open(dir)
	if err != nil {
		if !errors.Is(err, journal.ErrDamaged) && errcode.CodeOf(err) != errcode.Conflict {
			t.Errorf("%s: Open returns %v, want ErrDamaged", what, err)
		}
		return
	}
	defer s.Close()
	got, err := dump(s)
	if err != nil && !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("%s: reading returns %v, want ErrDamaged", what, err)
	}
	if err == nil && got != want {
		t.Errorf("%s: wrong data without an error", what)
	}
	if err := s.CheckIntegrity(t.Context()); err == nil && got != want {
		t.Errorf("%s: Check does not find the damage", what)
	}
}

// A valid frame under another key is damaged.
func TestRecord_MovedFrameIsDamaged(t *testing.T) {
	dir := dirWith(t, sampleFile(t, 510))
	editFile(t, dir, func(tx *bolt.Tx) error {
		records := tx.Bucket([]byte("records"))
		return errors.Join(records.Put([]byte("k\x00y"), bytes.Clone(records.Get([]byte("k\x00x")))), persist.Recount(tx))
	})
	s, err := persist.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if value, err := s.ReadRecord(t.Context(), "k", "y"); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("got %s, %v, want ErrDamaged", value, err)
	}
	n := 0
	for r, err := range s.ReadRecords(t.Context(), "k", "") {
		if n++; errors.Is(err, journal.ErrDamaged) != (r.Key == "y") {
			t.Errorf("%s: got %v", r.Key, err)
		}
	}
	if n != 2 {
		t.Errorf("got %d records, want the damaged one and the other", n)
	}
}

// Open detects entries that were removed or added without a commit. If the integrity record
// was adapted to them, Check finds them.
func TestOpen_DetectsMissingEntries(t *testing.T) {
	number := func(n byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, n} }
	tests := []struct {
		name, open, check string
		change            func(tx *bolt.Tx) error
	}{
		{"event", "bucket log has 515 entries that differ from the 516", "the index has 516 events and the log 515",
			func(tx *bolt.Tx) error { return tx.Bucket([]byte("log")).Delete(number(3)) }},
		{"part of the index", "bucket index has", "the index has",
			func(tx *bolt.Tx) error {
				return tx.Bucket([]byte("index")).Delete(append([]byte("\x01b"), 0, 0, 0, 0, 0, 0, 1, 255))
			}},
		{"runnable mark of an agent with messages", "bucket runnable has", `agent "b" has messages and is not runnable`,
			func(tx *bolt.Tx) error { return tx.Bucket([]byte("runnable")).Delete([]byte("\x01b")) }},
		{"record under another key", "bucket records has 1 entries that differ from the 1", "checksum differs",
			func(tx *bolt.Tx) error {
				b := tx.Bucket([]byte("records"))
				return errors.Join(b.Put([]byte("k\x00y"), bytes.Clone(b.Get([]byte("k\x00x")))), b.Delete([]byte("k\x00x")))
			}},
		{"integrity record", "the integrity record is missing", "",
			func(tx *bolt.Tx) error { return tx.Bucket([]byte("persist")).Delete([]byte("ledger")) }},
		{"bucket", "bucket inbox is missing", "", func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("inbox")) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := dirWith(t, sampleFile(t, 510))
			editFile(t, dir, tt.change)
			if _, err := persist.Open(dir); !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), tt.open) || !strings.Contains(err.Error(), "rolecall restore") {
				t.Errorf("open: got %v, want %q and a hint", err, tt.open)
			}
			if tt.check == "" {
				return
			}
			editFile(t, dir, persist.Recount)
			s, err := persist.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.CheckIntegrity(t.Context()); err == nil || !strings.Contains(err.Error(), tt.check) {
				t.Errorf("check: got %v, want %q", err, tt.check)
			}
		})
	}
}

// Check of a store in use reports no false errors.
func TestCheck_WhileCommitting(t *testing.T) {
	s := persisttest.Open(t)
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			id := identity.AgentID(fmt.Sprint("w", w))
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := s.Commit(t.Context(), &journal.Batch{Stream: id, Events: events(id, 3, "x"), Send: []journal.Message{message(id, "m")}}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 60 {
		if err := s.CheckIntegrity(t.Context()); err != nil {
			t.Errorf("got %v, want no error", err)
			break
		}
	}
	close(stop)
	writers.Wait()
}

// A file that was cut short is rejected. Reading beyond its end would kill the process, so
// another process opens it.
func TestOpen_TruncatedFile(t *testing.T) {
	if dir := os.Getenv("PERSIST_TRUNCATED"); dir != "" {
		s, err := persist.Open(dir)
		if err == nil {
			_, err = dump(s)
			err = errors.Join(err, s.CheckIntegrity(t.Context()))
		}
		fmt.Printf("outcome: %v\n", err)
		return
	}
	file := sampleFile(t, 510)
	var used int64
	editFile(t, dirWith(t, file), func(tx *bolt.Tx) error { used = tx.Size(); return nil })
	for _, size := range []int64{1, 100, 4096, 5000, 8192, 12288, 16384, used / 2, used - 4096, used - 1} {
		t.Run(fmt.Sprintf("to %d of %d bytes", size, used), func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOpen_TruncatedFile$")
			cmd.Env = append(os.Environ(), "PERSIST_TRUNCATED="+dirWith(t, file[:size]))
			out, err := cmd.CombinedOutput()
			if text := string(out); err != nil || !strings.Contains(text, "outcome: ") || strings.Contains(text, "outcome: <nil>") {
				t.Errorf("got %v, %.300s", err, text)
			}
		})
	}
}

// A file that was cut within its first pages is damaged, and the error says what to do.
func TestOpen_CutFileIsDamaged(t *testing.T) {
	file := sampleFile(t, 3)
	for _, size := range []int{1, 31, 32, 100, 4095, 4096, 6443, 8191, 8192} {
		if _, err := persist.Open(dirWith(t, file[:size])); !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), "rolecall restore") {
			t.Errorf("cut to %d bytes: got %v, want ErrDamaged and what to do", size, err)
		}
	}
}
