package persist

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/rolecall/rolecall/journal"
)

// The pages of bbolt have no checksum. If one is damaged, bbolt may read beyond it or loop
// forever. Therefore inspect checks all pages before bbolt reads the file. Each page must
// be used once or be free, have its own number, and contain what it refers to. Its keys
// must be in order and between the keys of its neighbors. Values are not checked here:
// frames have checksums (docs/decisions/0011-pages-are-followed-before-they-are-read.md).
//
// The format is defined in bbolt's internal/common. A page is a head of 16 bytes (id 8,
// flags 2, count 2, overflow 4), then elements of 16 bytes, then keys and values. Numbers
// are little endian.
const (
	headSize    = 16
	elementSize = 16
	minPage     = 512
	maxPage     = 64 << 10
	maxDepth    = 64 // of a tree; a million pages have a depth of four

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10
	flagBucket   = 0x01 // of an element of a leaf: its value is a bucket

	noFreelist = 1<<64 - 1

	boltMagic   = 0xED0CDAED
	boltVersion = 2
)

var little = binary.LittleEndian

// scanResult is what a scan has found in a file.
type scanResult struct {
	schema    uint64
	tx        uint64           // the number of the last transaction
	integrity *integrityRecord // as stored; nil if there is none
	sums      bucketSums       // as counted
	keySums   bucketSums       // sums of keys alone, for schemas before schemaContents
}

// pageScanner scans one file.
type pageScanner struct {
	file      io.ReaderAt
	pageSize  int // in bytes
	pageCount uint64
	seen      []bool // by page number: whether it was found in use or free
	result    scanResult

	buffers [maxDepth + 1][]byte // one page for each depth, reused
}

// inspect scans all pages of a file of the given length. The error is ErrDamaged, or has the
// code Conflict if a newer version wrote the file, or is an error of reading.
func inspect(file io.ReaderAt, length int64) (*scanResult, error) {
	sc := &pageScanner{file: file}
	m, err := sc.readMeta(length)
	if err != nil {
		return nil, err
	}
	sc.result.tx = m.txID
	sc.seen = make([]bool, sc.pageCount)
	sc.seen[0], sc.seen[1] = true, true
	if err := sc.scanRootBucket(m.root); err != nil {
		return nil, err
	}
	if m.freelist != noFreelist {
		if err := sc.scanFreelist(m.freelist); err != nil {
			return nil, err
		}
	}
	return &sc.result, sc.result.check()
}

// damagedError returns an error that is journal.ErrDamaged.
func damagedError(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, journal.ErrDamaged)...)
}

// readPage reads a page of a tree at the given depth and marks it as seen. The page is valid
// until the next page of this depth is read.
func (sc *pageScanner) readPage(id uint64, depth int) (*page, error) {
	if depth > maxDepth {
		return nil, damagedError("page %d is nested too deep", id)
	}
	if id >= sc.pageCount {
		return nil, damagedError("page %d does not exist", id)
	}
	if sc.buffers[depth] == nil {
		sc.buffers[depth] = make([]byte, sc.pageSize)
	}
	data := sc.buffers[depth]
	if _, err := sc.file.ReadAt(data, int64(id)*int64(sc.pageSize)); err != nil {
		return nil, truncatedError(err)
	}
	p := sc.newPage(id, data)
	if got := little.Uint64(data); got != id {
		return nil, damagedError("page %d has the number %d", id, got)
	}
	for n := range p.overflow + 1 {
		if err := sc.markSeen(id + n); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// markSeen marks a page as used or free. It returns an error if it is marked already.
func (sc *pageScanner) markSeen(id uint64) error {
	if id >= sc.pageCount {
		return damagedError("page %d does not exist", id)
	}
	if sc.seen[id] {
		return damagedError("page %d is used twice", id)
	}
	sc.seen[id] = true
	return nil
}

// scanTree scans the page id and all pages below it. Their keys must be in b. It calls visit for
// each element of a leaf.
func (sc *pageScanner) scanTree(id uint64, b keyRange, depth int, visit elementFunc) error {
	p, err := sc.readPage(id, depth)
	if err != nil {
		return err
	}
	switch {
	case p.flags == flagLeaf && (p.count > 0 || depth == 0):
		return p.scanLeaf(b, visit)
	case p.flags == flagBranch && p.count > 0:
		return p.scanBranch(b, depth, visit)
	}
	return damagedError("page %d has an unknown type", id)
}

// scanFreelist scans the list of free pages. After it all pages must have been seen.
func (sc *pageScanner) scanFreelist(id uint64) error {
	p, err := sc.readPage(id, 0)
	if err != nil {
		return err
	}
	n, at := uint64(p.count), uint64(headSize)
	if p.count == 0xFFFF { // the number does not fit in two bytes and is the first element
		d, err := p.bytes(at, 8)
		if err != nil {
			return err
		}
		n, at = little.Uint64(d), at+8
	}
	if p.flags != flagFreelist || n > sc.pageCount {
		return damagedError("page %d is not a list of free pages", id)
	}
	ids, err := p.bytes(at, 8*n)
	if err != nil {
		return err
	}
	for d := range slices.Chunk(ids, 8) {
		if err := sc.markSeen(little.Uint64(d)); err != nil {
			return err
		}
	}
	if lost := slices.Index(sc.seen, false); lost >= 0 {
		return damagedError("page %d is neither used nor free", lost)
	}
	return nil
}

// scanRootBucket scans the bucket that contains the others. It scans the bucket persist first,
// which has the schema.
func (sc *pageScanner) scanRootBucket(id uint64) error {
	list := map[string][]byte{}
	err := sc.scanTree(id, keyRange{}, 0, func(e element) error {
		value, err := e.value()
		if err == nil && (e.flags != flagBucket || len(value) < headSize) {
			err = damagedError("%.64q is not a bucket", e.key)
		}
		list[string(e.key)] = bytes.Clone(value)
		return err
	})
	if err != nil {
		return err
	}
	if err := sc.scanBucket(bucketPersist, list, sc.persistValue); err != nil {
		return err
	}
	if sc.result.schema > schema {
		return errNewerSchema(sc.result.schema)
	}
	for i, b := range layout {
		if err := sc.scanBucket(b.name, list, func(e element) error { return sc.addToSums(i, e) }); err != nil {
			return err
		}
	}
	if len(list) > 0 {
		return damagedError("it has an unknown bucket")
	}
	return nil
}

// addToSums adds an entry to the sums of bucket i.
func (sc *pageScanner) addToSums(i int, e element) error {
	head, err := e.page.bytes(e.valueAt, min(e.valueSize, frameHead))
	if err != nil {
		return err
	}
	sc.result.sums[i].add(hashEntry(e.key, head))
	if sc.result.schema < schemaContents {
		sc.result.keySums[i].add(hashKey(e.key))
	}
	return nil
}

// persistValue stores an entry of the bucket persist in the result.
func (sc *pageScanner) persistValue(e element) error {
	value, err := e.value()
	switch {
	case err != nil:
		return err
	case string(e.key) == "schema" && len(value) == 8:
		sc.result.schema = decodeNumber(value)
	case bytes.Equal(e.key, keyIntegrity):
		sc.result.integrity, err = parseIntegrity(value)
	}
	return err
}

// scanBucket scans the named bucket and removes it from list. The value of a bucket is the number
// of its first page and an unused number. A small bucket has the number 0 and is stored
// in the value itself, after these two.
func (sc *pageScanner) scanBucket(name []byte, list map[string][]byte, visit elementFunc) error {
	value, ok := list[string(name)]
	if !ok {
		return damagedError("bucket %s is missing", name)
	}
	delete(list, string(name))
	visitValue := func(e element) error {
		if e.flags != 0 {
			return damagedError("bucket %s: %x is not a value", name, e.key)
		}
		return visit(e)
	}
	if id := little.Uint64(value); id != 0 {
		return sc.scanTree(id, keyRange{}, 0, visitValue)
	}
	if len(value) < 2*headSize {
		return damagedError("bucket %s is cut short", name)
	}
	p := sc.newPage(0, value[headSize:])
	if p.flags != flagLeaf || p.overflow != 0 || little.Uint64(p.data) != 0 {
		return damagedError("bucket %s has an unknown type", name)
	}
	return p.scanLeaf(keyRange{}, visitValue)
}
