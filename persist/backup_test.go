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

// restoreBackup restores a backup into a new data directory and opens it.
func restoreBackup(t *testing.T, backup []byte) *persist.Store {
	t.Helper()
	dir := t.TempDir()
	if err := persist.RestoreBackup(t.Context(), bytes.NewReader(backup), dir); err != nil {
		t.Fatal(err)
	}
	return persisttest.OpenIn(t, dir)
}

func backup(t testing.TB, s *persist.Store) ([]byte, uint64) {
	t.Helper()
	var out bytes.Buffer
	seq, err := s.WriteBackup(t.Context(), &out)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), seq
}

// batchOf returns a batch of three events, a message and a record with the number of batches
// that w has committed.
func batchOf(w identity.AgentID, n int) *journal.Batch {
	return &journal.Batch{
		Stream: w, Events: events(w, 3, fmt.Sprint(n)), Send: []journal.Message{message(w, fmt.Sprint(n))},
		Put: []journal.Record{{Kind: "batches", Key: string(w), Value: fmt.Append(nil, n)}},
	}
}

// Backups that are made while eight writers commit are the file as it was between two
// commits: they have complete batches, and exactly the events up to their number.
func TestBackup_WhileWritersCommit(t *testing.T) {
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
		wantConsistent(t, s, restoreBackup(t, data), seqs[i])
	}
	if seqs[7] < 100 {
		t.Errorf("only %d sequence numbers were assigned meanwhile", seqs[7])
	}
	soakreport.RecordResult(t, soakreport.Result{
		Part: "backup", Claim: "an online backup restores the organization of one moment", Goal: "whole batches up to its sequence number",
		Observed: fmt.Sprintf("%d backups during 8 writers, last sequence number %d", len(backups), seqs[7]), Passed: !t.Failed(),
	})
}

// wantConsistent checks that the backup r has the events of s up to seq, in complete batches.
func wantConsistent(t *testing.T, s, r *persist.Store, seq uint64) {
	t.Helper()
	var want []uint64
	for _, e := range journaltest.Collect(t, s.FollowEvents(t.Context(), 0, journal.StoredOnly)) {
		if e.Seq <= seq {
			want = append(want, e.Seq)
		}
	}
	got := journaltest.Collect(t, r.FollowEvents(t.Context(), 0, journal.StoredOnly))
	if len(got) != len(want) || r.LastSeq() != seq {
		t.Errorf("got %d events up to %d, want %d up to %d", len(got), r.LastSeq(), len(want), seq)
	}
	for w := range 8 {
		id := identity.AgentID(fmt.Sprint("w", w))
		count, err := r.ReadRecord(t.Context(), "batches", string(id))
		mail, mailErr := r.ReadInbox(t.Context(), id)
		list := journaltest.Collect(t, r.Read(t.Context(), id, 0))
		if err := errors.Join(err, mailErr); err != nil {
			t.Fatal(err)
		}
		if len(list) != 3*len(mail) || fmt.Sprint(len(mail)) != string(count) && len(mail) > 0 {
			t.Errorf("%s: got %d events, %d messages, %q batches", id, len(list), len(mail), count)
		}
	}
}

func TestBackup_RestoresSameContents(t *testing.T) {
	s := persisttest.OpenIn(t, dirWith(t, sampleFile(t, 510)))
	want, err := dump(s)
	if err != nil {
		t.Fatal(err)
	}
	data, seq := backup(t, s)
	r := restoreBackup(t, data)
	if got, err := dump(r); err != nil || got != want || seq != s.LastSeq() {
		t.Errorf("up to %d: got %v, %.300s, want %.300s", seq, err, got, want)
	}
	if next := journaltest.Commit(t, r, &journal.Batch{Stream: "a", Events: events("a", 1, "more")}); next != seq+1 {
		t.Errorf("the next event has the sequence number %d, want %d", next, seq+1)
	}
}

// A client that does not read its backup does not delay commits, however much the file
// grows, and WriteBackup leaves no file in the data directory.
func TestBackup_SlowWriterDoesNotBlockCommits(t *testing.T) {
	dir := t.TempDir()
	s := persisttest.OpenIn(t, dir)
	journaltest.Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", 1, "before")})
	began, free, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var start sync.Once
	go func() {
		_, err := s.WriteBackup(t.Context(), writerFunc(func(p []byte) (int, error) {
			start.Do(func() { close(began) })
			<-free
			return len(p), nil
		}))
		done <- err
	}()
	<-began
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("during the backup the data directory has %v, %v", list, err)
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
		t.Error("commits wait for the client")
	}
	close(free)
	<-committed
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// WriteBackup does not fill a disk without space for a temporary file: that would stop the store.
func TestBackup_LeavesDiskSpaceForCommits(t *testing.T) {
	dir := t.TempDir()
	persisttest.Close(t, persisttest.OpenIn(t, dir))
	if err := os.Truncate(filepath.Join(dir, persist.FileName), 1<<42); err != nil { // a sparse file, which needs no space
		t.Skipf("no sparse files: %v", err)
	}
	s := persisttest.OpenIn(t, dir)
	if _, err := s.WriteBackup(t.Context(), io.Discard); errcode.CodeOf(err) != errcode.QuotaExceeded {
		t.Errorf("got %v, want quota_exceeded", err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "copy"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := s.WriteBackup(t.Context(), file); err != nil {
		t.Errorf("directly into a file: %v", err)
	}
	if _, err := persist.VerifyBackup(t.Context(), file.Name()); err != nil {
		t.Error(err)
	}
}

func TestBackup_Stops(t *testing.T) {
	t.Run("context done", func(t *testing.T) {
		s := persisttest.OpenIn(t, dirWith(t, sampleFile(t, 510)))
		ctx, cancel := context.WithCancel(t.Context())
		out := writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
		if seq, err := s.WriteBackup(ctx, out); !errors.Is(err, context.Canceled) || seq != 0 {
			t.Errorf("got %d, %v", seq, err)
		}
	})
	t.Run("writer fails at any write", func(t *testing.T) {
		s := persisttest.OpenIn(t, dirWith(t, sampleFile(t, 510)))
		writes := 0
		if _, err := s.WriteBackup(t.Context(), writerFunc(func(p []byte) (int, error) { writes++; return len(p), nil })); err != nil {
			t.Fatal(err)
		}
		for n := range writes {
			left := n
			_, err := s.WriteBackup(t.Context(), writerFunc(func(p []byte) (int, error) {
				if left--; left < 0 {
					return 0, syscall.ENOSPC
				}
				return len(p), nil
			}))
			if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("write %d of %d: got %v", n, writes, err)
			}
		}
	})
	t.Run("store closed", func(t *testing.T) {
		s, err := persist.Open(t.TempDir())
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.WriteBackup(t.Context(), io.Discard); !persist.IsClosed(err) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// wantRejected checks that Verify and Restore reject a backup, and that Restore leaves no
// file.
func wantRejected(t *testing.T, what string, data []byte, want string, is func(error) bool) {
	t.Helper()
	path, dir := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, verified := persist.VerifyBackup(t.Context(), path)
	for _, err := range []error{verified, persist.RestoreBackup(t.Context(), bytes.NewReader(data), dir)} {
		if err == nil || !is(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", what, err, want)
		}
	}
	if left, err := os.ReadDir(dir); !os.IsNotExist(err) {
		t.Errorf("%s: Restore left %v, %v", what, left, err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, data) {
		t.Errorf("%s: the backup was changed, %v", what, err)
	}
}

func isDamaged(err error) bool { return errors.Is(err, journal.ErrDamaged) }

func isCode(code errcode.Code) func(error) bool {
	return func(err error) bool { return errcode.CodeOf(err) == code }
}

// withTrailer appends a trailer to a data file.
func withTrailer(file []byte, version byte, seq uint64) []byte {
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

func TestBackup_TrailerFormat(t *testing.T) {
	data, seq := backup(t, persisttest.OpenIn(t, dirWith(t, sampleFile(t, 3))))
	if file := data[:len(data)-64]; !bytes.Equal(withTrailer(file, 1, seq), data) {
		t.Errorf("got the trailer %x", data[len(file):])
	}
}

func TestVerify_RejectsIncompleteBackups(t *testing.T) {
	data, seq := backup(t, persisttest.OpenIn(t, dirWith(t, sampleFile(t, 510))))
	file := data[:len(data)-64]
	t.Run("cut short", func(t *testing.T) {
		for _, n := range []int{20, 100, 4096, 5000, 8192, len(data) / 2, len(data) - 4096, len(data) - 65, len(data) - 64, len(data) - 33, len(data) - 1} {
			wantRejected(t, fmt.Sprintf("%d of %d bytes", n, len(data)), data[:n], "cut short", isDamaged)
		}
		wantRejected(t, "1 byte", data[:1], "not a rolecall backup", isCode(errcode.InvalidArguments))
		wantRejected(t, "empty", nil, "the file is empty", isCode(errcode.InvalidArguments))
	})
	t.Run("changed", func(t *testing.T) {
		for at := 0; at < len(data); at += 1 + len(data)/150 {
			changed := bytes.Clone(data)
			changed[at] ^= 1 << (at % 8)
			wantRejected(t, fmt.Sprintf("a bit of byte %d of %d", at, len(data)), changed, "", func(err error) bool { return isDamaged(err) || errcode.CodeOf(err) == errcode.Conflict })
		}
		wantRejected(t, "page removed", append(bytes.Clone(data[:4096]), data[8192:]...), "instead of", isDamaged)
		wantRejected(t, "page inserted", append(bytes.Clone(data[:4096]), data...), "instead of", isDamaged)
	})
	t.Run("other files", func(t *testing.T) {
		wantRejected(t, "text", bytes.Repeat([]byte("dear diary, "), 1000), "not a rolecall backup", isCode(errcode.InvalidArguments))
		wantRejected(t, "data file", file, "a data file and not a backup", isDamaged)
		wantRejected(t, "text with a trailer", withTrailer([]byte("dear diary"), 1, 1), "", isDamaged)
	})
	t.Run("newer version", func(t *testing.T) {
		wantRejected(t, "trailer", withTrailer(file, 2, seq), "the backup has version 2", isCode(errcode.Conflict))
		dir := dirWith(t, file)
		setNumber(t, dir, "schema", 99)
		newer, err := os.ReadFile(filepath.Join(dir, persist.FileName))
		if err != nil {
			t.Fatal(err)
		}
		wantRejected(t, "schema", withTrailer(newer, 1, seq), "schema 99", isCode(errcode.Conflict))
	})
	t.Run("damaged before the backup", func(t *testing.T) {
		for _, text := range []string{"tail", "checkpoint", `"value"`, "hello", "later"} {
			damaged := bytes.ReplaceAll(file, []byte(text), bytes.ToUpper([]byte(text)))
			wantRejected(t, text, withTrailer(damaged, 1, seq), "checksum differs", isDamaged)
		}
	})
}

func TestRestore_KeepsExistingFiles(t *testing.T) {
	data, _ := backup(t, persisttest.OpenIn(t, dirWith(t, sampleFile(t, 3))))
	wantConflict := func(t *testing.T, err error) {
		t.Helper()
		if errcode.CodeOf(err) != errcode.Conflict || !strings.Contains(err.Error(), "already exists and was not changed") {
			t.Errorf("got %v, want a conflict", err)
		}
	}
	t.Run("data file exists", func(t *testing.T) {
		dir := t.TempDir()
		persisttest.Close(t, persisttest.OpenIn(t, dir))
		before, _ := os.ReadFile(filepath.Join(dir, persist.FileName))
		wantConflict(t, persist.RestoreBackup(t.Context(), bytes.NewReader(data), dir))
		if after, err := os.ReadFile(filepath.Join(dir, persist.FileName)); err != nil || !bytes.Equal(before, after) {
			t.Errorf("the data file was changed, %v", err)
		}
	})
	t.Run("data file created meanwhile", func(t *testing.T) {
		dir := t.TempDir()
		created := false
		from := io.MultiReader(bytes.NewReader(data), readerFunc(func([]byte) (int, error) {
			if !created {
				created = true
				journaltest.Commit(t, persisttest.OpenIn(t, dir), &journal.Batch{Stream: "mine", Events: events("mine", 1, "x")})
			}
			return 0, io.EOF
		}))
		wantConflict(t, persist.RestoreBackup(t.Context(), from, dir))
	})
	t.Run("data directory is a file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := persist.RestoreBackup(t.Context(), bytes.NewReader(data), file); err == nil {
			t.Error("no error")
		}
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A restore that fails, or is killed, leaves no data file. The next one removes the
// temporary file of a killed one.
func TestRestore_Interrupted(t *testing.T) {
	data, seq := backup(t, persisttest.OpenIn(t, dirWith(t, sampleFile(t, 3))))
	dir := filepath.Join(t.TempDir(), "a", "b")
	broken := io.MultiReader(bytes.NewReader(data[:5000]), readerFunc(func([]byte) (int, error) {
		parts, err := filepath.Glob(filepath.Join(dir, "*.part"))
		if _, statErr := os.Stat(filepath.Join(dir, persist.FileName)); err != nil || len(parts) != 1 || !errors.Is(statErr, fs.ErrNotExist) {
			t.Errorf("during the restore: temporary files %v, %v, data file: %v", parts, err, statErr)
		}
		for _, part := range parts { // as if it had been killed here
			if err := os.Link(part, filepath.Join(dir, "rolecall.db-killed.part")); err != nil {
				t.Error(err)
			}
		}
		return 0, io.ErrUnexpectedEOF
	}))
	if err := persist.RestoreBackup(t.Context(), broken, dir); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := persist.RestoreBackup(ctx, bytes.NewReader(data), dir); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := persist.RestoreBackup(t.Context(), bytes.NewReader(data), dir); err != nil {
		t.Fatal(err)
	}
	if file, err := os.ReadFile(filepath.Join(dir, persist.FileName)); err != nil || !bytes.Equal(file, data[:len(data)-64]) {
		t.Errorf("the data file is not that of the backup, %v", err)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 || list[0].Name() != persist.FileName {
		t.Errorf("the data directory has %v, %v", list, err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, filepath.Join(dir, persist.FileName): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: got %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	if s := persisttest.OpenIn(t, dir); s.LastSeq() != seq {
		t.Errorf("got events up to %d, want %d", s.LastSeq(), seq)
	}
}
