package mcpclient

import (
	"context"
	"sync"
	"time"
)

// rateLimiter lets so many things a second pass, and makes who brings more wait. A
// server that floods is slowed down by its own full pipe.
type rateLimiter struct {
	most int // a second

	mu    sync.Mutex // guards what follows
	until time.Time  // the end of the second that is counted
	n     int
}

func (p *rateLimiter) wait(ctx context.Context) error {
	for {
		rest := p.take()
		if rest <= 0 {
			return nil
		}
		timer := time.NewTimer(rest)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// take counts one more, or says how long the second still lasts.
func (p *rateLimiter) take() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !now.Before(p.until) {
		p.until, p.n = now.Add(time.Second), 0
	}
	if p.n >= p.most {
		return p.until.Sub(now)
	}
	p.n++
	return 0
}
