// Package backoff owns how long something that failed is left alone: a second
// at first, twice as long after each further failure, a minute at most.
package backoff

import "time"

const (
	first = time.Second
	last  = time.Minute
)

// Backoff is how long the last pause was. The zero Pause is of what has not failed,
// or works again. Not safe for concurrent use.
type Backoff time.Duration

// Next gives the pause after one more failure.
func (p *Backoff) Next() time.Duration {
	*p = min(max(2**p, Backoff(first)), Backoff(last))
	return time.Duration(*p)
}
