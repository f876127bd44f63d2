package fair

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// FairSemaphore are a number of places that those who share a name have a share of:
// nobody takes one when he has as many as are free. So one alone has half of
// them, rounded up, and another finds one at once. Of those who wait, who has
// the fewest goes first, then whose last turn is longest ago. Safe for concurrent
// use.
type FairSemaphore struct {
	mu       sync.Mutex // guards what follows
	free     int
	shares   map[string]*holder
	taken    int // how often a place was taken
	arrivals int // how many have waited
}

// holder is of one name, as long as it has a place or waits for one.
type holder struct {
	has     int
	last    int // the number of its last turn
	waiting []*waiter
}

// waiter waits for a place.
type waiter struct {
	came  int
	ready chan struct{} // closed when it has one
}

// NewPlaces makes n Places, at least one.
func NewPlaces(n int) *FairSemaphore {
	return &FairSemaphore{free: max(n, 1), shares: map[string]*holder{}}
}

// Acquire waits for a place; give it back. The error is ctx's cause.
func (p *FairSemaphore) Acquire(ctx context.Context, name string) (give func(), err error) {
	if w := p.enter(name); w != nil {
		select {
		case <-w.ready:
		case <-ctx.Done():
			p.leave(name, w)
			return nil, context.Cause(ctx)
		}
	}
	return func() { p.give(name) }, nil
}

// enter takes a place, or gives who waits for one. Whoever waits already may
// not have what is free.
func (p *FairSemaphore) enter(name string) *waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shares[name]
	if s == nil { // its turn comes before that of who had the last one
		s = &holder{last: p.taken - 1}
		p.shares[name] = s
	}
	if s.has < p.free {
		p.take(s)
		return nil
	}
	p.arrivals++
	w := &waiter{p.arrivals, make(chan struct{})}
	s.waiting = append(s.waiting, w)
	return w
}

// leave gives up waiting, or the place that came meanwhile.
func (p *FairSemaphore) leave(name string, w *waiter) {
	p.mu.Lock()
	s := p.shares[name]
	i := slices.Index(s.waiting, w)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		p.drop(name, s)
	}
	p.mu.Unlock()
	if i < 0 {
		p.give(name)
	}
}

func (p *FairSemaphore) give(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shares[name]
	s.has--
	p.free++
	for next := p.next(); next != nil; next = p.next() {
		p.take(next)
		close(next.waiting[0].ready)
		next.waiting = slices.Delete(next.waiting, 0, 1)
	}
	p.drop(name, s)
}

// take wants mu held.
func (p *FairSemaphore) take(s *holder) {
	p.free--
	p.taken++
	s.has++
	s.last = p.taken
}

// drop wants mu held. It forgets a share that nobody has or waits for.
func (p *FairSemaphore) drop(name string, s *holder) {
	if s.has == 0 && len(s.waiting) == 0 {
		delete(p.shares, name)
	}
}

// next wants mu held. It gives the share whose first waiter is to have a place,
// nil if nobody may.
func (p *FairSemaphore) next() (first *holder) {
	for _, s := range p.shares {
		if len(s.waiting) > 0 && s.has < p.free && (first == nil || s.before(first)) {
			first = s
		}
	}
	return first
}

// before says whether s goes before another; somebody waits in both.
func (s *holder) before(o *holder) bool {
	return cmp.Or(cmp.Compare(s.has, o.has), cmp.Compare(s.last, o.last), cmp.Compare(s.waiting[0].came, o.waiting[0].came)) < 0
}
