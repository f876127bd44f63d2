package persist_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/persist"
)

// exists reports whether there is a file.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// What Open has created is removed again if nothing was committed, and only then.
func TestStore_DiscardUnused(t *testing.T) {
	record := &journal.Batch{Put: []journal.Record{{Kind: "k", Key: "a", Value: []byte("1")}}}
	for _, test := range []struct {
		name    string
		use     func(t *testing.T, dir string, s *persist.Store)
		removed bool
	}{
		{"unused", func(*testing.T, string, *persist.Store) {}, true},
		{"committed", func(t *testing.T, _ string, s *persist.Store) {
			if _, err := s.Commit(t.Context(), record); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"replaced", func(t *testing.T, dir string, _ *persist.Store) {
			path := filepath.Join(dir, persist.FileName)
			if err := os.Rename(path, path+".old"); err != nil {
				t.Skip("the system does not rename open files")
			}
			if err := os.WriteFile(path, []byte("of another"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			parent := filepath.Join(t.TempDir(), "a")
			dir := filepath.Join(parent, "b")
			s, err := persist.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			test.use(t, dir, s)
			s.DiscardUnused()
			_ = s.Close() // a store whose file was replaced reports it
			_ = s.Close()
			if gone := !exists(parent); gone != test.removed {
				t.Errorf("removed %v, want %v", gone, test.removed)
			}
			if !test.removed && !exists(filepath.Join(dir, persist.FileName)) {
				t.Error("the data file was removed")
			}
		})
	}
}

// A data file and a directory that existed before are kept, and so are other files.
func TestStore_DiscardUnusedKeepsWhatExisted(t *testing.T) {
	dir := t.TempDir()
	open := func() *persist.Store {
		s, err := persist.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	s.DiscardUnused()
	if err := s.Close(); err != nil || !exists(dir) || exists(filepath.Join(dir, persist.FileName)) {
		t.Errorf("%v: the directory is %v, the file is %v", err, exists(dir), exists(filepath.Join(dir, persist.FileName)))
	}
	if err := open().Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	s.DiscardUnused()
	if err := s.Close(); err != nil || !exists(filepath.Join(dir, persist.FileName)) {
		t.Errorf("%v: the data file of an earlier Open was removed", err)
	}
}

// Neither a failed Open nor a failed restore leaves a new directory behind.
func TestOpen_FailsWithoutNewDirectories(t *testing.T) {
	parent := t.TempDir()
	file := filepath.Join(parent, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := persist.Open(filepath.Join(file, "data")); err == nil {
		t.Error("a directory in a file was opened")
	}
	dir := filepath.Join(parent, "a", "b")
	if err := persist.RestoreBackup(t.Context(), strings.NewReader("no backup"), dir); err == nil {
		t.Error("no backup was restored")
	}
	if exists(filepath.Dir(dir)) {
		t.Error("the restore has left its directory")
	}
}
