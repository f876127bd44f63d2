package persist_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/journaltest"
	"github.com/rolecall/rolecall/persist"
)

// lossOf are the ways in which a data file loses its name, by their descriptions.
var lossOf = map[string]func(dir string) error{
	"removed": func(dir string) error { return os.Remove(filepath.Join(dir, persist.FileName)) },
	"replaced": func(dir string) error {
		other := filepath.Join(dir, "other")
		return errors.Join(os.WriteFile(other, []byte("other"), 0o600), os.Rename(other, filepath.Join(dir, persist.FileName)))
	},
	"moved": func(dir string) error {
		return os.Rename(filepath.Join(dir, persist.FileName), filepath.Join(dir, "moved"))
	},
	"directory removed":         os.RemoveAll,
	"directory became a file":   func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) },
	"directory moved elsewhere": func(dir string) error { return os.Rename(dir, dir+"-moved") },
}

// A data file that loses its name stops the store within a second, also without a commit.
// Everything that was committed is in the file that was saved beside it.
func TestStore_SavesFileWithoutName(t *testing.T) {
	for how, lose := range lossOf {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s, dir, seq := storeWithEvents(t)
			stopped := make(chan error, 1)
			s.NotifyStop(func(reason error) { stopped <- reason })
			began := time.Now()
			if err := lose(dir); err != nil {
				t.Fatal(err)
			}
			reason := <-stopped
			if took := time.Since(began); took > 3*time.Second { // one, and the load of other tests
				t.Errorf("it took %v", took)
			}
			if !persist.IsClosed(reason) || !strings.Contains(reason.Error(), "was removed or replaced while it was open") {
				t.Errorf("got %v", reason)
			}
			if err := s.Close(); !errors.Is(err, reason) {
				t.Errorf("close: got %v, want %v", err, reason)
			}
			if how == "directory became a file" {
				if !strings.Contains(reason.Error(), "could not be saved") {
					t.Errorf("got %v", reason)
				}
				return
			}
			wantSaved(t, dir, seq)
		})
	}
}

// A commit after the data file lost its name is not acknowledged, and an ended process
// reports it.
func TestCommit_WithoutNameIsNotAcknowledged(t *testing.T) {
	s, dir, seq := storeWithEvents(t)
	if err := lossOf["replaced"](dir); err != nil {
		t.Fatal(err)
	}
	_, err := s.Commit(t.Context(), &journal.Batch{Stream: "a", Events: events("a", 1, "after")})
	if !errors.Is(err, journal.ErrClosed) {
		t.Errorf("commit: got %v, want ErrClosed", err)
	}
	if err := s.Close(); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("close: got %v, want ErrClosed", err)
	}
	wantSaved(t, dir, seq+1)

	s, dir, seq = storeWithEvents(t)
	if err := lossOf["removed"](dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("close: got %v, want ErrClosed", err)
	}
	wantSaved(t, dir, seq)
}

// storeWithEvents returns an open store in a new directory with some events.
func storeWithEvents(t *testing.T) (s *persist.Store, dir string, seq uint64) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	s, err := persist.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir, journaltest.Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", 3, "before")})
}

// wantSaved checks that a directory has one saved file with the events up to seq, and no
// other new file.
func wantSaved(t *testing.T, dir string, seq uint64) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, persist.FileName+"?*"))
	if err != nil || len(list) != 1 || !strings.Contains(list[0], ".saved-") {
		t.Fatalf("got %q, %v, want one saved file", list, err)
	}
	saved, err := os.Open(list[0])
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	to := t.TempDir()
	if err := persist.RestoreBackup(t.Context(), saved, to); err != nil {
		t.Fatal(err)
	}
	s, err := persist.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.LastSeq(); got != seq {
		t.Errorf("it has the events up to %d, want %d", got, seq)
	}
}
