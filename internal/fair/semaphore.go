package fair

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

// Key says for whom a unit is acquired: an owner, and one of its members. Units are shared
// among owners first. How many members an owner has makes no difference to other owners.
type Key struct{ Owner, Member string }

// Semaphore is a counting semaphore that is shared fairly among owners. An owner that holds
// as many units as are free gets no further one. So a single owner gets half of the units,
// rounded up, and the first request of another owner succeeds at once. Among waiting owners
// the one with the fewest units is next, then the one whose last unit was acquired longest
// ago. The members of one owner take turns by the same rule. It is safe for concurrent use.
type Semaphore struct {
	mu           sync.Mutex         // guards what follows
	free         int                // units
	holders      map[string]*holder // by owner
	acquisitions int                // how many units have been acquired so far
	arrivals     int                // how many callers have waited so far
	waiting      int                // callers that wait
	maxWaiting   int                // 0 is no limit
	maxOfOwner   int                // callers of one owner that may wait
	maxOfMember  int                // callers of one member that may wait
	spare        *holder            // an unused holder; nil if there is none
}

// ErrQueueFull is returned by Acquire when as many callers wait as LimitQueue allows.
var ErrQueueFull = errors.New("too many callers wait")

// holder is the state of an owner that holds a unit or waits for one.
type holder struct {
	share
	waiting []*waiter         // in the order of arrival
	members map[string]*share // that hold a unit or wait for one
}

// share is what an owner or a member has.
type share struct {
	held    int // units
	last    int // the number of its last acquisition
	waiters int // its callers that wait
}

// waiter is a caller that waits for a unit.
type waiter struct {
	member string
	number int           // in the order of arrival
	ready  chan struct{} // closed when it has a unit
}

// NewSemaphore returns a semaphore with n units, at least one.
func NewSemaphore(n int) *Semaphore {
	return &Semaphore{free: max(n, 1), holders: map[string]*holder{}}
}

// LimitQueue limits the waiting callers, in all, of one owner and of one member. An owner
// whose callers take as many places of the queue as are free gets no further one. It must be
// called before Acquire.
func (s *Semaphore) LimitQueue(all, ofOwner, ofMember int) {
	s.maxWaiting, s.maxOfOwner, s.maxOfMember = all, ofOwner, ofMember
}

// Acquire waits for a unit for key. The caller calls release once. The error is ctx's
// cause, or ErrQueueFull.
func (s *Semaphore) Acquire(ctx context.Context, key Key) (release func(), err error) {
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
// not look at the waiters of other owners: each of these holds at least as many units as are
// free.
func (s *Semaphore) tryAcquire(key Key) (*waiter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holderOf(key)
	if h.held < s.free {
		s.assign(h, key.Member)
		return nil, nil
	}
	if s.queueFull(h, key.Member) {
		s.forgetUnused(key, h)
		return nil, ErrQueueFull
	}
	s.arrivals++
	s.waiting++
	w := &waiter{key.Member, s.arrivals, make(chan struct{})}
	h.waiting = append(h.waiting, w)
	h.waiters++
	h.members[key.Member].waiters++
	return w, nil
}

// holderOf returns the holder of an owner, which has the member. A new holder or member counts as
// if it had acquired before the last acquisition, so it goes first. holderOf must be called with mu
// held.
func (s *Semaphore) holderOf(key Key) *holder {
	h := s.holders[key.Owner]
	if h == nil {
		h, s.spare = s.spare, nil
		if h == nil {
			h = &holder{members: map[string]*share{}}
		}
		h.share = share{last: s.acquisitions - 1}
		s.holders[key.Owner] = h
	}
	if h.members[key.Member] == nil {
		h.members[key.Member] = &share{last: s.acquisitions - 1}
	}
	return h
}

// queueFull reports whether no further caller of a member may wait. It must be called with
// mu held.
func (s *Semaphore) queueFull(h *holder, member string) bool {
	return s.maxWaiting > 0 && (h.waiters >= s.maxOfOwner || h.members[member].waiters >= s.maxOfMember || h.waiters >= s.maxWaiting-s.waiting)
}

// cancel removes a waiter, or releases the unit that it got meanwhile.
func (s *Semaphore) cancel(key Key, w *waiter) {
	s.mu.Lock()
	h := s.holders[key.Owner]
	i := slices.Index(h.waiting, w)
	if i >= 0 {
		s.removeWaiter(h, i)
		s.forgetUnused(key, h)
	}
	s.mu.Unlock()
	if i < 0 {
		s.release(key)
	}
}

// removeWaiter removes a waiter from the queue. It must be called with mu held.
func (s *Semaphore) removeWaiter(h *holder, i int) {
	h.members[h.waiting[i].member].waiters--
	h.waiters--
	h.waiting = slices.Delete(h.waiting, i, i+1)
	s.waiting--
}

// release releases a unit and assigns free units to waiters.
func (s *Semaphore) release(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holders[key.Owner]
	h.held--
	h.members[key.Member].held--
	s.free++
	for next := s.next(); next != nil; next = s.next() {
		i := next.first()
		w := next.waiting[i]
		s.assign(next, w.member)
		close(w.ready)
		s.removeWaiter(next, i)
	}
	s.forgetUnused(key, h)
}

// assign assigns a free unit to a member of h. It must be called with mu held.
func (s *Semaphore) assign(h *holder, member string) {
	s.free--
	s.acquisitions++
	for _, share := range []*share{&h.share, h.members[member]} {
		share.held++
		share.last = s.acquisitions
	}
}

// forgetUnused removes a member, and its owner, that neither hold a unit nor wait for one.
// It must be called with mu held.
func (s *Semaphore) forgetUnused(key Key, h *holder) {
	if h.members[key.Member].unused() {
		delete(h.members, key.Member)
	}
	if h.unused() {
		delete(s.holders, key.Owner)
		s.spare = h
	}
}

// unused reports whether there is neither a unit nor a waiter.
func (s *share) unused() bool { return s.held == 0 && s.waiters == 0 }

// next returns the holder that gets the next unit, nil if none may have one. It must be
// called with mu held.
func (s *Semaphore) next() (first *holder) {
	for _, h := range s.holders {
		if h.waiters > 0 && h.held < s.free && (first == nil || cmp.Or(h.compare(&first.share), cmp.Compare(h.waiting[0].number, first.waiting[0].number)) < 0) {
			first = h
		}
	}
	return first
}

// first returns the index of the waiter of h that gets its next unit.
func (h *holder) first() (at int) {
	for i, w := range h.waiting {
		if h.members[w.member].compare(h.members[h.waiting[at].member]) < 0 {
			at = i
		}
	}
	return at
}

// compare orders shares by who gets a unit first.
func (s *share) compare(o *share) int {
	return cmp.Or(cmp.Compare(s.held, o.held), cmp.Compare(s.last, o.last))
}
