package mcpserver

import (
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// maxCalls is how many requests of one sender are under way at most, unless a
// Config says otherwise.
const maxCalls = 64

// ConcurrencyLimiter counts the requests of each sender that are under way, by whatever
// protocol they came. It is safe for concurrent use.
type ConcurrencyLimiter struct {
	most int

	mu    sync.Mutex // guards under
	under map[identity.Principal]int
}

// NewConcurrencyLimiter lets each sender have so many requests under way; 0 is 64.
func NewConcurrencyLimiter(most int) *ConcurrencyLimiter {
	if most == 0 {
		most = maxCalls
	}
	return &ConcurrencyLimiter{most: most, under: map[identity.Principal]int{}}
}

// Limiter counts the requests that the Server answers, for others who answer the
// same senders.
func (s *Server) Limiter() *ConcurrencyLimiter { return s.busy }

// Enter counts a request until leave is called, once. The error is RateLimited:
// the sender has too many under way.
func (b *ConcurrencyLimiter) Enter(sender identity.Principal) (leave func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.under[sender] >= b.most {
		return nil, errcode.New(errcode.RateLimited, "more than %d requests at once; wait until one of them is answered", b.most)
	}
	b.under[sender]++
	return func() { b.left(sender) }, nil
}

func (b *ConcurrencyLimiter) left(sender identity.Principal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.under[sender]--; b.under[sender] == 0 {
		delete(b.under, sender)
	}
}
