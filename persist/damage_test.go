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
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/journaltest"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
)

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// specimen makes the bytes of a file that has something in every bucket, that
// of the index only after 512 events, and holds every frame once.
func specimen(t testing.TB, n int) []byte {
	t.Helper()
	dir := t.TempDir()
	s := persisttest.OpenIn(t, dir)
	journaltest.Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", n, "checkpoint")})
	journaltest.Commit(t, s, &journal.Batch{Stream: "b", Events: events("b", 4, "checkpoint")})
	journaltest.Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", 2, "tail"), Send: []journal.Message{message("b", "hello"), delayed("b", "later", at)},
		Put: []journal.Record{{Kind: "k", Key: "x", Value: []byte(`"value"`)}}})
	persisttest.Close(t, s)
	return compacted(t, filepath.Join(dir, persist.FileName))
}

// compacted copies a file without the pages it no longer uses.
func compacted(t testing.TB, path string) []byte {
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
	if err := errors.Join(bolt.Compact(dst, src, 0), dst.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(small)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// entry is where a frame stands in a file, behind its key.
type entry struct{ key, frame []byte }

// entries gives the first and the last entry of every bucket.
func entries(t testing.TB, file []byte) map[string]entry {
	t.Helper()
	list := map[string]entry{}
	edit(t, write(t, file), func(tx *bolt.Tx) error {
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

// write puts a file into a data directory of its own.
func write(t testing.TB, file []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, persist.FileName), file, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// contents reads all that a store holds, in words.
func contents(s *persist.Store) (string, error) {
	var out strings.Builder
	ctx := context.Background()
	for e, err := range s.Follow(ctx, 0, false) {
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
		list, err := s.Inbox(ctx, id)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&out, id, list)
	}
	later, err := s.Delayed(ctx)
	if err != nil {
		return "", err
	}
	runnable, err := s.Runnable(ctx)
	if err != nil {
		return "", err
	}
	fmt.Fprintln(&out, later, runnable)
	for r, err := range s.Records(ctx, "k", "") {
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&out, r)
	}
	_, err = s.Record(ctx, "k", "x")
	return out.String(), err
}

// Property: "Every record has kind, version and checksum; a damaged one is
// detected before use." Whichever bit of a value is turned, Open refuses, or
// reading says ErrDamaged, or all is read as it was written; and Check finds
// every one that Open lets pass.
func TestEveryDamagedByteIsFound(t *testing.T) {
	small, large := specimen(t, 3), specimen(t, 510)
	for name, e := range entries(t, small) {
		t.Run(name, func(t *testing.T) { t.Parallel(); turnBits(t, small, e) })
	}
	for name, e := range entries(t, large) {
		if strings.HasPrefix(name, "index") || strings.HasPrefix(name, "persist") {
			t.Run(name+", after a checkpoint", func(t *testing.T) { t.Parallel(); turnBits(t, large, e) })
		}
	}
}

func turnBits(t *testing.T, file []byte, e entry) {
	good, err := persist.Open(write(t, file))
	if err != nil {
		t.Fatal(err)
	}
	want, err := contents(good)
	if err := errors.Join(err, good.Check(t.Context()), good.Close()); err != nil {
		t.Fatal(err)
	}
	place := bytes.Index(file, append(bytes.Clone(e.key), e.frame...)) + len(e.key)
	if place < len(e.key) || bytes.Contains(file[place:], append(bytes.Clone(e.key), e.frame...)) {
		t.Fatalf("the entry %x is not there once", e.key)
	}
	dir := write(t, file)
	for i := 0; i < len(e.frame); i += 1 + len(e.frame)/300 {
		broken := bytes.Clone(file)
		broken[place+i] ^= 1 << (i % 8)
		if err := os.WriteFile(filepath.Join(dir, persist.FileName), broken, 0o600); err != nil {
			t.Fatal(err)
		}
		wantFound(t, dir, want, fmt.Sprintf("byte %d of %x", i, e.frame))
	}
}

func wantFound(t *testing.T, dir, want, what string) {
	t.Helper()
	s, err := persist.Open(dir)
	if err != nil {
		if !errors.Is(err, journal.ErrDamaged) && errcode.Of(err) != errcode.Conflict {
			t.Errorf("%s: Open says %v, want ErrDamaged", what, err)
		}
		return
	}
	defer s.Close()
	got, err := contents(s)
	if err != nil && !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("%s: reading says %v, want ErrDamaged", what, err)
	}
	if err == nil && got != want {
		t.Errorf("%s: wrong data in silence", what)
	}
	if err := s.Check(t.Context()); err == nil && got != want {
		t.Errorf("%s: Check finds nothing", what)
	}
}

// A frame that was moved to another place is not what was written there.
func TestAFrameInAnotherPlaceIsDamaged(t *testing.T) {
	dir := write(t, specimen(t, 510))
	edit(t, dir, func(tx *bolt.Tx) error {
		records := tx.Bucket([]byte("records"))
		return errors.Join(records.Put([]byte("k\x00y"), bytes.Clone(records.Get([]byte("k\x00x")))), persist.Recount(tx))
	})
	s, err := persist.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if value, err := s.Record(t.Context(), "k", "y"); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("got %s, %v, want ErrDamaged", value, err)
	}
	n := 0
	for r, err := range s.Records(t.Context(), "k", "") {
		if n++; errors.Is(err, journal.ErrDamaged) != (r.Key == "y") {
			t.Errorf("%s: got %v", r.Key, err)
		}
	}
	if n != 2 {
		t.Errorf("got %d records, want the damaged one and the other", n)
	}
}

// What is gone, or came, without being written is found before anything is
// read; where the ledger was made to fit, by Check.
func TestWhatIsGone(t *testing.T) {
	number := func(n byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, n} }
	tests := []struct {
		name, open, check string
		change            func(tx *bolt.Tx) error
	}{
		{"an event", "bucket log holds 515 entries that are not the 516", "the index knows 516 events, the log has 515",
			func(tx *bolt.Tx) error { return tx.Bucket([]byte("log")).Delete(number(3)) }},
		{"a part of the index", "bucket index holds", "the index knows",
			func(tx *bolt.Tx) error {
				return tx.Bucket([]byte("index")).Delete(append([]byte("\x01b"), 0, 0, 0, 0, 0, 0, 1, 255))
			}},
		{"a mark of somebody who has mail", "bucket runnable holds", `agent "b" has mail and is not runnable`,
			func(tx *bolt.Tx) error { return tx.Bucket([]byte("runnable")).Delete([]byte("\x01b")) }},
		{"a record that changed its key", "bucket records holds 1 entries that are not the 1", "checksum differs",
			func(tx *bolt.Tx) error {
				b := tx.Bucket([]byte("records"))
				return errors.Join(b.Put([]byte("k\x00y"), bytes.Clone(b.Get([]byte("k\x00x")))), b.Delete([]byte("k\x00x")))
			}},
		{"the ledger", "the ledger is gone", "",
			func(tx *bolt.Tx) error { return tx.Bucket([]byte("persist")).Delete([]byte("ledger")) }},
		{"a bucket", "the bucket inbox is gone", "", func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("inbox")) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, specimen(t, 510))
			edit(t, dir, tt.change)
			if _, err := persist.Open(dir); !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), tt.open) || !strings.Contains(err.Error(), "rolecall restore") {
				t.Errorf("open: got %v, want %q and what to do", err, tt.open)
			}
			if tt.check == "" {
				return
			}
			edit(t, dir, persist.Recount)
			s, err := persist.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), tt.check) {
				t.Errorf("check: got %v, want %q", err, tt.check)
			}
		})
	}
}

// Check of a store in use finds nothing that is not there.
func TestCheckWhileCommitting(t *testing.T) {
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
		if err := s.Check(t.Context()); err != nil {
			t.Errorf("got %v, want nothing", err)
			break
		}
	}
	close(stop)
	writers.Wait()
}

// A file that was cut short is refused: reading behind its end would kill the
// process, so the attempt is made by another one.
func TestATruncatedFile(t *testing.T) {
	if dir := os.Getenv("PERSIST_TRUNCATED"); dir != "" {
		s, err := persist.Open(dir)
		if err == nil {
			_, err = contents(s)
			err = errors.Join(err, s.Check(t.Context()))
		}
		fmt.Printf("outcome: %v\n", err)
		return
	}
	file := specimen(t, 510)
	var used int64
	edit(t, write(t, file), func(tx *bolt.Tx) error { used = tx.Size(); return nil })
	for _, size := range []int64{1, 100, 4096, 5000, 8192, 12288, 16384, used / 2, used - 4096, used - 1} {
		t.Run(fmt.Sprintf("to %d of %d bytes", size, used), func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestATruncatedFile$")
			cmd.Env = append(os.Environ(), "PERSIST_TRUNCATED="+write(t, file[:size]))
			out, err := cmd.CombinedOutput()
			if text := string(out); err != nil || !strings.Contains(text, "outcome: ") || strings.Contains(text, "outcome: <nil>") {
				t.Errorf("got %v, %.300s", err, text)
			}
		})
	}
}
