package tool

import (
	"context"
	"sync"
	"time"
)

// workClock ends a context when a call has worked for a time. It stands still while the call waits
// for an answer.
type workClock struct {
	outer *workClock // of the context around it; nil if there is none
	end   func()

	mu      sync.Mutex // guards what follows
	timer   *time.Timer
	left    time.Duration // when it was started last
	started time.Time
	paused  int // how many wait for an answer
}

// clockKey is the context key of the innermost workClock.
type clockKey struct{}

// WithWorkTime is context.WithTimeoutCause for the work of a call: the time in which the call
// waits for an answer (Ask) does not count. The context has no deadline. When the time is over,
// its cause is cause.
func WithWorkTime(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	outer, _ := ctx.Value(clockKey{}).(*workClock)
	c := &workClock{outer: outer, end: func() { cancel(cause) }, left: d, started: time.Now()}
	c.timer = time.AfterFunc(d, c.end)
	return context.WithValue(inner, clockKey{}, c), func() {
		c.timer.Stop()
		cancel(context.Canceled)
	}
}

// pauseClocks stops all clocks of a call until the returned function is called.
func pauseClocks(ctx context.Context) (resume func()) {
	innermost, _ := ctx.Value(clockKey{}).(*workClock)
	for c := innermost; c != nil; c = c.outer {
		c.pause()
	}
	return func() {
		for c := innermost; c != nil; c = c.outer {
			c.resume()
		}
	}
}

// pause stops the clock. It has no effect on a clock whose time is over.
func (c *workClock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused++; c.paused == 1 && c.timer.Stop() {
		c.left -= time.Since(c.started)
	}
}

// resume starts the clock again.
func (c *workClock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused--; c.paused == 0 {
		c.started = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}
