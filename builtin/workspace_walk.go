package builtin

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

// maxDepth is how many folders may stand inside each other: nothing is written
// deeper, and no walk goes deeper.
const maxDepth = 100

// walker looks at what is in a folder and in the folders inside it, sorted,
// following no symlinks but the folder it begins with.
type walker struct {
	ctx    context.Context
	root   *os.Root
	left   int64 // names it may still look at
	strict bool  // what cannot be looked at is an error, not left out
	cut    bool  // there is more: it was too much, or too deep
	visit  func(name string, info fs.FileInfo) error
}

// walk visits everything below dir by its name in the workspace. What vanishes
// meanwhile is left out. visit steers as a fs.WalkDirFunc does.
func (w *walker) walk(dir string) error {
	if err := directory(w.root, dir); err != nil {
		return err
	}
	if err := w.folder(dir, 1); !errors.Is(err, fs.SkipAll) {
		return err
	}
	return nil
}

func (w *walker) folder(dir string, depth int) error {
	names, err := w.names(dir)
	if err != nil {
		return err
	}
	for _, base := range names {
		if err := w.look(path.Join(dir, base), depth); err != nil {
			return err
		}
	}
	return nil
}

// look visits one name, and what is in it.
func (w *walker) look(name string, depth int) error {
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
		w.cut = true
		return nil
	}
	if err = w.folder(name, depth+1); err != nil && w.strict && errors.Is(err, fs.ErrPermission) && !ownedByUs(info) {
		return nil // nobody here made it, or can
	}
	return w.ignoreVanished(err)
}

// names lists a folder, sorted. A folder of more names than may be looked at
// is cut.
func (w *walker) names(dir string) ([]string, error) {
	// By now dir may be something else, even a pipe: do not wait on it.
	file, err := w.root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var names []string
	for {
		part, err := file.Readdirnames(1000)
		names = append(names, part[:min(int64(len(part)), w.left)]...)
		if int64(len(part)) > w.left {
			w.cut = true
		}
		w.left = max(0, w.left-int64(len(part)))
		switch {
		case errors.Is(err, io.EOF) || w.cut:
			slices.Sort(names)
			return names, nil
		case err != nil:
			return nil, err
		case w.ctx.Err() != nil:
			return nil, w.ctx.Err()
		}
	}
}

// ignoreVanished passes by what a walk leaves out: what has vanished or become
// something else meanwhile, and, unless it has to be exact, what is closed.
func (w *walker) ignoreVanished(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, escape(w.root)):
		return nil
	case errors.Is(err, fs.ErrPermission) && !w.strict:
		return nil
	}
	return err
}

func directory(root *os.Root, name string) error {
	info, err := root.Stat(name)
	if err == nil && !info.IsDir() {
		return syscall.ENOTDIR
	}
	return err
}

// below gives a name in the workspace relative to the folder dir.
func below(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}
