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

// A backup is the data file as it was between two commits, followed by a trailer of 64
// bytes. The trailer reveals backups that were cut short or changed:
//
//	magic     15 bytes   "rolecall backup"
//	version    1 byte    1
//	seq        8 bytes   the last sequence number, big endian
//	size       8 bytes   of the data file, big endian
//	sum       32 bytes   SHA-256 of everything before it
const (
	checksumMagic  = "rolecall backup"
	trailerVersion = 1
	trailerSize    = 64
	sumSize        = sha256.Size
)

// ctxWriter is an io.Writer that fails once its context is done.
type ctxWriter struct {
	ctx context.Context
	to  io.Writer
}

// Write implements io.Writer.
func (w ctxWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.to.Write(p)
}

// checksumWriter writes a data file and then its trailer.
type checksumWriter struct {
	to   io.Writer
	sum  hash.Hash
	size int64

	err error // of the last Write; bbolt returns only its text
}

// Write implements io.Writer.
func (w *checksumWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.sum.Write(p[:n]) // never fails
	w.size += int64(n)
	w.err = err
	return n, err
}

// writeTrailer writes the trailer.
func (w *checksumWriter) writeTrailer(seq uint64) error {
	head := append([]byte(checksumMagic), trailerVersion)
	head = binary.BigEndian.AppendUint64(head, seq)
	head = binary.BigEndian.AppendUint64(head, uint64(w.size))
	w.sum.Write(head)
	_, err := w.to.Write(w.sum.Sum(head))
	return err
}

// verifyChecksum checks the trailer of a backup. It returns the sequence number in it and
// the size of the data file.
func verifyChecksum(ctx context.Context, file *os.File) (seq uint64, size int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, 0, err
	}
	size = info.Size() - trailerSize
	trailer := make([]byte, trailerSize)
	if size > 0 {
		if _, err := file.ReadAt(trailer, size); err != nil {
			return 0, 0, err
		}
	}
	switch {
	case info.Size() == 0:
		return 0, 0, errcode.New(errcode.InvalidArguments, "the file is empty")
	case !bytes.HasPrefix(trailer, []byte(checksumMagic)):
		return 0, 0, errNoTrailer(file)
	case trailer[len(checksumMagic)] != trailerVersion:
		return 0, 0, errcode.New(errcode.Conflict, "the backup has version %d, this version of rolecall supports %d; use the version that made it", trailer[len(checksumMagic)], trailerVersion)
	case decodeNumber(trailer[24:32]) != uint64(size):
		return 0, 0, fmt.Errorf("the backup has %d bytes instead of %d: %w", size, decodeNumber(trailer[24:32]), journal.ErrDamaged)
	}
	sum := sha256.New()
	if _, err := io.Copy(ctxWriter{ctx, sum}, io.NewSectionReader(file, 0, size+trailerSize-sumSize)); err != nil {
		return 0, 0, err
	}
	if !bytes.Equal(sum.Sum(nil), trailer[trailerSize-sumSize:]) {
		return 0, 0, fmt.Errorf("the backup was changed after it was made, its checksum differs: %w", journal.ErrDamaged)
	}
	return decodeNumber(trailer[16:24]), size, nil
}

// errNoTrailer returns the error for a file without a trailer: it is not a backup, or an
// incomplete one.
func errNoTrailer(file *os.File) error {
	head := make([]byte, 20)
	if _, err := file.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if little.Uint32(head[headSize:]) != boltMagic { // every bbolt file has it in its first page
		return errcode.New(errcode.InvalidArguments, "the file is not a rolecall backup")
	}
	return fmt.Errorf("the end of the backup is missing: it was cut short, or is a data file and not a backup: %w", journal.ErrDamaged)
}
