// Package backoff computes the delays between attempts at an operation that
// fails: each is twice as long as the one before, up to a maximum.
//
//	var delays backoff.Backoff
//	for connect() != nil {
//		time.Sleep(delays.Next())
//	}
//
// It does not sleep and does not count attempts; its users do. ParseRetryAfter reads the delay that a
// server asks for.
package backoff

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// The delays of a Backoff whose fields are zero.
const (
	defaultInitial = time.Second
	defaultMax     = time.Minute
)

// Backoff is an exponential sequence of delays. The zero Backoff begins with one
// second and goes up to one minute, without jitter. It is not safe for concurrent
// use.
type Backoff struct {
	Initial time.Duration // the first delay; 0 is 1 second
	Max     time.Duration // the longest delay; 0 is 1 minute
	// Jitter makes each delay random, between half of its length and all of it. So clients that
	// failed together do not return together.
	Jitter bool

	last time.Duration // the last delay before jitter; 0 before the first
}

// Next returns the delay after one more failure. It is never longer than Max.
func (b *Backoff) Next() time.Duration {
	initial, longest := cmp.Or(b.Initial, defaultInitial), cmp.Or(b.Max, defaultMax)
	switch {
	case b.last == 0:
		b.last = min(initial, longest)
	case b.last > longest/2: // doubling could overflow
		b.last = longest
	default:
		b.last *= 2
	}
	if b.Jitter {
		return b.last/2 + rand.N(b.last/2+1)
	}
	return b.last
}

// Reset makes Next begin again with Initial. Call it after a success.
func (b *Backoff) Reset() { b.last = 0 }
