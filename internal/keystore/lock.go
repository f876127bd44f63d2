package keystore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/rolecall/rolecall/errcode"
)

// staleLock is the age from which a lock file is left behind by a process that ended.
const staleLock = time.Minute

// lock excludes other processes that change the file. Errors: Conflict if one does so now.
func (s *Store) lock() (unlock func(), err error) {
	path := s.path + ".lock"
	if info, err := os.Stat(path); err == nil && s.now().Sub(info.ModTime()) > staleLock {
		_ = os.Remove(path) // another process may have removed it
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, errcode.New(errcode.Conflict, "change the keys: another process does so; try again in a moment (%s is its lock)", path)
	case err != nil:
		return nil, fmt.Errorf("change the keys: %w", err)
	}
	return func() { _ = errors.Join(file.Close(), os.Remove(path)) }, nil
}
