package persist

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// CreateDraft creates a file with mode 0600 in a directory that gets another name when it
// is complete. The pattern is as for os.CreateTemp. CreateDraft first removes the drafts
// of processes that were killed: a draft is in use until its file is closed.
func CreateDraft(dir, pattern string) (*os.File, error) {
	list, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil, err
	}
	for _, path := range list {
		if err := removeDraft(path); err != nil {
			return nil, err
		}
	}
	for {
		draft, err := os.CreateTemp(dir, pattern)
		if err != nil {
			return nil, err
		}
		if locked := lockDraft(draft); errors.Is(locked, errors.ErrUnsupported) || locked == nil && hasName(draft) {
			return draft, nil
		}
		draft.Close() // another process took it for an old draft before it was locked
	}
}

// hasName reports whether the name of an open file still leads to it.
func hasName(file *os.File) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(file.Name())
	return err == nil && os.SameFile(opened, named)
}

// removeDraft removes a draft that no process uses.
func removeDraft(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil // another process has removed it, or it is another user's
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if lockDraft(file) != nil {
		return nil
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
