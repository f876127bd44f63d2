package persist

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/rolecall/rolecall/journal"
)

// bbolt's pages have no checksum: where one is damaged it reads what is not
// there, or reads in circles. So before it sees a file, inspect follows every
// page as bbolt lays them out (its internal/common): each is used once or free,
// says its own number, holds what fits in it, and its keys stand in order
// between those of its neighbours. Values are not looked at: frames have
// checksums of their own.
//
// A page is 16 bytes (id 8, flags 2, count 2, overflow 4), then elements of 16
// bytes, then keys and values. Numbers are little endian, as on every machine
// bbolt is used on here.
const (
	headSize    = 16
	elementSize = 16
	minPage     = 512
	maxPage     = 64 << 10
	maxDepth    = 64 // of a tree; a million pages are four

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10
	flagBucket   = 0x01 // of a leaf's element: its value is a bucket

	noFreelist = 1<<64 - 1

	boltMagic   = 0xED0CDAED
	boltVersion = 2
)

var little = binary.LittleEndian

// scanResult is what a file says of itself, and what is in it.
type scanResult struct {
	schema uint64
	ledger *integrityRecord // as it was written; nil when there is none
	holds  bucketSums       // as they were counted
}

// pageScanner goes through one file.
type pageScanner struct {
	file  io.ReaderAt
	size  int    // of a page
	high  uint64 // the number of pages
	known []bool // pages that are used or free
	found scanResult

	scratch [maxDepth + 1][]byte // one page for each depth
}

// inspect goes through all pages of a file of the given length.
//
// Errors: ErrDamaged; Conflict when a newer version wrote it; otherwise what
// reading says.
func inspect(file io.ReaderAt, length int64) (*scanResult, error) {
	in := &pageScanner{file: file}
	m, err := in.meta(length)
	if err != nil {
		return nil, err
	}
	in.known = make([]bool, in.high)
	in.known[0], in.known[1] = true, true
	if err := in.root(m.root); err != nil {
		return nil, err
	}
	if m.freelist != noFreelist {
		if err := in.free(m.freelist); err != nil {
			return nil, err
		}
	}
	return &in.found, in.found.check()
}

func damaged(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, journal.ErrDamaged)...)
}

// page reads a page of a tree, once.
func (in *pageScanner) page(id uint64, depth int) (*page, error) {
	if depth > maxDepth {
		return nil, damaged("page %d is too deep", id)
	}
	if id >= in.high {
		return nil, damaged("there is no page %d", id)
	}
	if in.scratch[depth] == nil {
		in.scratch[depth] = make([]byte, in.size)
	}
	data := in.scratch[depth]
	if _, err := in.file.ReadAt(data, int64(id)*int64(in.size)); err != nil {
		return nil, cut(err)
	}
	p := in.parse(id, data)
	if got := little.Uint64(data); got != id {
		return nil, damaged("page %d says it is page %d", id, got)
	}
	for n := range p.overflow + 1 {
		if err := in.markSeen(id + n); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// markSeen notes that a page is in use, or free.
func (in *pageScanner) markSeen(id uint64) error {
	if id >= in.high {
		return damaged("there is no page %d", id)
	}
	if in.known[id] {
		return damaged("page %d is used twice", id)
	}
	in.known[id] = true
	return nil
}

// tree goes through the page id and everything below it.
func (in *pageScanner) tree(id uint64, b bounds, depth int, tell elementFunc) error {
	p, err := in.page(id, depth)
	if err != nil {
		return err
	}
	switch {
	case p.flags == flagLeaf && (p.count > 0 || depth == 0):
		return p.leaf(b, tell)
	case p.flags == flagBranch && p.count > 0:
		return p.branch(b, depth, tell)
	}
	return damaged("page %d is nothing known", id)
}

// free reads the list of free pages. With it every page is accounted for.
func (in *pageScanner) free(id uint64) error {
	p, err := in.page(id, 0)
	if err != nil {
		return err
	}
	n, at := uint64(p.count), uint64(headSize)
	if p.count == 0xFFFF { // more than fit in two bytes
		d, err := p.bytes(at, 8)
		if err != nil {
			return err
		}
		n, at = little.Uint64(d), at+8
	}
	if p.flags != flagFreelist || n > in.high {
		return damaged("page %d is no list of free pages", id)
	}
	ids, err := p.bytes(at, 8*n)
	if err != nil {
		return err
	}
	for d := range slices.Chunk(ids, 8) {
		if err := in.markSeen(little.Uint64(d)); err != nil {
			return err
		}
	}
	if lost := slices.Index(in.known, false); lost >= 0 {
		return damaged("page %d is neither used nor free", lost)
	}
	return nil
}

// root goes through the bucket that holds the buckets: persist first, which
// says how to read the others.
func (in *pageScanner) root(id uint64) error {
	list := map[string][]byte{}
	err := in.tree(id, bounds{}, 0, func(e element) error {
		value, err := e.value()
		if err == nil && (e.flags != flagBucket || len(value) < headSize) {
			err = damaged("%.64q is no bucket", e.key)
		}
		list[string(e.key)] = bytes.Clone(value)
		return err
	})
	if err != nil {
		return err
	}
	if err := in.bucket(bucketPersist, list, in.number); err != nil {
		return err
	}
	if in.found.schema > schema {
		return errNewerSchema(in.found.schema)
	}
	for i, b := range layout {
		if err := in.bucket(b.name, list, func(e element) error { in.found.holds[i].add(e.key); return nil }); err != nil {
			return err
		}
	}
	if len(list) > 0 {
		return damaged("it has a bucket that nobody knows")
	}
	return nil
}

// number notes what the bucket persist says.
func (in *pageScanner) number(e element) error {
	value, err := e.value()
	switch {
	case err != nil:
		return err
	case string(e.key) == "schema" && len(value) == 8:
		in.found.schema = number(value)
	case bytes.Equal(e.key, keyLedger):
		in.found.ledger, err = parseLedger(value)
	}
	return err
}

// bucket goes through one of the buckets in list and takes it from there. A
// small one stands whole in its value, behind the number of its first page
// (0) and one that is not used.
func (in *pageScanner) bucket(name []byte, list map[string][]byte, tell elementFunc) error {
	value, ok := list[string(name)]
	if !ok {
		return damaged("the bucket %s is gone", name)
	}
	delete(list, string(name))
	flat := func(e element) error {
		if e.flags != 0 {
			return damaged("bucket %s: %x is no value", name, e.key)
		}
		return tell(e)
	}
	if id := little.Uint64(value); id != 0 {
		return in.tree(id, bounds{}, 0, flat)
	}
	if len(value) < 2*headSize {
		return damaged("the bucket %s is cut short", name)
	}
	p := in.parse(0, value[headSize:])
	if p.flags != flagLeaf || p.overflow != 0 || little.Uint64(p.data) != 0 {
		return damaged("the bucket %s is nothing known", name)
	}
	return p.leaf(bounds{}, flat)
}
