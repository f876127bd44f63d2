package persisttest_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
)

// fakeT is a testing.TB that records failures and cleanups.
type fakeT struct {
	testing.TB
	cleanups []func()
	reports  []string
	fatal    bool
}

func (f *fakeT) Helper()                   {}
func (f *fakeT) Cleanup(fn func())         { f.cleanups = append(f.cleanups, fn) }
func (f *fakeT) Errorf(s string, a ...any) { f.reports = append(f.reports, fmt.Sprintf(s, a...)) }

func (f *fakeT) Fatal(a ...any) {
	f.reports, f.fatal = append(f.reports, fmt.Sprint(a...)), true
	panic(f)
}

func (f *fakeT) runCleanups() {
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
}

func TestClose_ChecksStore(t *testing.T) {
	write := func(t *testing.T, s *persist.Store) {
		t.Helper()
		if _, err := s.Commit(t.Context(), &journal.Batch{Put: []journal.Record{{Kind: "k", Key: "x", Value: []byte("precious")}}}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("undamaged store", func(t *testing.T) {
		f := &fakeT{TB: t}
		s := persisttest.Open(f)
		write(t, s)
		f.runCleanups()
		if len(f.reports) != 0 || len(f.cleanups) != 1 {
			t.Errorf("got %q", f.reports)
		}
		if _, err := s.Commit(t.Context(), &journal.Batch{}); !persist.IsClosed(err) {
			t.Errorf("the store was not closed: %v", err)
		}
	})
	t.Run("closed store", func(t *testing.T) {
		f := &fakeT{TB: t}
		s := persisttest.Open(f)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		f.runCleanups()
		if len(f.reports) != 0 {
			t.Errorf("got %q", f.reports)
		}
	})
	t.Run("damaged store", func(t *testing.T) {
		f, dir := &fakeT{TB: t}, t.TempDir()
		write(t, persisttest.OpenIn(f, dir))
		corruptFile(t, filepath.Join(dir, persist.FileName), "precious")
		f.runCleanups()
		if got := strings.Join(f.reports, "\n"); !strings.Contains(got, "the store is damaged") || !strings.Contains(got, "checksum differs") {
			t.Errorf("got %q, want a report of the damage", got)
		}
	})
	t.Run("store that cannot be opened", func(t *testing.T) {
		f, dir := &fakeT{TB: t}, t.TempDir()
		persisttest.OpenIn(t, dir)
		func() {
			defer func() { _ = recover() }()
			persisttest.OpenIn(f, dir)
		}()
		if !f.fatal || len(f.cleanups) != 0 {
			t.Errorf("got %q", f.reports)
		}
	})
}

// corruptFile overwrites the first byte of each occurrence of text in an open file.
func corruptFile(t *testing.T, path, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte(text))
		if i < 0 {
			return
		}
		at += i + 1
		if _, err := f.WriteAt([]byte("P"), int64(at-1)); err != nil {
			t.Fatal(err)
		}
	}
}
