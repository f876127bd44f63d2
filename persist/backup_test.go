package persist_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/soakreport"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/journaltest"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
)

// restored opens a backup in a data directory of its own.
func restored(t *testing.T, backup []byte) *persist.Store {
	t.Helper()
	dir := t.TempDir()
	if err := persist.Restore(t.Context(), bytes.NewReader(backup), dir); err != nil {
		t.Fatal(err)
	}
	return persisttest.OpenIn(t, dir)
}

func backup(t testing.TB, s *persist.Store) ([]byte, uint64) {
	t.Helper()
	var out bytes.Buffer
	seq, err := s.Backup(t.Context(), &out)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), seq
}

// batchOf is a batch whose parts belong together: three events, a message and
// a record that says how many batches its writer has committed.
func batchOf(w identity.AgentID, n int) *journal.Batch {
	return &journal.Batch{
		Stream: w, Events: events(w, 3, fmt.Sprint(n)), Send: []journal.Message{message(w, fmt.Sprint(n))},
		Put: []journal.Record{{Kind: "batches", Key: string(w), Value: fmt.Append(nil, n)}},
	}
}

// Backups that are taken while eight writers commit are the file as it was
// between two commits: every batch is whole, every event up to the number is
// there and none after it.
func TestBackupWhileWritersCommit(t *testing.T) {
	s := persisttest.Open(t)
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			id := identity.AgentID(fmt.Sprint("w", w))
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := s.Commit(t.Context(), batchOf(id, n)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var backups [][]byte
	var seqs []uint64
	for range 8 {
		data, seq := backup(t, s)
		backups, seqs = append(backups, data), append(seqs, seq)
		journaltest.Commit(t, s, &journal.Batch{Stream: "between", Events: events("between", 1, "x")})
	}
	close(stop)
	writers.Wait()
	for i, data := range backups {
		wantWhole(t, s, restored(t, data), seqs[i])
	}
	if seqs[7] < 100 {
		t.Errorf("only %d numbers were given meanwhile", seqs[7])
	}
	soakreport.Report(t, soakreport.Result{
		Part: "backup", Claim: "a backup taken while it works, restored, is the organization of one moment", Goal: "whole batches up to its number",
		Observed: fmt.Sprintf("%d backups beside 8 writers, %d numbers given", len(backups), seqs[7]), Passed: !t.Failed(),
	})
}

// wantWhole compares a backup with what the store knows up to seq.
func wantWhole(t *testing.T, s, r *persist.Store, seq uint64) {
	t.Helper()
	var want []uint64
	for _, e := range journaltest.Collect(t, s.Follow(t.Context(), 0, false)) {
		if e.Seq <= seq {
			want = append(want, e.Seq)
		}
	}
	got := journaltest.Collect(t, r.Follow(t.Context(), 0, false))
	if len(got) != len(want) || r.Seq() != seq {
		t.Errorf("got %d events up to %d, want %d up to %d", len(got), r.Seq(), len(want), seq)
	}
	for w := range 8 {
		id := identity.AgentID(fmt.Sprint("w", w))
		count, err := r.Record(t.Context(), "batches", string(id))
		mail, mailErr := r.Inbox(t.Context(), id)
		list := journaltest.Collect(t, r.Read(t.Context(), id, 0))
		if err := errors.Join(err, mailErr); err != nil {
			t.Fatal(err)
		}
		if len(list) != 3*len(mail) || fmt.Sprint(len(mail)) != string(count) && len(mail) > 0 {
			t.Errorf("%s: got %d events, %d messages, %q batches", id, len(list), len(mail), count)
		}
	}
}

func TestABackupHoldsWhatTheStoreHolds(t *testing.T) {
	s := persisttest.OpenIn(t, write(t, specimen(t, 510)))
	want, err := contents(s)
	if err != nil {
		t.Fatal(err)
	}
	data, seq := backup(t, s)
	r := restored(t, data)
	if got, err := contents(r); err != nil || got != want || seq != s.Seq() {
		t.Errorf("up to %d: got %v, %.300s, want %.300s", seq, err, got, want)
	}
	if next := journaltest.Commit(t, r, &journal.Batch{Stream: "a", Events: events("a", 1, "more")}); next != seq+1 {
		t.Errorf("the next event has the number %d, want %d", next, seq+1)
	}
}

// A reader that takes nothing holds up nobody, however much the file grows,
// and leaves nothing in the data directory.
func TestAStuckReaderOfABackupHoldsUpNobody(t *testing.T) {
	dir := t.TempDir()
	s := persisttest.OpenIn(t, dir)
	journaltest.Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", 1, "before")})
	began, free, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var start sync.Once
	go func() {
		_, err := s.Backup(t.Context(), writerFunc(func(p []byte) (int, error) {
			start.Do(func() { close(began) })
			<-free
			return len(p), nil
		}))
		done <- err
	}()
	<-began
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("meanwhile the data directory holds %v, %v", list, err)
	}
	committed := make(chan struct{})
	go func() {
		defer close(committed)
		for n := range 8 {
			journaltest.Commit(t, s, &journal.Batch{Put: []journal.Record{{Kind: "blob", Key: fmt.Sprint(n), Value: make([]byte, 1<<20)}}})
		}
	}()
	select {
	case <-committed:
	case <-time.After(time.Minute):
		t.Error("commits wait for the reader")
	}
	close(free)
	<-committed
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A disk without room for a draft is not filled: that would stop the store.
func TestABackupLeavesRoomForCommits(t *testing.T) {
	dir := t.TempDir()
	persisttest.Close(t, persisttest.OpenIn(t, dir))
	if err := os.Truncate(filepath.Join(dir, persist.FileName), 1<<42); err != nil { // it takes no room itself
		t.Skipf("there are no files with holes: %v", err)
	}
	s := persisttest.OpenIn(t, dir)
	if _, err := s.Backup(t.Context(), io.Discard); errcode.Of(err) != errcode.QuotaExceeded {
		t.Errorf("got %v, want that there is no room", err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "copy"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := s.Backup(t.Context(), file); err != nil {
		t.Errorf("straight into a file: %v", err)
	}
	if _, err := persist.Verify(t.Context(), file.Name()); err != nil {
		t.Error(err)
	}
}

func TestBackupStopsWhen(t *testing.T) {
	t.Run("its context ends", func(t *testing.T) {
		s := persisttest.OpenIn(t, write(t, specimen(t, 510)))
		ctx, cancel := context.WithCancel(t.Context())
		out := writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
		if seq, err := s.Backup(ctx, out); !errors.Is(err, context.Canceled) || seq != 0 {
			t.Errorf("got %d, %v", seq, err)
		}
	})
	t.Run("its writer does, at any piece", func(t *testing.T) {
		s := persisttest.OpenIn(t, write(t, specimen(t, 510)))
		pieces := 0
		if _, err := s.Backup(t.Context(), writerFunc(func(p []byte) (int, error) { pieces++; return len(p), nil })); err != nil {
			t.Fatal(err)
		}
		for n := range pieces {
			left := n
			_, err := s.Backup(t.Context(), writerFunc(func(p []byte) (int, error) {
				if left--; left < 0 {
					return 0, syscall.ENOSPC
				}
				return len(p), nil
			}))
			if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("piece %d of %d: got %v", n, pieces, err)
			}
		}
	})
	t.Run("the store is closed", func(t *testing.T) {
		s, err := persist.Open(t.TempDir())
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Backup(t.Context(), io.Discard); !persist.IsClosed(err) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// wantRefused wants neither Verify nor Restore to take a backup, and Restore
// to leave nothing behind.
func wantRefused(t *testing.T, what string, data []byte, want string, is func(error) bool) {
	t.Helper()
	path, dir := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, verified := persist.Verify(t.Context(), path)
	for _, err := range []error{verified, persist.Restore(t.Context(), bytes.NewReader(data), dir)} {
		if err == nil || !is(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", what, err, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%s: %v are left, %v", what, left, err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, data) {
		t.Errorf("%s: the backup was changed, %v", what, err)
	}
}

func isDamaged(err error) bool { return errors.Is(err, journal.ErrDamaged) }

func isCode(code errcode.Code) func(error) bool {
	return func(err error) bool { return errcode.Of(err) == code }
}

// sealed puts a seal behind a data file.
func sealed(file []byte, version byte, seq uint64) []byte {
	out := append(bytes.Clone(file), "rolecall backup"...)
	out = append(out, version)
	for _, n := range []uint64{seq, uint64(len(file))} {
		for shift := 56; shift >= 0; shift -= 8 {
			out = append(out, byte(n>>shift))
		}
	}
	sum := sha256.Sum256(out)
	return append(out, sum[:]...)
}

func TestTheSealIsAsItIsDocumented(t *testing.T) {
	data, seq := backup(t, persisttest.OpenIn(t, write(t, specimen(t, 3))))
	if file := data[:len(data)-64]; !bytes.Equal(sealed(file, 1, seq), data) {
		t.Errorf("got the seal %x", data[len(file):])
	}
}

func TestWhatIsNoWholeBackupIsRefused(t *testing.T) {
	data, seq := backup(t, persisttest.OpenIn(t, write(t, specimen(t, 510))))
	file := data[:len(data)-64]
	t.Run("cut short anywhere", func(t *testing.T) {
		for _, n := range []int{20, 100, 4096, 5000, 8192, len(data) / 2, len(data) - 4096, len(data) - 65, len(data) - 64, len(data) - 33, len(data) - 1} {
			wantRefused(t, fmt.Sprintf("%d of %d bytes", n, len(data)), data[:n], "cut short", isDamaged)
		}
		wantRefused(t, "1 byte", data[:1], "no backup of rolecall", isCode(errcode.InvalidArguments))
		wantRefused(t, "nothing", nil, "the file is empty", isCode(errcode.InvalidArguments))
	})
	t.Run("changed anywhere", func(t *testing.T) {
		for at := 0; at < len(data); at += 1 + len(data)/150 {
			changed := bytes.Clone(data)
			changed[at] ^= 1 << (at % 8)
			wantRefused(t, fmt.Sprintf("a bit of byte %d of %d", at, len(data)), changed, "", func(err error) bool { return isDamaged(err) || errcode.Of(err) == errcode.Conflict })
		}
		wantRefused(t, "a piece left out", append(bytes.Clone(data[:4096]), data[8192:]...), "instead of", isDamaged)
		wantRefused(t, "a piece put in", append(bytes.Clone(data[:4096]), data...), "instead of", isDamaged)
	})
	t.Run("something else", func(t *testing.T) {
		wantRefused(t, "a text", bytes.Repeat([]byte("dear diary, "), 1000), "no backup of rolecall", isCode(errcode.InvalidArguments))
		wantRefused(t, "a data file", file, "a data file and no backup", isDamaged)
		wantRefused(t, "a seal behind a text", sealed([]byte("dear diary"), 1, 1), "", isDamaged)
	})
	t.Run("newer", func(t *testing.T) {
		wantRefused(t, "a seal", sealed(file, 2, seq), "the backup has version 2", isCode(errcode.Conflict))
		dir := write(t, file)
		setNumber(t, dir, "schema", 99)
		newer, err := os.ReadFile(filepath.Join(dir, persist.FileName))
		if err != nil {
			t.Fatal(err)
		}
		wantRefused(t, "a schema", sealed(newer, 1, seq), "schema 99", isCode(errcode.Conflict))
	})
	t.Run("damaged before it was made", func(t *testing.T) {
		for _, text := range []string{"tail", "checkpoint", `"value"`, "hello", "later"} {
			spoilt := bytes.ReplaceAll(file, []byte(text), bytes.ToUpper([]byte(text)))
			wantRefused(t, text, sealed(spoilt, 1, seq), "checksum differs", isDamaged)
		}
	})
}

func TestRestoreLeavesWhatIsThere(t *testing.T) {
	data, _ := backup(t, persisttest.OpenIn(t, write(t, specimen(t, 3))))
	occupied := func(t *testing.T, err error) {
		t.Helper()
		if errcode.Of(err) != errcode.Conflict || !strings.Contains(err.Error(), "is there already and stays as it is") {
			t.Errorf("got %v, want a conflict", err)
		}
	}
	t.Run("an organization", func(t *testing.T) {
		dir := t.TempDir()
		persisttest.Close(t, persisttest.OpenIn(t, dir))
		before, _ := os.ReadFile(filepath.Join(dir, persist.FileName))
		occupied(t, persist.Restore(t.Context(), bytes.NewReader(data), dir))
		if after, err := os.ReadFile(filepath.Join(dir, persist.FileName)); err != nil || !bytes.Equal(before, after) {
			t.Errorf("the data file was changed, %v", err)
		}
	})
	t.Run("an organization that comes while the backup is read", func(t *testing.T) {
		dir := t.TempDir()
		made := false
		from := io.MultiReader(bytes.NewReader(data), readerFunc(func([]byte) (int, error) {
			if !made {
				made = true
				journaltest.Commit(t, persisttest.OpenIn(t, dir), &journal.Batch{Stream: "mine", Events: events("mine", 1, "x")})
			}
			return 0, io.EOF
		}))
		occupied(t, persist.Restore(t.Context(), from, dir))
	})
	t.Run("a file where the data directory should be", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := persist.Restore(t.Context(), bytes.NewReader(data), file); err == nil {
			t.Error("no error")
		}
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A restore that breaks off, or was killed, leaves no data file; the next one
// takes away what it left.
func TestARestoreThatBreaksOff(t *testing.T) {
	data, seq := backup(t, persisttest.OpenIn(t, write(t, specimen(t, 3))))
	dir := filepath.Join(t.TempDir(), "a", "b")
	broken := io.MultiReader(bytes.NewReader(data[:5000]), readerFunc(func([]byte) (int, error) {
		parts, err := filepath.Glob(filepath.Join(dir, "*.part"))
		if _, there := os.Stat(filepath.Join(dir, persist.FileName)); err != nil || len(parts) != 1 || !errors.Is(there, fs.ErrNotExist) {
			t.Errorf("in the middle there are %v, %v, and a data file: %v", parts, err, there)
		}
		for _, part := range parts { // as if it were killed here
			if err := os.Link(part, filepath.Join(dir, "rolecall.db-killed.part")); err != nil {
				t.Error(err)
			}
		}
		return 0, io.ErrUnexpectedEOF
	}))
	if err := persist.Restore(t.Context(), broken, dir); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := persist.Restore(ctx, bytes.NewReader(data), dir); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := persist.Restore(t.Context(), bytes.NewReader(data), dir); err != nil {
		t.Fatal(err)
	}
	if file, err := os.ReadFile(filepath.Join(dir, persist.FileName)); err != nil || !bytes.Equal(file, data[:len(data)-64]) {
		t.Errorf("the data file is not that of the backup, %v", err)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 || list[0].Name() != persist.FileName {
		t.Errorf("the data directory holds %v, %v", list, err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, filepath.Join(dir, persist.FileName): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: got %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	if s := persisttest.OpenIn(t, dir); s.Seq() != seq {
		t.Errorf("got events up to %d, want %d", s.Seq(), seq)
	}
}
