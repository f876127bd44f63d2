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

// draftPattern matches the names of drafts: copies of a data file that are not complete, or not
// checked yet.
const draftPattern = FileName + "-*.part"

// RestoreBackup creates the data file of the directory dir from a backup. It creates the
// directory if it does not exist. The file gets its name after it is checked and on disk.
// So neither an error nor a crash leaves an incomplete data file. An error leaves no new
// directory.
//
// The error has the code Conflict if there is a data file already, which is not changed.
// It also returns the errors of VerifyBackup, those of the reader, and errors of the file system.
func RestoreBackup(ctx context.Context, from io.Reader, dir string) error {
	made, err := makeDir(dir)
	if err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if err = restoreIn(ctx, from, dir); err != nil {
		made.removeDirs()
	}
	return err
}

// restoreIn is RestoreBackup into an existing directory.
func restoreIn(ctx context.Context, from io.Reader, dir string) (err error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Lstat(path); err == nil {
		return errExists(path)
	}
	part, err := CreateDraft(dir, draftPattern)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(part.Name()), part.Close()) }()
	if err := copyDataFile(ctx, part, from); err != nil {
		return err
	}
	if err := checkCopy(part.Name()); err != nil {
		return err
	}
	if err := publishFile(part.Name(), path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return errExists(path)
}

func errExists(path string) error {
	return errcode.New(errcode.Conflict, "%s already exists and was not changed; move it away, or restore into another data directory", path)
}

// copyDataFile writes the data file of a backup to disk, without the trailer.
func copyDataFile(ctx context.Context, file *os.File, from io.Reader) error {
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
