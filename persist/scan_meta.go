package persist

import (
	"errors"
	"hash/fnv"
	"io"

	"github.com/rolecall/rolecall/errcode"
)

// meta is what the first two pages say: where everything begins.
type meta struct{ page, root, freelist, high, number uint64 }

// meta reads both of them and gives the newer one. bbolt would take the older
// when the newer is damaged, and lose the last commit. Each fits in a sector,
// which is written whole or not at all, so that a power cut damages none.
func (in *pageScanner) meta(length int64) (meta, error) {
	first, err := in.metaAt(0)
	if err != nil {
		return meta{}, err
	}
	in.size = int(first.page)
	second, err := in.metaAt(int64(in.size))
	if err != nil {
		return meta{}, err
	}
	if second.number > first.number {
		first = second
	}
	in.high = first.high
	if most := uint64(length) / first.page; in.high > most || in.high < 3 {
		return meta{}, damaged("it has %d bytes of %d", length, in.high*first.page)
	}
	return first, nil
}

func (in *pageScanner) metaAt(at int64) (meta, error) {
	var b [headSize + 64]byte
	if _, err := in.file.ReadAt(b[:], at); err != nil {
		return meta{}, cut(err)
	}
	d := b[headSize:]
	sum := fnv.New64a()
	sum.Write(d[:56])
	m := meta{page: uint64(little.Uint32(d[8:])), root: little.Uint64(d[16:]), freelist: little.Uint64(d[32:]), high: little.Uint64(d[40:]), number: little.Uint64(d[48:])}
	switch {
	case little.Uint32(d) != boltMagic:
		return m, damaged("it is no data file, or its beginning is lost")
	case little.Uint64(d[56:]) != sum.Sum64(), m.page < minPage, m.page > maxPage:
		return m, damaged("what it says of the last commit is lost")
	case little.Uint32(d[4:]) != boltVersion:
		return m, errcode.New(errcode.Conflict, "its pages have format %d, this rolecall knows %d; use the version that wrote it", little.Uint32(d[4:]), boltVersion)
	}
	return m, nil
}

// cut says that a file ends too early.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return damaged("it was cut short")
	}
	return err
}
