package persist_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/journaltest"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
)

// OpenReadOnly reads everything and leaves no trace, also beside another reader.
func TestOpenReadOnly_WritesNothing(t *testing.T) {
	dir := t.TempDir()
	s := persisttest.OpenIn(t, dir)
	journaltest.Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", 3, "x"), Put: []journal.Record{right("x", "y")}})
	want, err := dump(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := persist.OpenReadOnly(dir); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("beside a writer: got %v, want a conflict", err)
	}
	persisttest.Close(t, s)
	path := filepath.Join(dir, persist.FileName)
	old := time.Now().Add(-time.Hour)
	if err := errors.Join(os.Chmod(path, 0o640), os.Chtimes(path, old, old)); err != nil {
		t.Fatal(err)
	}
	before, info := readData(t, dir), statFile(t, path)
	for range 2 {
		look, err := persist.OpenReadOnly(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer look.Close()
		if got, err := dump(look); err != nil || got != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
		rejected := errors.New("rejected")
		for _, c := range []struct {
			batch *journal.Batch
			want  func(error) bool
		}{
			{&journal.Batch{Stream: "a", Events: events("a", 1, "x")}, func(err error) bool { return errcode.CodeOf(err) == errcode.PermissionDenied }},
			{&journal.Batch{Stream: "a"}, func(err error) bool { return errcode.CodeOf(err) == errcode.PermissionDenied }},
			{&journal.Batch{Prepare: func(*journal.Batch) error { return rejected }}, func(err error) bool { return err == rejected }},
			{&journal.Batch{Prepare: func(*journal.Batch) error { return nil }}, func(err error) bool { return err == nil }},
		} {
			if _, err := look.Commit(t.Context(), c.batch); !c.want(err) {
				t.Errorf("commit of %+v: got %v", c.batch, err)
			}
		}
		var backup bytes.Buffer
		if _, err := look.WriteBackup(t.Context(), &backup); err != nil || backup.Len() == 0 {
			t.Errorf("backup: %d bytes, %v", backup.Len(), err)
		}
		if err := look.Close(); err != nil {
			t.Error(err)
		}
	}
	if after := statFile(t, path); !bytes.Equal(before, readData(t, dir)) || after.ModTime() != info.ModTime() || after.Mode() != info.Mode() {
		t.Errorf("the file was changed: %v %v, before %v %v", after.ModTime(), after.Mode(), info.ModTime(), info.Mode())
	}
}

func statFile(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestOpenReadOnly_RefusesWhatItCannotRead(t *testing.T) {
	if _, err := persist.OpenReadOnly(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no data file: got %v", err)
	}
	dir := dirWith(t, olderFile(t, 2))
	before := readData(t, dir)
	if _, err := persist.OpenReadOnly(dir); !errors.Is(err, persist.ErrOlderSchema) {
		t.Errorf("an older file: got %v", err)
	}
	if !bytes.Equal(before, readData(t, dir)) {
		t.Error("the older file was changed")
	}
	file := sampleFile(t, 3)
	file[pageBytes+20]++
	if _, err := persist.OpenReadOnly(dirWith(t, file)); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("a damaged file: got %v", err)
	}
}

// A draft stays while its process uses it, and is removed by the next one afterwards.
func TestCreateDraft_RemovesAbandonedDrafts(t *testing.T) {
	dir := t.TempDir()
	abandoned, other := filepath.Join(dir, ".draft-1.part"), filepath.Join(dir, ".other-1.part")
	if err := errors.Join(os.WriteFile(abandoned, nil, 0o600), os.WriteFile(other, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	create := func() *os.File {
		t.Helper()
		file, err := persist.CreateDraft(dir, ".draft-*.part")
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	first := create()
	defer first.Close()
	second := create()
	if _, err := os.Stat(abandoned); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the abandoned draft: got %v", err)
	}
	for _, path := range []string{first.Name(), second.Name(), other} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if err := second.Close(); err != nil { // as the end of its process does
		t.Fatal(err)
	}
	third := create()
	defer third.Close()
	if _, err := os.Stat(second.Name()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the closed draft: got %v", err)
	}
	if _, err := os.Stat(first.Name()); err != nil {
		t.Error(err)
	}
}
