package mcpserver

import (
	"context"
	"runtime"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/fair"
)

// maxCalls is the default limit of concurrent requests of one sender.
const maxCalls = 64

// ConcurrencyLimiter limits the concurrent requests of each sender, and the bytes of their
// bodies, over all protocols together. It is safe for concurrent use.
type ConcurrencyLimiter struct {
	max    int
	bodies bodyBudget
	lists  *fair.Semaphore // held while a list is encoded

	mu     sync.Mutex // guards active
	active map[identity.Principal]int
}

// NewConcurrencyLimiter returns a limiter that allows each sender limit
// concurrent requests; 0 means 64.
func NewConcurrencyLimiter(limit int) *ConcurrencyLimiter {
	if limit == 0 {
		limit = maxCalls
	}
	return &ConcurrencyLimiter{max: limit, lists: fair.NewSemaphore(max(4, 2*runtime.NumCPU())), active: map[identity.Principal]int{}}
}

// Limiter returns the limiter of the Server's requests, for other protocols
// that serve the same senders.
func (s *Server) Limiter() *ConcurrencyLimiter { return s.limiter }

// Acquire counts a request of sender. The caller must call release once when
// the request ends.
//
// Errors: RateLimited if the sender has too many requests in progress.
func (l *ConcurrencyLimiter) Acquire(sender identity.Principal) (release func(), err error) {
	return l.acquire(sender, 1)
}

// acquire is Acquire for n requests, which end together.
func (l *ConcurrencyLimiter) acquire(sender identity.Principal, n int) (release func(), err error) {
	if n <= 0 {
		return func() {}, nil
	}
	sender = sender.Holder()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active[sender]+n > l.max {
		return nil, errcode.New(errcode.RateLimited, "more than %d requests at once; wait for one of them to finish", l.max)
	}
	l.active[sender] += n
	return func() { l.release(sender, n) }, nil
}

// AcquireList waits for the turn of sender to encode a list of tasks, or of tools with their
// schemas. This takes a processor for a while. Few encode at once, shared fairly among
// senders. The caller must call release once, before it sends the list. The error is the
// cause of ctx.
func (l *ConcurrencyLimiter) AcquireList(ctx context.Context, sender identity.Principal) (release func(), err error) {
	name := sender.String()
	return l.lists.Acquire(ctx, fair.Key{Owner: name, Member: name})
}

// release ends n requests of sender. Senders without requests are removed, so
// that the map does not grow.
func (l *ConcurrencyLimiter) release(sender identity.Principal, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active[sender] -= n; l.active[sender] == 0 {
		delete(l.active, sender)
	}
}
