package persist

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rolecall/rolecall/journal"
)

// stopIfMoved stops the store if the name of the data file does not lead to the open file
// any more. Then the file was removed or replaced, and all further commits would be lost
// with it. The committer calls it, so nothing is committed meanwhile.
func (s *Store) stopIfMoved() error {
	if err := s.stopReason(); err != nil {
		return err
	}
	path := s.db.Path()
	switch now, err := os.Stat(path); {
	case err == nil && os.SameFile(now, s.file):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
		return nil // it is unknown what the name leads to
	}
	return s.stopWith(s.rescue(path))
}

// rescue saves the open data file under another name, and returns the reason why the store
// stops.
func (s *Store) rescue(path string) error {
	saved, seq, err := s.saveBeside(path)
	if err != nil {
		return fmt.Errorf("%s was removed or replaced while it was open, and the store has stopped (%w); it could not be saved: %w", path, journal.ErrClosed, err)
	}
	return fmt.Errorf("%s was removed or replaced while it was open, and the store has stopped (%w): everything up to event %d is saved in %s; move away what is at %s, then restore it (rolecall restore %s) and resume the task",
		path, journal.ErrClosed, seq, saved, path, saved)
}

// saveBeside writes a backup of the open data file into its directory, which it creates if
// that was removed too.
func (s *Store) saveBeside(path string) (saved string, seq uint64, err error) {
	dir := filepath.Dir(path)
	if _, err := makeDir(dir); err != nil {
		return "", 0, err
	}
	part, err := CreateDraft(dir, draftPattern)
	if err != nil {
		return "", 0, err
	}
	defer os.Remove(part.Name())
	seq, err = s.copyTo(context.Background(), part)
	if err := errors.Join(err, part.Sync(), part.Close()); err != nil {
		return "", 0, err
	}
	saved = path + ".saved-" + time.Now().UTC().Format("20060102T150405.000Z")
	return saved, seq, publishFile(part.Name(), saved)
}
