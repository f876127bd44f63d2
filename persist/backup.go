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

// minFreeBytes is what a draft leaves free on the disk for commits.
const minFreeBytes = 256 << 20

// Backup writes a backup while commits go on, and gives the number of its last
// event: that one and all before it are there, and none after it.
//
// A copy holds a read transaction. As long as it is open the file grows, and
// once it outgrows what bolt has mapped commits wait for the transaction's end.
// So nothing is written to a peer meanwhile, which may be slow or stuck: unless
// to is a file, the copy is first made beside the data file, in a file without
// a name, and refused when the disk has no room for it, for a store whose disk
// is full stops.
//
// Errors: journal.ErrClosed; QuotaExceeded when there is no room; those of to;
// otherwise what the file system says.
func (s *Store) Backup(ctx context.Context, to io.Writer) (seq uint64, err error) {
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

func isRegular(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular()
}

// copyViaTempFile copies by way of a draft.
func (s *Store) copyViaTempFile(ctx context.Context, to io.Writer) (seq uint64, err error) {
	s.backupMu.Lock() // two would fill the disk together
	defer s.backupMu.Unlock()
	var path string // bolt forgets it when it is closed
	err = s.view(ctx, func(tx *bolt.Tx) error {
		path = tx.DB().Path()
		return freeSpaceFor(path)
	})
	if err != nil {
		return 0, err
	}
	draft, err := os.CreateTemp(filepath.Dir(path), parts) // mode 0600
	if err != nil {
		return 0, err
	}
	defer draft.Close()
	if err := os.Remove(draft.Name()); err != nil { // a crash leaves nothing
		return 0, err
	}
	if seq, err = s.copyTo(ctx, draft); err != nil {
		return 0, err
	}
	if _, err := draft.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	_, err = io.Copy(ctxWriter{ctx, to}, draft)
	return seq, err
}

// freeSpaceFor refuses a copy that would fill the disk of the data file.
func freeSpaceFor(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	free, err := freeBytes(filepath.Dir(path))
	need := 2*info.Size() + minFreeBytes // whoever asked may write it to the same disk
	if err == nil && free < uint64(need) {
		err = errcode.New(errcode.QuotaExceeded, "the disk of %s has %d bytes free, and a copy takes up to %d for a while; make room, or end the process and take the backup then",
			path, free, need)
	}
	return err
}

// copyTo writes a backup to a file.
func (s *Store) copyTo(ctx context.Context, to io.Writer) (seq uint64, err error) {
	seal := &checksumWriter{to: ctxWriter{ctx, to}, sum: sha256.New()}
	err = s.view(ctx, func(tx *bolt.Tx) error {
		l, err := readLedger(tx)
		if err != nil {
			return err
		}
		seq = l.seq
		_, err = tx.WriteTo(seal)
		return cmp.Or(seal.fault, err)
	})
	if err != nil {
		return 0, err
	}
	return seq, seal.finish(seq)
}

// Verify reads the backup in the file at path completely, changes nothing, and
// gives the number of its last event.
//
// Errors: InvalidArguments when it is no backup; Conflict when a newer version
// made it; journal.ErrDamaged; otherwise what the file system says.
func Verify(ctx context.Context, path string) (seq uint64, err error) {
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

// checkCopy is Check for a file that nobody has open and that stays as it is.
func checkCopy(path string) error {
	if _, err := inspectFile(path); err != nil {
		return err
	}
	db, err := openBolt(path, &bolt.Options{Timeout: lockWait, ReadOnly: true})
	if err != nil {
		return openError(path, err)
	}
	s := &Store{db: db, tail: map[identity.AgentID][]uint64{}}
	err = guarded(func() error { return db.View(s.checkOnce) })
	return errors.Join(err, db.Close())
}

// checkOnce reads everything but the pages themselves.
func (s *Store) checkOnce(tx *bolt.Tx) error {
	l, err := readLedger(tx)
	if err != nil {
		return err
	}
	s.ledger = *l
	if err := s.gather(tx); err != nil {
		return err
	}
	faults := slices.Concat(checkFrames(tx), s.checkIndex(tx), checkRunnable(tx), checkEvents(tx))
	if err := errors.Join(faults...); err != nil && !errors.Is(err, journal.ErrDamaged) {
		return fmt.Errorf("%w: %w", err, journal.ErrDamaged)
	}
	return errors.Join(faults...)
}
