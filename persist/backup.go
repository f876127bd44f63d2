package persist

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// minFreeBytes is the disk space that a temporary copy must leave for commits.
const minFreeBytes = 256 << 20

// WriteBackup writes a backup to the given writer while commits continue. It returns a sequence
// number: the backup has exactly the events up to this number.
//
// Copying holds a read transaction. Meanwhile the file grows, and once it outgrows the
// memory map of bbolt, commits wait for the end of the transaction. A slow writer must not
// delay them. Unless to is a regular file, WriteBackup therefore makes the copy in an unnamed
// temporary file in the data directory first. It returns an error with the code
// QuotaExceeded if the disk has no space for that, because a store stops when its disk is
// full.
//
// Other errors are journal.ErrClosed, and errors of to and of the file system.
func (s *Store) WriteBackup(ctx context.Context, to io.Writer) (seq uint64, err error) {
	if file, ok := to.(*os.File); ok && isRegular(file) {
		seq, err = s.copyTo(ctx, file)
	} else {
		seq, err = s.copyViaTempFile(ctx, to)
	}
	if err != nil {
		return 0, fmt.Errorf("back up the data file: %w", err)
	}
	return seq, nil
}

// isRegular reports whether file is a regular file, not a pipe or a device.
func isRegular(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular()
}

// copyViaTempFile writes a backup through a temporary file.
func (s *Store) copyViaTempFile(ctx context.Context, to io.Writer) (seq uint64, err error) {
	s.backupMu.Lock() // two copies at once could fill the disk
	defer s.backupMu.Unlock()
	var path string // a closed bbolt file has no path
	err = s.view(ctx, func(tx *bolt.Tx) error {
		path = tx.DB().Path()
		return checkFreeSpace(path)
	})
	if err != nil {
		return 0, err
	}
	temp, err := CreateDraft(filepath.Dir(path), draftPattern)
	if err != nil {
		return 0, err
	}
	defer temp.Close()
	if err := os.Remove(temp.Name()); err != nil { // a crash leaves no file now
		return 0, err
	}
	if seq, err = s.copyTo(ctx, temp); err != nil {
		return 0, err
	}
	if _, err := temp.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	_, err = io.Copy(ctxWriter{ctx, to}, temp)
	return seq, err
}

// checkFreeSpace returns an error if a copy could fill the disk of the data file.
func checkFreeSpace(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	space, err := diskSpace(filepath.Dir(path))
	if errors.Is(err, errors.ErrUnsupported) { // a copy without enough space fails
		return nil
	}
	need := 2*info.Size() + minFreeBytes // the client may write its copy to the same disk
	if err == nil && space.Free < uint64(need) {
		err = errcode.New(errcode.QuotaExceeded, "the disk of %s has %d bytes free, and a backup needs up to %d temporarily; free some space, or stop the process and make the backup then",
			path, space.Free, need)
	}
	return err
}

// copyTo writes the data file and its trailer to a file.
func (s *Store) copyTo(ctx context.Context, to io.Writer) (seq uint64, err error) {
	w := &checksumWriter{to: ctxWriter{ctx, to}, sum: sha256.New()}
	err = s.view(ctx, func(tx *bolt.Tx) error {
		r, err := readIntegrity(tx)
		if err != nil {
			return err
		}
		seq = r.seq
		_, err = tx.WriteTo(w)
		return cmp.Or(w.err, err)
	})
	if err != nil {
		return 0, err
	}
	return seq, w.writeTrailer(seq)
}

// VerifyBackup checks the backup in a file completely, without changing it. It returns the
// sequence number up to which the backup has events.
//
// The error has the code InvalidArguments if the file is not a backup, and Conflict if a
// newer version made it. It is journal.ErrDamaged if the backup is incomplete or damaged.
func VerifyBackup(ctx context.Context, path string) (seq uint64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	seq, _, err = verifyChecksum(ctx, file)
	if err != nil {
		return 0, err
	}
	return seq, checkCopy(path)
}

// checkCopy is CheckIntegrity for a file that no process has open. It does not change the file.
func checkCopy(path string) error {
	if _, err := inspectFile(path); err != nil {
		return err
	}
	db, err := openBolt(path, &bolt.Options{Timeout: lockWait, ReadOnly: true})
	if err != nil {
		return openError(path, err)
	}
	s := &Store{db: db, tail: map[identity.AgentID][]uint64{}}
	err = catchPageFault(func() error { return db.View(s.checkEntries) })
	return errors.Join(err, db.Close())
}

// checkEntries checks all entries of a file. The pages have been inspected before.
func (s *Store) checkEntries(tx *bolt.Tx) error {
	r, err := readIntegrity(tx)
	if err != nil {
		return err
	}
	s.integrity = *r
	if err := s.loadTail(tx); err != nil {
		return err
	}
	errs := slices.Concat(checkFrames(tx), s.checkIndex(tx), checkRunnable(tx), checkEvents(tx))
	if err := errors.Join(errs...); err != nil && !errors.Is(err, journal.ErrDamaged) {
		return fmt.Errorf("%w: %w", err, journal.ErrDamaged)
	}
	return errors.Join(errs...)
}
