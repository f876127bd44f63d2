package jsworker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/internal/js"
)

// Bounds of the workers of a VMPool.
const (
	maxWorkers   = 4         // of all groups
	totalMemory  = 512 << 20 // bytes of all workers together
	workerMemory = 48 << 20  // bytes of a worker without its virtual machines, at most
)

// VMPool starts the workers of VMGroups. They have together at most 512 MiB of memory. Each has an
// equal share, and keeps as much of it free as one script may take. It is safe for concurrent use.
type VMPool struct {
	start  func() (Conn, error)
	memory int64 // of all workers together; 0 is not bounded

	clock   atomic.Uint64 // counts the uses of workers
	waiting atomic.Int32  // calls of reserve that wait for freed

	mu       sync.Mutex // guards the following
	workers  []*vmWorker
	reserved int           // places of workers that are starting
	freed    chan struct{} // closed when a worker was used or has ended, and then replaced
	groups   []*VMGroup    // not closed yet
	closed   bool
}

// NewVMPool returns a pool. It calls start for each worker process.
func NewVMPool(start func() (Conn, error)) *VMPool {
	return &VMPool{start: start, memory: totalMemory, freed: make(chan struct{})}
}

// NewInProcessPool returns a pool whose workers StartInProcess starts. Nothing bounds their
// memory together.
func NewInProcessPool() *VMPool {
	p := NewVMPool(StartInProcess)
	p.memory = 0
	return p
}

// Close closes all groups. It may be called twice.
func (p *VMPool) Close() {
	p.mu.Lock()
	p.closed = true
	groups := slices.Clone(p.groups)
	p.mu.Unlock()
	for _, g := range groups {
		g.Close()
	}
}

// share returns the bytes that a worker may have when a script with these limits begins a step. 0 is no
// limit.
func (p *VMPool) share(l js.Limits) int64 {
	if p.memory == 0 {
		return 0
	}
	p.mu.Lock()
	n := int64(max(1, len(p.workers)+p.reserved))
	p.mu.Unlock()
	step := int64(l.Memory)
	if step <= 0 {
		step = js.DefaultMemory
	}
	return max(1, p.memory/n-step-workerMemory)
}

// errPoolFull is returned by reserve if there is no place for another worker.
var errPoolFull = errors.New("as many workers as allowed run")

// reserve reserves the place of a worker, which is given back with register or cancel. If
// there is no place, with replace it ends the worker that was not used for the longest time.
// It waits until a worker is not in use.
func (p *VMPool) reserve(ctx context.Context, replace bool) error {
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	for {
		idle, freed, err := p.tryReserve(replace)
		switch {
		case err == nil || !errors.Is(err, errPoolFull) || !replace:
			return err
		case idle != nil:
			idle.end()
			idle.unlock()
			continue
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tryReserve reserves a place. If there is no place, with replace it returns a locked worker that
// may end, if any. It also returns a channel that is closed when there may be a place.
func (p *VMPool) tryReserve(replace bool) (idle *vmWorker, freed chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil, nil, errClosed
	case len(p.workers)+p.reserved < maxWorkers:
		p.reserved++
		return nil, nil, nil
	case !replace:
		return nil, nil, errPoolFull
	}
	return p.lockLeastUsed(), p.freed, errPoolFull
}

// lockLeastUsed locks the worker that was not used for the longest time, nil if all are in
// use. It must be called with mu held.
func (p *VMPool) lockLeastUsed() *vmWorker {
	byUse := slices.SortedFunc(slices.Values(p.workers), func(a, b *vmWorker) int {
		return int(int64(a.used.Load()) - int64(b.used.Load()))
	})
	for _, w := range byUse {
		if w.tryLock() {
			return w
		}
	}
	return nil
}

// startWorker starts a worker in a reserved place. Before, the others give up what exceeds their
// new share.
func (p *VMPool) startWorker(ctx context.Context, g *VMGroup) (*vmWorker, error) {
	p.mu.Lock()
	others := slices.Clone(p.workers)
	p.mu.Unlock()
	for _, w := range others {
		w.trim(ctx)
	}
	conn, err := p.start()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reserved--
	p.notify()
	if err != nil {
		return nil, err
	}
	w := &vmWorker{worker: newWorker(conn), group: g, turn: make(chan struct{}, 1), vms: map[uint64]*VM{}}
	w.expiry = time.AfterFunc(idleTimeout, w.expire)
	w.used.Store(p.clock.Add(1))
	p.workers = append(p.workers, w)
	return w, nil
}

// remove frees the place of a worker that has ended.
func (p *VMPool) remove(w *vmWorker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers = slices.DeleteFunc(p.workers, func(other *vmWorker) bool { return other == w })
	p.notify()
}

// notify wakes the callers that wait for a place. It must be called with mu held.
func (p *VMPool) notify() {
	close(p.freed)
	p.freed = make(chan struct{})
}

// afterUse notes the use of a worker.
func (p *VMPool) afterUse(w *vmWorker) {
	w.used.Store(p.clock.Add(1))
	if p.waiting.Load() > 0 {
		p.mu.Lock()
		p.notify()
		p.mu.Unlock()
	}
}
