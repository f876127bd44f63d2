package broker

import (
	"context"
	"sync"
)

// LinkGroup are the links of one driver, which end together. It is safe for concurrent use.
type LinkGroup struct {
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu    sync.Mutex     // guards Add of links
	links sync.WaitGroup // one for each link that has not ended
}

// NewLinkGroup returns a group without links.
func NewLinkGroup() *LinkGroup {
	g := &LinkGroup{}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Context returns a context that ends with Close.
func (g *LinkGroup) Context() context.Context { return g.ctx }

// Add adds a link. The returned context ends with cancel or with Close of the group. The caller
// calls Done once the link has ended. The error is ErrUnavailable if the group is closed.
func (g *LinkGroup) Add() (ctx context.Context, cancel context.CancelFunc, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() != nil {
		return nil, nil, ErrUnavailable
	}
	g.links.Add(1)
	ctx, cancel = context.WithCancel(g.ctx)
	return ctx, cancel, nil
}

// Done removes a link that has ended.
func (g *LinkGroup) Done() { g.links.Done() }

// Cancel ends the contexts of the group and of its links. No links are added from then on.
func (g *LinkGroup) Cancel() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cancel()
}

// Close is Cancel, and waits until all links have ended. It may be called more than once.
func (g *LinkGroup) Close() {
	g.Cancel()
	g.links.Wait()
}
