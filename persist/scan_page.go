package persist

import "bytes"

// page is a page of the file, or a small bucket in the value of an element. The latter has
// the id 0.
type page struct {
	scanner  *pageScanner
	id       uint64
	flags    uint16
	count    int
	overflow uint64
	data     []byte // the first page; the rest of a page with overflow is read on demand
}

// newPage returns the page with the given data, without checking it.
func (sc *pageScanner) newPage(id uint64, data []byte) *page {
	return &page{
		scanner: sc, id: id, data: data,
		flags: little.Uint16(data[8:]), count: int(little.Uint16(data[10:])), overflow: uint64(little.Uint32(data[12:])),
	}
}

// bytes returns n bytes of a page from an offset. It returns ErrDamaged if they are not
// inside the page.
func (p *page) bytes(at, n uint64) ([]byte, error) {
	end := at + n
	switch {
	case end < at, p.id == 0 && end > uint64(len(p.data)), end > (p.overflow+1)*uint64(p.scanner.pageSize):
		return nil, damagedError("page %d refers to data beyond its end", p.id)
	case end <= uint64(len(p.data)):
		return p.data[at:end], nil
	}
	part := make([]byte, n)
	_, err := p.scanner.file.ReadAt(part, int64(p.id)*int64(p.scanner.pageSize)+int64(at))
	return part, truncatedError(err)
}

// element is one element of a page.
type element struct {
	page               *page
	flags              uint32
	key                []byte
	child              uint64 // page number, in a branch
	valueAt, valueSize uint64 // offset and size of the value, in a leaf
}

func (e *element) value() ([]byte, error) { return e.page.bytes(e.valueAt, e.valueSize) }

// element decodes element i of a branch or a leaf.
func (p *page) element(i int) (e element, err error) {
	at := uint64(headSize + i*elementSize)
	d, err := p.bytes(at, elementSize)
	if err != nil {
		return e, err
	}
	e.page = p
	if p.flags == flagBranch {
		e.child = little.Uint64(d[8:])
		e.key, err = p.bytes(at+uint64(little.Uint32(d)), uint64(little.Uint32(d[4:])))
		return e, err
	}
	e.flags, e.valueSize = little.Uint32(d), uint64(little.Uint32(d[12:]))
	begin, size := at+uint64(little.Uint32(d[4:])), uint64(little.Uint32(d[8:]))
	e.valueAt = begin + size
	if _, err = p.bytes(e.valueAt, min(e.valueSize, 1)); err == nil && e.valueAt+e.valueSize > (p.overflow+1)*uint64(p.scanner.pageSize) {
		err = damagedError("page %d refers to data beyond its end", p.id)
	}
	if err != nil {
		return e, err
	}
	e.key, err = p.bytes(begin, size)
	return e, err
}

// keyRange is the range of the keys of a page: from is included, above is not. A nil above is
// no limit.
type keyRange struct{ from, above []byte }

// elementFunc is called for all elements of the leaves of a tree, in order.
type elementFunc func(element) error

// scanLeaf scans a leaf.
func (p *page) scanLeaf(b keyRange, visit elementFunc) error {
	for i := range p.count {
		e, err := p.element(i)
		if err != nil {
			return err
		}
		if err := p.checkOrder(e.key, b, i > 0); err != nil {
			return err
		}
		b.from = e.key
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}

// scanBranch scans a branch and all pages below it.
func (p *page) scanBranch(b keyRange, depth int, visit elementFunc) error {
	e, err := p.element(0)
	if err != nil {
		return err
	}
	if err := p.checkOrder(e.key, b, firstKey); err != nil {
		return err
	}
	for i := range p.count {
		next, above := element{}, b.above
		if i+1 < p.count {
			if next, err = p.element(i + 1); err != nil {
				return err
			}
			if err := p.checkOrder(next.key, keyRange{e.key, b.above}, laterKey); err != nil {
				return err
			}
			above = next.key
		}
		if err := p.scanner.scanTree(e.child, keyRange{e.key, above}, depth+1, visit); err != nil {
			return err
		}
		e = next
	}
	return nil
}

// Values of follows in checkOrder.
const (
	firstKey = false
	laterKey = true
)

// checkOrder returns an error if a key is not in its range. follows is set if the key is not
// the first of its page; it must then be greater than b.from. The first key must equal
// b.from, the key that the branch above has for this page.
func (p *page) checkOrder(key []byte, b keyRange, follows bool) error {
	order := bytes.Compare(key, b.from)
	if order < 0 || follows == (order == 0) && b.from != nil || b.above != nil && bytes.Compare(key, b.above) >= 0 {
		return damagedError("page %d has keys out of order", p.id)
	}
	return nil
}
