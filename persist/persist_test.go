package persist_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/soakreport"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/journaltest"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := persist.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	ctx := context.Background()
	seq, err := store.Commit(ctx, &journal.Batch{
		Stream: "ann",
		Events: []journal.Event{{Agent: "ann", Role: "scribe", Body: journal.ContextCompressed{Summary: "so far", Items: 2}}},
		Put:    []journal.Record{{Kind: "note", Key: "n1", Value: []byte(`"hello"`)}},
		Idle:   true,
	})
	fmt.Println(seq, err)
	for e, err := range store.Read(ctx, "ann", 0) {
		fmt.Println(e.Seq, e.Body.EventType(), err)
	}
	value, err := store.ReadRecord(ctx, "note", "n1")
	fmt.Println(string(value), err)
	// Output:
	// 1 <nil>
	// 1 context_compressed <nil>
	// "hello" <nil>
}

var at = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// events returns n events of a stream with the given text.
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

// summaries returns the texts of events.
func summaries(list []journal.Event) []string {
	var texts []string
	for _, e := range list {
		texts = append(texts, e.Body.(journal.ContextCompressed).Summary)
	}
	return texts
}

func TestOpen(t *testing.T) {
	t.Run("file modes", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "a", "b")
		persisttest.OpenIn(t, dir)
		for path, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, filepath.Join(dir, persist.FileName): 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode() != want {
				t.Errorf("%s: got %v, %v, want %v", path, info.Mode(), err, want)
			}
		}
	})
	t.Run("directory in use", func(t *testing.T) {
		dir := t.TempDir()
		persisttest.OpenIn(t, dir)
		_, err := persist.Open(dir)
		if errcode.CodeOf(err) != errcode.Conflict || !strings.Contains(errcode.Message(err), "another process has it open") {
			t.Errorf("got %v, want a conflict", err)
		}
	})
	t.Run("newer schema", func(t *testing.T) {
		dir := t.TempDir()
		persisttest.Close(t, persisttest.OpenIn(t, dir))
		setNumber(t, dir, "schema", 5)
		before, err := os.ReadFile(filepath.Join(dir, persist.FileName))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := persist.Open(dir)
			if errcode.CodeOf(err) != errcode.Conflict || !strings.Contains(errcode.Message(err), "schema 5") {
				t.Errorf("got %v, want a conflict that names the schema", err)
			}
		}
		if after, err := os.ReadFile(filepath.Join(dir, persist.FileName)); err != nil || !bytes.Equal(before, after) {
			t.Errorf("it was changed (%v)", err)
		}
		soakreport.RecordResult(t, soakreport.Result{Part: "backup", Claim: "a file of a newer schema is refused and left unchanged", Goal: "refused twice", Observed: "schema 5", Passed: !t.Failed()})
	})
	t.Run("directory cannot be created", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := persist.Open(filepath.Join(file, "dir")); err == nil || !strings.Contains(err.Error(), "make data directory") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("other file", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, persist.FileName), []byte(strings.Repeat("no bolt file\n", 5000)), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := persist.Open(dir); err == nil {
			s.Close()
			t.Error("it was opened")
		}
	})
	t.Run("no permission", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("root may read and write all files: run this test as another user")
		}
		dir := t.TempDir()
		persisttest.Close(t, persisttest.OpenIn(t, dir))
		if err := os.Chmod(filepath.Join(dir, persist.FileName), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := persist.Open(dir); errcode.CodeOf(err) != errcode.PermissionDenied {
			t.Errorf("got %v, want permission_denied", err)
		}
	})
}

// editFile changes the file of a closed store.
func editFile(t testing.TB, dir string, fn func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, persist.FileName), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Update(fn); err != nil {
		t.Fatal(err)
	}
}

func setNumber(t testing.TB, dir, name string, n byte) {
	t.Helper()
	editFile(t, dir, func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("persist"))
		value := slices.Clone(b.Get([]byte(name)))
		value[len(value)-1] = n
		return b.Put([]byte(name), value)
	})
}

// A Store passes the tests for all implementations of journal.Store, also across checkpoints
// of the index and after it is opened again. It is checked each time.
func TestStore_Conformance(t *testing.T) {
	journaltest.Run(t, func(t testing.TB) (journal.Store, func() journal.Store) {
		dir := t.TempDir()
		s := persisttest.OpenIn(t, dir)
		return s, func() journal.Store {
			persisttest.Close(t, s)
			s = persisttest.OpenIn(t, dir)
			return s
		}
	})
}

func TestCommit_InvalidBatchFailsAlone(t *testing.T) {
	long := strings.Repeat("k", 40_000)
	tests := []struct {
		name  string
		batch journal.Batch
	}{
		{"event with malformed arguments", journal.Batch{Events: []journal.Event{{At: at, Body: journal.ToolCall{Args: json.RawMessage(`{`)}}}}},
		{"event in a year of five digits", journal.Batch{Events: []journal.Event{{At: at.AddDate(10_000, 0, 0), Body: journal.TurnFailed{}}}}},
		{"event without a body", journal.Batch{Events: []journal.Event{{At: at}}}},
		{"malformed message", journal.Batch{Send: []journal.Message{{Message: model.Message{To: "a", Payload: json.RawMessage(`}`)}}}}},
		{"malformed delayed message", journal.Batch{Deliver: []journal.Message{{Message: model.Message{To: "a", Payload: json.RawMessage(`}`)}}}}},
		{"message to an id of 300 bytes", journal.Batch{Send: []journal.Message{message(identity.AgentID(long[:300]), "m")}}},
		{"stream id of 256 bytes", journal.Batch{Stream: identity.AgentID(long[:256])}},
		{"purged id of 40,000 bytes", journal.Batch{Purge: []identity.AgentID{identity.AgentID(long)}}},
		{"record with a key of 40,000 bytes", journal.Batch{Put: []journal.Record{{Kind: "k", Key: long, Value: []byte("v")}}}},
		{"message due after the year 2262", journal.Batch{Send: []journal.Message{delayed("a", "m", at.AddDate(300, 0, 0))}}},
		{"message due before 1970", journal.Batch{Send: []journal.Message{delayed("a", "m", at.AddDate(-100, 0, 0))}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := persisttest.Open(t)
			tt.batch.Put = append(tt.batch.Put, journal.Record{Kind: "k", Key: "with it", Value: []byte("v")})
			var wait sync.WaitGroup
			for range 10 {
				wait.Go(func() {
					if _, err := s.Commit(t.Context(), &journal.Batch{Stream: "a", Events: events("a", 1, "fine")}); err != nil {
						t.Errorf("another batch: %v", err)
					}
				})
			}
			if _, err := s.Commit(t.Context(), &tt.batch); err == nil || persist.IsClosed(err) {
				t.Errorf("got %v, want an error", err)
			}
			wait.Wait()
			if value, err := s.ReadRecord(t.Context(), "k", "with it"); value != nil || err != nil {
				t.Errorf("a part of the batch was written: %s, %v", value, err)
			}
			if got := len(journaltest.Collect(t, s.Read(t.Context(), "a", 0))); got != 10 {
				t.Errorf("got %d events of others, want 10", got)
			}
		})
	}
}

// Many writers share commits: no event is lost, and the events of each writer are in order.
func TestCommit_ManyWriters(t *testing.T) {
	dir := t.TempDir()
	s := persisttest.OpenIn(t, dir)
	const writers, each = 40, 25
	var wait sync.WaitGroup
	for w := range writers {
		id := identity.AgentID(fmt.Sprintf("w%02d", w))
		wait.Go(func() {
			var last uint64
			for i := range each {
				b := &journal.Batch{Stream: id, Events: events(id, 2, fmt.Sprint(i)), Send: []journal.Message{message("box", fmt.Sprintf("%s %d", id, i))}}
				seq, err := s.Commit(t.Context(), b)
				if err != nil || b.Events[0].Seq <= last || b.Events[1].Seq != b.Events[0].Seq+1 || seq < b.Events[1].Seq {
					t.Errorf("%s %d: got %d after %d, %v", id, i, seq, last, err)
				}
				last = seq
			}
		})
	}
	wait.Wait()
	for range 2 { // before and after a restart
		for w := range writers {
			id := identity.AgentID(fmt.Sprintf("w%02d", w))
			got := summaries(journaltest.Collect(t, s.Read(t.Context(), id, 0)))
			for i := range each {
				if len(got) != 2*each || got[2*i] != fmt.Sprint(i) || got[2*i+1] != fmt.Sprint(i) {
					t.Fatalf("%s: got %v", id, got)
				}
			}
		}
		if got := len(journaltest.Collect(t, s.FollowEvents(t.Context(), 0, journal.StoredOnly))); got != 2*writers*each {
			t.Errorf("got %d events, want %d", got, 2*writers*each)
		}
		box, err := s.ReadInbox(t.Context(), "box")
		next := map[string]int{}
		for i, m := range box {
			var w string
			var n int
			if _, err := fmt.Sscanf(m.ID, "%s %d", &w, &n); err != nil || n != next[w] || i > 0 && m.Seq <= box[i-1].Seq {
				t.Fatalf("got message %q (%d) where %d was next", m.ID, m.Seq, next[w])
			}
			next[w]++
		}
		if err != nil || len(box) != writers*each {
			t.Errorf("got %d messages, %v", len(box), err)
		}
		persisttest.Close(t, s)
		s = persisttest.OpenIn(t, dir)
	}
}

func TestStore_Close(t *testing.T) {
	t.Run("queued commits finish, later ones fail", func(t *testing.T) {
		dir := t.TempDir()
		s := persisttest.OpenIn(t, dir)
		var mu sync.Mutex
		var kept int
		begun := make(chan struct{}, 100)
		var wait sync.WaitGroup
		for range 20 {
			wait.Go(func() {
				for {
					_, err := s.Commit(context.Background(), &journal.Batch{Stream: "a", Events: events("a", 1, "x")})
					if err != nil {
						if !persist.IsClosed(err) {
							t.Errorf("got %v, want ErrClosed", err)
						}
						return
					}
					mu.Lock()
					kept++
					mu.Unlock()
					select {
					case begun <- struct{}{}:
					default:
					}
				}
			})
		}
		<-begun
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		wait.Wait()
		s = persisttest.OpenIn(t, dir)
		if got := len(journaltest.Collect(t, s.Read(t.Context(), "a", 0))); got != kept {
			t.Errorf("got %d events, %d were committed", got, kept)
		}
	})
	t.Run("Follow ends", func(t *testing.T) {
		s := persisttest.Open(t)
		journaltest.Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", 1, "x")})
		seen, ended := make(chan journal.Event), make(chan error)
		go func() {
			for e, err := range s.FollowEvents(context.Background(), 0, journal.WaitForMore) {
				if err != nil {
					ended <- err
					return
				}
				seen <- e
			}
			ended <- nil
		}()
		<-seen
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !persist.IsClosed(err) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
	t.Run("all methods fail", func(t *testing.T) {
		s := persisttest.Open(t)
		persisttest.Close(t, s)
		for name, err := range callAllMethods(s, context.Background()) {
			if !persist.IsClosed(err) {
				t.Errorf("%s: got %v, want ErrClosed", name, err)
			}
		}
	})
}

// callAllMethods calls all methods that take a context and returns their errors.
func callAllMethods(s *persist.Store, ctx context.Context) map[string]error {
	errs := map[string]error{"Check": s.CheckIntegrity(ctx)}
	_, errs["Commit"] = s.Commit(ctx, &journal.Batch{})
	_, errs["Inbox"] = s.ReadInbox(ctx, "a")
	_, errs["Delayed"] = s.DelayedMessages(ctx)
	_, errs["Runnable"] = s.RunnableAgents(ctx)
	_, errs["Record"] = s.ReadRecord(ctx, "k", "a")
	errs["Read"], errs["Records"], errs["Entries"], errs["Follow"] = nil, nil, nil, nil
	for _, err := range s.Read(ctx, "a", 0) {
		errs["Read"] = err
	}
	for _, err := range s.ReadRecords(ctx, "k", "") {
		errs["Records"] = err
	}
	for _, err := range s.ReadEntries(ctx, "k", "") {
		errs["Entries"] = err
	}
	for _, err := range s.FollowEvents(ctx, 0, journal.StoredOnly) {
		errs["Follow"] = err
	}
	return errs
}

func TestStore_Contexts(t *testing.T) {
	t.Run("done before the call", func(t *testing.T) {
		s := persisttest.Open(t)
		journaltest.Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", 1, "x")})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for name, err := range callAllMethods(s, ctx) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v, want canceled", name, err)
			}
		}
		if s.LastSeq() != 1 {
			t.Errorf("got seq %d, want 1", s.LastSeq())
		}
	})
	t.Run("done after the batch was queued", func(t *testing.T) {
		s := persisttest.Open(t)
		ctx, cancel := context.WithCancel(t.Context())
		seq, err := s.Commit(ctx, &journal.Batch{Stream: "a", Events: events("a", 1, "x"), Prepare: func(*journal.Batch) error { cancel(); return nil }})
		if seq != 1 || err != nil || ctx.Err() == nil {
			t.Errorf("got %d, %v", seq, err)
		}
	})
	t.Run("done during Follow", func(t *testing.T) {
		s := persisttest.Open(t)
		journaltest.Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", 3, "x")})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		for _, err := range s.FollowEvents(ctx, 0, journal.WaitForMore) {
			if err != nil {
				t.Errorf("got %v", err)
			}
			if n++; n == 3 {
				cancel()
			}
		}
		if n != 3 {
			t.Errorf("got %d events", n)
		}
	})
}

// A transaction reads few events if they are large.
func TestRead_LargeEventsInParts(t *testing.T) {
	s := persisttest.OpenIn(t, t.TempDir())
	for range 12 {
		if _, err := s.Commit(t.Context(), &journal.Batch{Stream: "a", Events: events("a", 1, strings.Repeat("x", 3<<20))}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Commit(t.Context(), &journal.Batch{Stream: "a", Events: events("a", 300, strings.Repeat("x", 1000))}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		match           journal.EventFilter
		events, entries int
	}{
		"all":  {nil, 1, 1},
		"none": {func(journal.EventHead) bool { return false }, 0, 6}, // 16 MiB
	} {
		if got, entries, err := persist.ChunkSizes(t.Context(), s, c.match); got != c.events || entries != c.entries || err != nil {
			t.Errorf("%s: a chunk has %d events and %d entries, %v; want %d and %d", name, got, entries, err, c.events, c.entries)
		}
	}
	if n, err := persist.FetchSize(t.Context(), s, []uint64{1, 2, 3}); n != 1 || err != nil {
		t.Errorf("a transaction has read %d events, %v, want 1", n, err)
	}
	read := map[string]iter.Seq2[journal.Event, error]{
		"Read": s.Read(t.Context(), "a", 0), "FollowEvents": s.FollowEvents(t.Context(), 0, false),
		"EventsBefore": s.EventsBefore(t.Context(), nil, 313),
	}
	for name, all := range read {
		n := 0
		for _, err := range all {
			if n++; err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if n != 312 {
			t.Errorf("%s yields %d events, want 312", name, n)
		}
	}
}
