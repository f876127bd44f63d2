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

// Host keeps virtual machines that have loaded the same scripts. Their workers serve no other
// host. There is at most one worker for each processor. It is safe for concurrent use.
type Host struct {
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

// NewHost returns a host of virtual machines that load scripts in order. Close it after use.
func (p *VMPool) NewHost(l js.Limits, scripts ...Script) *Host {
	if l.Time <= 0 {
		l.Time = js.DefaultTime
	}
	h := &Host{pool: p, limits: l, scripts: scripts, workerLimit: min(maxWorkers, runtime.GOMAXPROCS(0))}
	h.life, h.cancel = context.WithCancel(context.Background())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hosts = append(p.hosts, h)
	return h
}

// Load returns a new virtual machine, which stays in one worker. Close it after use. gone is
// called when it is lost, unless it was closed before.
//
// An error is a *js.Error of the scripts, ErrLost, the cause of ctx, or says what happened to the
// worker.
func (h *Host) Load(ctx context.Context, gone func()) (*VM, error) {
	v, err := h.LoadAlone(ctx, gone)
	if err == nil {
		v.Release()
	}
	return v, err
}

// LoadAlone is Load, but the worker serves no other virtual machine until Release or Close.
func (h *Host) LoadAlone(ctx context.Context, gone func()) (*VM, error) {
	w, err := h.pick(ctx)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.loaded++
	v := &VM{worker: w, number: h.loaded, gone: gone}
	h.mu.Unlock()
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
func (h *Host) pick(ctx context.Context) (*vmWorker, error) {
	for {
		w, starting, err := h.pickNow()
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
func (h *Host) pickNow() (*vmWorker, *start, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.life.Err() != nil {
		return nil, nil, errClosed
	}
	if len(h.workers) == 0 {
		h.startWorker(firstWorker)
		return nil, h.starting, nil
	}
	best := slices.MinFunc(h.workers, (*vmWorker).compareLoad)
	if best.queue.Load() > 0 && len(h.workers) < h.workerLimit {
		h.startWorker(anotherWorker)
	}
	return best, nil, nil
}

// Values of first in startWorker.
const (
	firstWorker   = true
	anotherWorker = false
)

// startWorker starts a worker unless one is starting. The first one of a host may replace
// one of another host. It must be called with mu held.
func (h *Host) startWorker(first bool) {
	if h.starting != nil {
		return
	}
	s := &start{done: make(chan struct{})}
	h.starting = s
	go func() {
		w, err := h.newWorker(first)
		h.mu.Lock()
		if err == nil && h.life.Err() == nil {
			h.workers = append(h.workers, w)
			w = nil
		}
		h.starting, s.err = nil, err
		h.mu.Unlock()
		if w != nil { // Close did not see it
			w.end()
		}
		close(s.done)
	}()
}

// newWorker starts a worker.
func (h *Host) newWorker(first bool) (*vmWorker, error) {
	if err := h.pool.reserve(h.life, first); err != nil {
		return nil, err
	}
	return h.pool.startWorker(h.life, h)
}

// remove removes a worker that has ended.
func (h *Host) remove(w *vmWorker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.workers = slices.DeleteFunc(h.workers, func(other *vmWorker) bool { return other == w })
}

// Close ends the workers, also in the middle of a step. It may be called twice.
func (h *Host) Close() {
	h.cancel()
	h.mu.Lock()
	workers, starting := slices.Clone(h.workers), h.starting
	h.mu.Unlock()
	for _, w := range workers {
		w.end()
	}
	if starting != nil {
		<-starting.done
	}
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	h.pool.hosts = slices.DeleteFunc(h.pool.hosts, func(other *Host) bool { return other == h })
}
