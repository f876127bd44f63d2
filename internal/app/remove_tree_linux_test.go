package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rolecall/rolecall/internal/test/short"
)

// Folders that an agent has nested deeper than this process may open files are removed, and so
// are those that it has made unreadable.
func TestRemoveTree_DeepAndUnreadable(t *testing.T) {
	lowerFileLimit(t, 256)
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	nest(t, filepath.Join(dir, "task", "agent"), short.Count(600, 2000))
	writeFile(t, filepath.Join(dir, "task", "locked", "inner", "a.txt"))
	for _, name := range []string{"task/locked/inner", "task/locked"} {
		if err := os.Chmod(filepath.Join(dir, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeTree(t.Context(), root, "task"); err != nil {
		t.Errorf("%.200s", err)
	}
	if _, err := root.Lstat("task"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tree is still there: %v", err)
	}
}

// What links point to stays, and a removal ends with its context.
func TestRemoveTree_LinksAndContext(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	writeFile(t, filepath.Join(outside, "kept.txt"))
	writeFile(t, filepath.Join(dir, "other", "kept.txt"))
	for _, folder := range []string{"task", "task/a", "task/a/b"} {
		writeFile(t, filepath.Join(dir, folder, "a.txt"))
		for name, target := range map[string]string{"outside": outside, "other": strings.Repeat("../", strings.Count(folder, "/")+1) + "other"} {
			if err := os.Symlink(target, filepath.Join(dir, folder, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := removeTree(ended, root, "task"); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	if err := removeTree(t.Context(), root, "task"); err != nil {
		t.Error(err)
	}
	for _, kept := range []string{filepath.Join(outside, "kept.txt"), filepath.Join(dir, "other", "kept.txt")} {
		if _, err := os.Stat(kept); err != nil {
			t.Error(err)
		}
	}
}

// lowerFileLimit limits the open files of this process during a test.
func lowerFileLimit(t *testing.T, limit uint64) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	lower := before
	lower.Cur = limit
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lower); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) })
}

// nest makes a folder with a number of folders below it, each in the one before.
func nest(t *testing.T, dir string, depth int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(dir, unix.O_RDONLY, 0)
	for range depth {
		if err == nil {
			err = unix.Mkdirat(fd, "d", 0o700)
		}
		if err == nil {
			var next int
			next, err = unix.Openat(fd, "d", unix.O_RDONLY, 0)
			unix.Close(fd)
			fd = next
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
}
