package persist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rolecall/rolecall/errcode"
)

// parts are the names of backups that Restore has not yet checked.
const parts = FileName + "-*.part"

// Restore puts a backup into the data directory dir, which is made when it is
// absent and must have no data file. The file gets its name when it is checked
// and on disk: what goes wrong, also a crash, leaves no data file.
//
// Errors: Conflict when there is a data file, which stays as it is; those of
// Verify and of from.
func Restore(ctx context.Context, from io.Reader, dir string) (err error) {
	if err := makeFolder(dir); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	path := filepath.Join(dir, FileName)
	if _, err := os.Lstat(path); err == nil {
		return isNonEmpty(path)
	}
	if err := removeParts(dir); err != nil { // of a restore that was killed
		return err
	}
	part, err := os.CreateTemp(dir, parts) // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(part.Name())) }()
	if err := errors.Join(unpackBackup(ctx, part, from), part.Close()); err != nil {
		return err
	}
	if err := checkCopy(part.Name()); err != nil {
		return err
	}
	if err := settle(part.Name(), path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return isNonEmpty(path)
}

func isNonEmpty(path string) error {
	return errcode.New(errcode.Conflict, "%s is there already and stays as it is; move it away, or restore into another data directory", path)
}

func removeParts(dir string) error {
	list, err := filepath.Glob(filepath.Join(dir, parts))
	for _, path := range list {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// unpackBackup writes the data file of a backup to disk, without the seal.
func unpackBackup(ctx context.Context, file *os.File, from io.Reader) error {
	if _, err := io.Copy(ctxWriter{ctx, file}, from); err != nil {
		return err
	}
	_, size, err := verifyChecksum(ctx, file)
	if err != nil {
		return err
	}
	if err := file.Truncate(size); err != nil {
		return err
	}
	return file.Sync()
}
