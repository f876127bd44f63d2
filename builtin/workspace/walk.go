package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// maxDepth is the maximum nesting of folders, for writes and for walks.
const maxDepth = 100

// walker visits the entries of a folder and its subfolders in sorted order. It
// follows no symlinks except for the folder it starts with.
type walker struct {
	ctx       context.Context
	root      *os.Root
	budget    int64 // number of names that may still be visited
	strict    bool  // unreadable entries are an error; otherwise they are skipped
	truncated bool  // entries were skipped: there were too many, or they were nested too deep
	visit     func(name string, info fs.FileInfo) error
}

// walk calls visit for everything below dir, with the name relative to the
// workspace. Entries that vanish meanwhile are skipped. The error of visit has
// the same meaning as the error of a fs.WalkDirFunc.
func (w *walker) walk(dir string) error {
	if err := checkDirectory(w.root, dir); err != nil {
		return err
	}
	if err := w.walkDir(dir, 1); !errors.Is(err, fs.SkipAll) {
		return err
	}
	return nil
}

// walkDir visits the contents of one folder.
func (w *walker) walkDir(dir string, depth int) error {
	names, err := w.readNames(dir)
	if err != nil {
		return err
	}
	for _, base := range names {
		if err := w.walkEntry(path.Join(dir, base), depth); err != nil {
			return err
		}
	}
	return nil
}

// walkEntry visits one entry and, if it is a folder, its contents.
func (w *walker) walkEntry(name string, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	info, err := w.root.Lstat(name)
	if err != nil {
		return w.ignoreVanished(err)
	}
	err = w.visit(name, info)
	switch {
	case errors.Is(err, fs.SkipDir):
		return nil
	case err != nil || !info.IsDir():
		return err
	case depth == maxDepth:
		w.truncated = true
		return nil
	}
	if err = w.walkDir(name, depth+1); err != nil && w.strict && errors.Is(err, fs.ErrPermission) && !ownedByProcess(info) {
		return nil // tools and programs run as this user and cannot have created it
	}
	return w.ignoreVanished(err)
}

// readNames returns the sorted names in a folder, at most budget of them.
func (w *walker) readNames(dir string) ([]string, error) {
	// dir may have been replaced meanwhile, even by a pipe: open it without
	// blocking.
	file, err := w.root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var names []string
	for {
		part, err := file.Readdirnames(1000)
		names = append(names, part[:min(int64(len(part)), w.budget)]...)
		if int64(len(part)) > w.budget {
			w.truncated = true
		}
		w.budget = max(0, w.budget-int64(len(part)))
		switch {
		case errors.Is(err, io.EOF) || w.truncated:
			slices.Sort(names)
			return names, nil
		case err != nil:
			return nil, err
		case w.ctx.Err() != nil:
			return nil, w.ctx.Err()
		}
	}
}

// ignoreVanished returns nil for errors of entries that a walk skips. These are entries that
// vanished or changed their type meanwhile and, unless strict, unreadable entries.
func (w *walker) ignoreVanished(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, rootEscapeError(w.root)):
		return nil
	case errors.Is(err, fs.ErrPermission) && !w.strict:
		return nil
	}
	return err
}

// checkDirectory returns an error if name is not a folder.
func checkDirectory(root *os.Root, name string) error {
	info, err := root.Stat(name)
	if err == nil && !info.IsDir() {
		return syscall.ENOTDIR
	}
	return err
}

// relativeTo returns a name in the workspace relative to the folder dir.
func relativeTo(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}
