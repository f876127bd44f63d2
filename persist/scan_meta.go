package persist

import (
	"errors"
	"hash/fnv"
	"io"

	"github.com/rolecall/rolecall/errcode"
)

// meta is the content of a meta page: where the trees begin. There are two meta pages, which
// transactions write in turn.
type meta struct{ pageSize, root, freelist, pageCount, txID uint64 }

// readMeta reads both meta pages and returns the newer one. It sets the size and number of pages.
// It returns an error if one page is damaged, or if the pages are not from successive
// transactions. bbolt would use the other page, and silently lose the last commit if that page
// is older. A power cut damages neither, because the bytes that count lie in one sector, which
// is written completely or not at all.
func (sc *pageScanner) readMeta(length int64) (meta, error) {
	first, err := sc.readMetaAt(0)
	if err != nil {
		return meta{}, err
	}
	sc.pageSize = int(first.pageSize)
	second, err := sc.readMetaAt(int64(sc.pageSize))
	if err != nil {
		return meta{}, err
	}
	if !txIDsFit(first.txID, second.txID) {
		return meta{}, damagedError("its meta pages are of commits %d and %d, which do not follow one another: a page of another time is in it", first.txID, second.txID)
	}
	if second.txID > first.txID {
		first = second
	}
	sc.pageCount = first.pageCount
	switch most := uint64(length) / first.pageSize; {
	case sc.pageCount < 3:
		return meta{}, damagedError("its meta page names only %d pages", sc.pageCount)
	case sc.pageCount > most:
		return meta{}, damagedError("it has %d of %d bytes", length, sc.pageCount*first.pageSize)
	}
	return first, nil
}

// txIDsFit reports whether two transactions can have written the two meta pages. bbolt
// writes even numbers to the first page and odd ones to the second, so the numbers differ
// by one. Its copy (bbolt.Tx.WriteTo) has the higher number in the first page, even if that is
// odd. After the next commit to such a copy the second page has an even number, and the
// first is two ahead.
func txIDsFit(first, second uint64) bool {
	return first+1 == second || second+1 == first || second%2 == 0 && second+2 == first
}

// readMetaAt reads the meta page at an offset.
func (sc *pageScanner) readMetaAt(at int64) (meta, error) {
	var b [headSize + 64]byte
	if _, err := sc.file.ReadAt(b[:], at); err != nil {
		return meta{}, truncatedError(err)
	}
	d := b[headSize:]
	sum := fnv.New64a()
	sum.Write(d[:56])
	m := meta{pageSize: uint64(little.Uint32(d[8:])), root: little.Uint64(d[16:]), freelist: little.Uint64(d[32:]), pageCount: little.Uint64(d[40:]), txID: little.Uint64(d[48:])}
	switch {
	case little.Uint32(d) != boltMagic:
		return m, damagedError("it is not a data file, or one of its first two pages is damaged")
	case little.Uint64(d[56:]) != sum.Sum64(), m.pageSize < minPage, m.pageSize > maxPage:
		return m, damagedError("a meta page is damaged, so the last commit is unknown")
	case little.Uint32(d[4:]) != boltVersion:
		return m, errcode.New(errcode.Conflict, "its pages have format %d, this version of rolecall supports %d; use the version that wrote it", little.Uint32(d[4:]), boltVersion)
	}
	return m, nil
}

// truncatedError replaces io.EOF by an error that says that the file is too short.
func truncatedError(err error) error {
	if errors.Is(err, io.EOF) {
		return damagedError("it was cut short")
	}
	return err
}
