// Package clock provides a clock that never goes back, for checks of expiry. Something
// that has expired once stays expired when the wall clock is set back.
//
//	c := clock.NewForward(time.Now)
//	expired := !c.Now().Before(deadline)
//
// It lasts as long as the process. A wall clock that was ahead and is corrected leaves it
// ahead until the process ends.
package clock

import (
	"sync"
	"time"
)

// Forward is a clock that never goes back. It is safe for concurrent use.
type Forward struct {
	wall func() time.Time

	mu     sync.Mutex // guards latest
	latest time.Time  // the latest time that the wall clock had, with its monotonic reading
}

// NewForward returns a clock that follows wall, except back.
func NewForward(wall func() time.Time) *Forward { return &Forward{wall: wall, latest: wall()} }

// Now returns the time of the wall clock. If the wall clock was set back, it returns its latest
// time plus the time that has passed since. The monotonic clock measures this time.
func (f *Forward) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.wall()
	passed := max(0, now.Sub(f.latest)) // monotonic, if both have the reading
	if least := f.latest.Round(0).Add(passed); now.Round(0).Before(least) {
		return least
	}
	f.latest = now
	return now
}
