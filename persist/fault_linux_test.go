package persist_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/journaltest"
	"github.com/rolecall/rolecall/persist"
)

// makeUnwritable replaces the file descriptor of a store by a read-only one. Like a disk that
// has become read-only, mapped pages stay readable.
func makeUnwritable(t *testing.T, dir string) {
	t.Helper()
	path, err := filepath.EvalSymlinks(filepath.Join(dir, persist.FileName))
	if err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range open {
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		fd, _ := strconv.Atoi(entry.Name())
		if err != nil || target != path {
			continue
		}
		readOnly, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer readOnly.Close()
		if err := syscall.Dup3(int(readOnly.Fd()), fd, syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("%s is not open", path)
}

// The outcome of a failed commit is unknown, so the store stops. Later commits fail without a
// call of Prepare, and earlier data can still be read.
func TestCommit_FailureStopsStore(t *testing.T) {
	dir := t.TempDir()
	s, err := persist.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	journaltest.Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", 2, "kept")})
	makeUnwritable(t, dir)
	batch := func() *journal.Batch { return &journal.Batch{Stream: "a", Events: events("a", 1, "lost")} }
	_, err = s.Commit(t.Context(), batch())
	if !persist.IsClosed(err) || !strings.Contains(err.Error(), "its outcome is unknown") || !errors.Is(err, syscall.EBADF) {
		t.Errorf("got %v, want ErrClosed with its cause", err)
	}
	for i := range 3 {
		b := batch()
		b.Prepare = func(*journal.Batch) error {
			t.Error("a batch was prepared by a store that has stopped")
			return fmt.Errorf("refused")
		}
		if _, err := s.Commit(t.Context(), b); !persist.IsClosed(err) {
			t.Errorf("commit %d: got %v, want ErrClosed", i, err)
		}
	}
	if got := summaries(journaltest.Collect(t, s.Read(t.Context(), "a", 0))); len(got) != 2 || s.LastSeq() != 2 {
		t.Errorf("got %v up to %d, want what was kept", got, s.LastSeq())
	}
	if err := s.Close(); err != nil && !errors.Is(err, syscall.EBADF) {
		t.Errorf("close: got %v", err)
	}
	s, err = persist.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.CheckIntegrity(context.Background()); err != nil {
		t.Error(err)
	}
	if seq := journaltest.Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", 1, "again")}); seq != 3 {
		t.Errorf("got %d, want 3", seq)
	}
}
