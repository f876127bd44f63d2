package persist

import "bytes"

// page is a page, or one that stands in the value of an element.
type page struct {
	in       *pageScanner
	id       uint64
	flags    uint16
	count    int
	overflow uint64
	data     []byte // its beginning; all of it unless it has overflow
}

func (in *pageScanner) parse(id uint64, data []byte) *page {
	return &page{
		in: in, id: id, data: data,
		flags: little.Uint16(data[8:]), count: int(little.Uint16(data[10:])), overflow: uint64(little.Uint32(data[12:])),
	}
}

// bytes gives a part of a page; nil when it is not inside.
func (p *page) bytes(at, n uint64) ([]byte, error) {
	end := at + n
	switch {
	case end < at, p.id == 0 && end > uint64(len(p.data)), end > (p.overflow+1)*uint64(p.in.size):
		return nil, damaged("page %d holds what does not fit in it", p.id)
	case end <= uint64(len(p.data)):
		return p.data[at:end], nil
	}
	part := make([]byte, n)
	_, err := p.in.file.ReadAt(part, int64(p.id)*int64(p.in.size)+int64(at))
	return part, cut(err)
}

// element is one element of a page.
type element struct {
	page   *page
	flags  uint32
	key    []byte
	child  uint64 // of a branch
	at, is uint64 // where a leaf's value stands, and its size
}

func (e *element) value() ([]byte, error) { return e.page.bytes(e.at, e.is) }

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
	e.flags, e.is = little.Uint32(d), uint64(little.Uint32(d[12:]))
	begin, size := at+uint64(little.Uint32(d[4:])), uint64(little.Uint32(d[8:]))
	e.at = begin + size
	if _, err = p.bytes(e.at, min(e.is, 1)); err == nil && e.at+e.is > (p.overflow+1)*uint64(p.in.size) {
		err = damaged("page %d holds what does not fit in it", p.id)
	}
	if err != nil {
		return e, err
	}
	e.key, err = p.bytes(begin, size)
	return e, err
}

// bounds are between which keys a page's stand; above is nil when nothing is.
type bounds struct{ from, above []byte }

// elementFunc is told of every element of a tree's leaves, in order.
type elementFunc func(element) error

func (p *page) leaf(b bounds, tell elementFunc) error {
	for i := range p.count {
		e, err := p.element(i)
		if err != nil {
			return err
		}
		if err := p.inOrder(e.key, b, i > 0); err != nil {
			return err
		}
		b.from = e.key
		if err := tell(e); err != nil {
			return err
		}
	}
	return nil
}

func (p *page) branch(b bounds, depth int, tell elementFunc) error {
	e, err := p.element(0)
	if err != nil {
		return err
	}
	if err := p.inOrder(e.key, b, false); err != nil {
		return err
	}
	for i := range p.count {
		next, above := element{}, b.above
		if i+1 < p.count {
			if next, err = p.element(i + 1); err != nil {
				return err
			}
			if err := p.inOrder(next.key, bounds{e.key, b.above}, true); err != nil {
				return err
			}
			above = next.key
		}
		if err := p.in.tree(e.child, bounds{e.key, above}, depth+1, tell); err != nil {
			return err
		}
		e = next
	}
	return nil
}

// inOrder refuses a key that does not stand where it is; behind says that one
// came before it in the page. The first of a page is what the page above has of
// it: bbolt finds a page there by its first key.
func (p *page) inOrder(key []byte, b bounds, behind bool) error {
	order := bytes.Compare(key, b.from)
	if order < 0 || behind == (order == 0) && b.from != nil || b.above != nil && bytes.Compare(key, b.above) >= 0 {
		return damaged("page %d holds keys out of order", p.id)
	}
	return nil
}
