package persist

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// A backup is the file as it was between two commits, and behind it a seal of
// 64 bytes, so that one that was cut short or changed anywhere is never taken
// for a whole one: mark and version (15, 1), the last number given (8), the
// size of the file (8), and the SHA-256 of all before it (32).
const (
	sealMark    = "rolecall backup"
	sealVersion = 1
	sealSize    = 64
	sumSize     = sha256.Size
)

// parts are the names of backups that Restore has not yet checked.
const parts = FileName + "-*.part"

// reserve is what a draft leaves free on the disk for commits.
const reserve = 256 << 20

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
		seq, err = s.copyAround(ctx, to)
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

// copyAround copies by way of a draft.
func (s *Store) copyAround(ctx context.Context, to io.Writer) (seq uint64, err error) {
	var path string // bolt forgets it when it is closed
	err = s.view(ctx, func(tx *bolt.Tx) error {
		path = tx.DB().Path()
		return roomBeside(path)
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
	_, err = io.Copy(lasting{ctx, to}, draft)
	return seq, err
}

// roomBeside refuses a copy that would fill the disk of the data file.
func roomBeside(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	free, err := freeBytes(filepath.Dir(path))
	if err == nil && free < uint64(info.Size())+reserve {
		err = errcode.New(errcode.QuotaExceeded, "the disk of %s has %d bytes free, and a copy needs %d for a while; make room, or end the process and take the backup then",
			path, free, info.Size()+reserve)
	}
	return err
}

// copyTo writes a backup to a file.
func (s *Store) copyTo(ctx context.Context, to io.Writer) (seq uint64, err error) {
	seal := &sealer{to: lasting{ctx, to}, sum: sha256.New()}
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

// lasting is a writer until its context ends.
type lasting struct {
	ctx context.Context
	to  io.Writer
}

// Write implements io.Writer.
func (l lasting) Write(p []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	return l.to.Write(p)
}

// sealer passes a data file on and puts the seal behind it.
type sealer struct {
	to   io.Writer
	sum  digest
	size int64

	fault error // bolt gives its text alone
}

// digest is what is used of a hash.Hash.
type digest interface {
	io.Writer
	Sum(behind []byte) []byte
}

// Write implements io.Writer.
func (s *sealer) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.sum.Write(p[:n]) // never fails
	s.size += int64(n)
	s.fault = err
	return n, err
}

func (s *sealer) finish(seq uint64) error {
	head := append([]byte(sealMark), sealVersion)
	head = binary.BigEndian.AppendUint64(head, seq)
	head = binary.BigEndian.AppendUint64(head, uint64(s.size))
	s.sum.Write(head)
	_, err := s.to.Write(s.sum.Sum(head))
	return err
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
	seq, _, err = unseal(ctx, file)
	if err != nil {
		return 0, err
	}
	return seq, checkCopy(path)
}

// unseal checks the seal of a backup, and gives the number of its last event
// and the size of the data file in it.
func unseal(ctx context.Context, file *os.File) (seq uint64, size int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, 0, err
	}
	size = info.Size() - sealSize
	seal := make([]byte, sealSize)
	if size > 0 {
		if _, err := file.ReadAt(seal, size); err != nil {
			return 0, 0, err
		}
	}
	switch {
	case info.Size() == 0:
		return 0, 0, errcode.New(errcode.InvalidArguments, "the file is empty")
	case !bytes.HasPrefix(seal, []byte(sealMark)):
		return 0, 0, unsealed(file)
	case seal[len(sealMark)] != sealVersion:
		return 0, 0, errcode.New(errcode.Conflict, "the backup has version %d, this rolecall knows %d; use the version that made it", seal[len(sealMark)], sealVersion)
	case number(seal[24:32]) != uint64(size):
		return 0, 0, fmt.Errorf("the backup holds %d bytes instead of %d: %w", size, number(seal[24:32]), journal.ErrDamaged)
	}
	sum := sha256.New()
	if _, err := io.Copy(lasting{ctx, sum}, io.NewSectionReader(file, 0, size+sealSize-sumSize)); err != nil {
		return 0, 0, err
	}
	if !bytes.Equal(sum.Sum(nil), seal[sealSize-sumSize:]) {
		return 0, 0, fmt.Errorf("the backup was changed since it was made, its checksum differs: %w", journal.ErrDamaged)
	}
	return number(seal[16:24]), size, nil
}

// boltMagic stands in the first page of every file of bolt.
var boltMagic = little.AppendUint32(nil, 0xED0CDAED)

// unsealed says what a file without a seal is.
func unsealed(file *os.File) error {
	head := make([]byte, 20)
	if _, err := file.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if magic := head[16:]; !bytes.Equal(magic, boltMagic) {
		return errcode.New(errcode.InvalidArguments, "the file is no backup of rolecall")
	}
	return fmt.Errorf("the end of the backup is missing: it was cut short, or is a data file and no backup: %w", journal.ErrDamaged)
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
	if len(faults) > 0 {
		return fmt.Errorf("%w: %w", journal.ErrDamaged, errors.Join(faults...))
	}
	return nil
}

// Restore puts a backup into the data directory dir, which is made when it is
// absent and must have no data file. The file gets its name when it is checked
// and on disk: what goes wrong, also a crash, leaves no data file.
//
// Errors: Conflict when there is a data file, which stays as it is; those of
// Verify and of from.
func Restore(ctx context.Context, from io.Reader, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	path := filepath.Join(dir, FileName)
	if _, err := os.Lstat(path); err == nil {
		return occupied(path)
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
	return settle(part.Name(), path)
}

func occupied(path string) error {
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
	if _, err := io.Copy(lasting{ctx, file}, from); err != nil {
		return err
	}
	_, size, err := unseal(ctx, file)
	if err != nil {
		return err
	}
	if err := file.Truncate(size); err != nil {
		return err
	}
	return file.Sync()
}

// settle gives a file its name. A rename would overwrite a data file that
// somebody made meanwhile; a link does not.
func settle(part, path string) error {
	err := os.Link(part, path)
	if errors.Is(err, fs.ErrExist) {
		return occupied(path)
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}
