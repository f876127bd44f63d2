package jsworker

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/rolecall/rolecall/internal/js"
)

// ErrLost is returned for a virtual machine that is gone through no fault of its own. Its worker
// ended in a step of another machine or for lack of memory, or the machine was not used for a
// minute. The script can be started again.
var ErrLost = errors.New("the virtual machine of the script is gone")

// errClosed is returned after Close.
var errClosed = errors.New("the workers of the script are closed")

// VMGroup keeps virtual machines that have loaded the same scripts. Their workers serve no other
// group. There is at most one worker for each processor. It is safe for concurrent use.
type VMGroup struct {
	pool        *VMPool
	limits      js.Limits
	scripts     []Script
	workerLimit int // workers at the same time

	life   context.Context // ends with Close
	cancel context.CancelFunc

	mu       sync.Mutex // guards the following
	workers  []*vmWorker
	starting *start // nil if no worker is starting
	loaded   uint64 // virtual machines so far
}

// start is a worker that is starting.
type start struct {
	done chan struct{} // closed when it has started, or not
	err  error         // valid after done
}

// NewVMGroup returns a group of virtual machines that load scripts in order. Close it after use.
func (p *VMPool) NewVMGroup(l js.Limits, scripts ...Script) *VMGroup {
	if l.Time <= 0 {
		l.Time = js.DefaultTime
	}
	g := &VMGroup{pool: p, limits: l, scripts: scripts, workerLimit: min(maxWorkers, runtime.GOMAXPROCS(0))}
	g.life, g.cancel = context.WithCancel(context.Background())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.groups = append(p.groups, g)
	return g
}

// Load returns a new virtual machine, which stays in one worker. Close it after use. gone is
// called when it is lost, unless it was closed before.
//
// An error is a *js.Error of the scripts, ErrLost, the cause of ctx, or says what happened to the
// worker.
func (g *VMGroup) Load(ctx context.Context, gone func()) (*VM, error) {
	v, err := g.LoadAlone(ctx, gone)
	if err == nil {
		v.ShareWorker()
	}
	return v, err
}

// LoadAlone is Load, but the worker serves no other virtual machine until ShareWorker or Close.
func (g *VMGroup) LoadAlone(ctx context.Context, gone func()) (*VM, error) {
	w, err := g.pick(ctx)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	g.loaded++
	v := &VM{worker: w, number: g.loaded, gone: gone}
	g.mu.Unlock()
	if err := w.lock(ctx); err != nil {
		return nil, err
	}
	v.alone = true
	if err := w.load(ctx, v); err != nil {
		w.unlock()
		return nil, err
	}
	return v, nil
}

// pick returns the worker that the fewest wait for. If it is in use, another one is
// started for later callers. If there is no worker, pick waits for the first worker.
func (g *VMGroup) pick(ctx context.Context) (*vmWorker, error) {
	for {
		w, starting, err := g.pickNow()
		if w != nil || err != nil {
			return w, err
		}
		select {
		case <-starting.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if starting.err != nil {
			return nil, starting.err
		}
	}
}

// pickNow returns a worker, or the start of the first one.
func (g *VMGroup) pickNow() (*vmWorker, *start, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.life.Err() != nil {
		return nil, nil, errClosed
	}
	if len(g.workers) == 0 {
		g.startWorker(firstWorker)
		return nil, g.starting, nil
	}
	best := slices.MinFunc(g.workers, (*vmWorker).compareLoad)
	if best.queue.Load() > 0 && len(g.workers) < g.workerLimit {
		g.startWorker(anotherWorker)
	}
	return best, nil, nil
}

// Values of first in startWorker.
const (
	firstWorker   = true
	anotherWorker = false
)

// startWorker starts a worker unless one is starting. The first one of a group may replace
// one of another group. It must be called with mu held.
func (g *VMGroup) startWorker(first bool) {
	if g.starting != nil {
		return
	}
	s := &start{done: make(chan struct{})}
	g.starting = s
	go func() {
		w, err := g.newWorker(first)
		g.mu.Lock()
		if err == nil && g.life.Err() == nil {
			g.workers = append(g.workers, w)
			w = nil
		}
		g.starting, s.err = nil, err
		g.mu.Unlock()
		if w != nil { // Close did not see it
			w.end()
		}
		close(s.done)
	}()
}

// newWorker starts a worker.
func (g *VMGroup) newWorker(first bool) (*vmWorker, error) {
	if err := g.pool.reserve(g.life, first); err != nil {
		return nil, err
	}
	return g.pool.startWorker(g.life, g)
}

// remove removes a worker that has ended.
func (g *VMGroup) remove(w *vmWorker) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.workers = slices.DeleteFunc(g.workers, func(other *vmWorker) bool { return other == w })
}

// Close ends the workers, also in the middle of a step. It may be called twice.
func (g *VMGroup) Close() {
	g.cancel()
	g.mu.Lock()
	workers, starting := slices.Clone(g.workers), g.starting
	g.mu.Unlock()
	for _, w := range workers {
		w.end()
	}
	if starting != nil {
		<-starting.done
	}
	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()
	g.pool.groups = slices.DeleteFunc(g.pool.groups, func(other *VMGroup) bool { return other == g })
}
