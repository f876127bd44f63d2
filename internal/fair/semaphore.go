package fair

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

// Semaphore is a counting semaphore that is shared fairly among keys. A key that holds
// as many units as are free gets no further one: a single key gets half of them, rounded
// up, and the first request of another key succeeds at once. Among waiting keys the one
// with the fewest units is next, then the one whose last unit was acquired longest ago.
// It is safe for concurrent use.
type Semaphore struct {
	mu           sync.Mutex // guards what follows
	free         int        // units
	holders      map[string]*holder
	acquisitions int // how many units have been acquired so far
	arrivals     int // how many callers have waited so far
	waiting      int // callers that wait
	maxWaiting   int // 0 is no limit
	maxOfKey     int // callers of one key that may wait
}

// ErrQueueFull is returned by Acquire when as many callers wait as LimitQueue allows.
var ErrQueueFull = errors.New("too many callers wait")

// holder is the state of a key that holds a unit or waits for one.
type holder struct {
	held    int // units
	last    int // the number of its last acquisition
	waiting []*waiter
}

// waiter is a caller that waits for a unit.
type waiter struct {
	number int           // in the order of arrival
	ready  chan struct{} // closed when it has a unit
}

// NewSemaphore returns a semaphore with n units, at least one.
func NewSemaphore(n int) *Semaphore {
	return &Semaphore{free: max(n, 1), holders: map[string]*holder{}}
}

// LimitQueue limits the waiting callers, in all and of one key. A key whose callers take
// as many places of the queue as are free gets no further one. It must be called before
// Acquire.
func (s *Semaphore) LimitQueue(all, ofKey int) { s.maxWaiting, s.maxOfKey = all, ofKey }

// Acquire waits for a unit for key. The caller calls release once. The error is ctx's
// cause, or ErrQueueFull.
func (s *Semaphore) Acquire(ctx context.Context, key string) (release func(), err error) {
	w, err := s.tryAcquire(key)
	if err != nil {
		return nil, err
	}
	if w != nil {
		select {
		case <-w.ready:
		case <-ctx.Done():
			s.cancel(key, w)
			return nil, context.Cause(ctx)
		}
	}
	return func() { s.release(key) }, nil
}

// tryAcquire acquires a unit and returns nil, or returns a waiter or ErrQueueFull. It need
// not look at the waiters of other keys: each of these holds at least as many units as are
// free.
func (s *Semaphore) tryAcquire(key string) (*waiter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holders[key]
	if h == nil { // as if it had acquired before the last acquisition, so it goes first
		h = &holder{last: s.acquisitions - 1}
		s.holders[key] = h
	}
	if h.held < s.free {
		s.assign(h)
		return nil, nil
	}
	if s.queueFull(h) {
		s.forgetUnused(key, h)
		return nil, ErrQueueFull
	}
	s.arrivals++
	s.waiting++
	w := &waiter{s.arrivals, make(chan struct{})}
	h.waiting = append(h.waiting, w)
	return w, nil
}

// queueFull reports whether no further caller of h may wait. It must be called with mu
// held.
func (s *Semaphore) queueFull(h *holder) bool {
	n := len(h.waiting)
	return s.maxWaiting > 0 && (n >= s.maxOfKey || n >= s.maxWaiting-s.waiting)
}

// cancel removes a waiter, or releases the unit that it got meanwhile.
func (s *Semaphore) cancel(key string, w *waiter) {
	s.mu.Lock()
	h := s.holders[key]
	i := slices.Index(h.waiting, w)
	if i >= 0 {
		h.waiting = slices.Delete(h.waiting, i, i+1)
		s.waiting--
		s.forgetUnused(key, h)
	}
	s.mu.Unlock()
	if i < 0 {
		s.release(key)
	}
}

// release releases a unit and assigns free units to waiters.
func (s *Semaphore) release(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holders[key]
	h.held--
	s.free++
	for next := s.next(); next != nil; next = s.next() {
		s.assign(next)
		close(next.waiting[0].ready)
		next.waiting = slices.Delete(next.waiting, 0, 1)
		s.waiting--
	}
	s.forgetUnused(key, h)
}

// assign assigns a free unit to h. It must be called with mu held.
func (s *Semaphore) assign(h *holder) {
	s.free--
	s.acquisitions++
	h.held++
	h.last = s.acquisitions
}

// forgetUnused removes a key that neither holds a unit nor waits for one. It must be
// called with mu held.
func (s *Semaphore) forgetUnused(key string, h *holder) {
	if h.held == 0 && len(h.waiting) == 0 {
		delete(s.holders, key)
	}
}

// next returns the holder whose first waiter gets the next unit, nil if none may have
// one. It must be called with mu held.
func (s *Semaphore) next() (first *holder) {
	for _, h := range s.holders {
		if len(h.waiting) > 0 && h.held < s.free && (first == nil || h.before(first)) {
			first = h
		}
	}
	return first
}

// before reports whether h gets a unit before o. Both have waiters.
func (h *holder) before(o *holder) bool {
	return cmp.Or(cmp.Compare(h.held, o.held), cmp.Compare(h.last, o.last), cmp.Compare(h.waiting[0].number, o.waiting[0].number)) < 0
}
