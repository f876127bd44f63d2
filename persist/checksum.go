package persist

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
)

// A backup is the file as it was between two commits, and behind it a seal of
// 64 bytes, so that one that was cut short or changed anywhere is never taken
// for a whole one: mark and version (15, 1), the last number given (8), the
// size of the file (8), and the SHA-256 of all before it (32).
const (
	checksumMagic = "rolecall backup"
	sealVersion   = 1
	sealSize      = 64
	sumSize       = sha256.Size
)

// ctxWriter is a writer until its context ends.
type ctxWriter struct {
	ctx context.Context
	to  io.Writer
}

// Write implements io.Writer.
func (l ctxWriter) Write(p []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	return l.to.Write(p)
}

// checksumWriter passes a data file on and puts the seal behind it.
type checksumWriter struct {
	to   io.Writer
	sum  hash.Hash
	size int64

	fault error // bolt gives its text alone
}

// Write implements io.Writer.
func (s *checksumWriter) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.sum.Write(p[:n]) // never fails
	s.size += int64(n)
	s.fault = err
	return n, err
}

func (s *checksumWriter) finish(seq uint64) error {
	head := append([]byte(checksumMagic), sealVersion)
	head = binary.BigEndian.AppendUint64(head, seq)
	head = binary.BigEndian.AppendUint64(head, uint64(s.size))
	s.sum.Write(head)
	_, err := s.to.Write(s.sum.Sum(head))
	return err
}

// verifyChecksum checks the seal of a backup, and gives the number of its last event
// and the size of the data file in it.
func verifyChecksum(ctx context.Context, file *os.File) (seq uint64, size int64, err error) {
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
	case !bytes.HasPrefix(seal, []byte(checksumMagic)):
		return 0, 0, unsealed(file)
	case seal[len(checksumMagic)] != sealVersion:
		return 0, 0, errcode.New(errcode.Conflict, "the backup has version %d, this rolecall knows %d; use the version that made it", seal[len(checksumMagic)], sealVersion)
	case number(seal[24:32]) != uint64(size):
		return 0, 0, fmt.Errorf("the backup holds %d bytes instead of %d: %w", size, number(seal[24:32]), journal.ErrDamaged)
	}
	sum := sha256.New()
	if _, err := io.Copy(ctxWriter{ctx, sum}, io.NewSectionReader(file, 0, size+sealSize-sumSize)); err != nil {
		return 0, 0, err
	}
	if !bytes.Equal(sum.Sum(nil), seal[sealSize-sumSize:]) {
		return 0, 0, fmt.Errorf("the backup was changed since it was made, its checksum differs: %w", journal.ErrDamaged)
	}
	return number(seal[16:24]), size, nil
}

// unsealed says what a file without a seal is.
func unsealed(file *os.File) error {
	head := make([]byte, 20)
	if _, err := file.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if little.Uint32(head[headSize:]) != boltMagic { // as in the first page of every file of bolt
		return errcode.New(errcode.InvalidArguments, "the file is no backup of rolecall")
	}
	return fmt.Errorf("the end of the backup is missing: it was cut short, or is a data file and no backup: %w", journal.ErrDamaged)
}
