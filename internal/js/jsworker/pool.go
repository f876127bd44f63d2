// Package jsworker runs JavaScript in worker processes, so that a script that blocks or crashes
// the engine affects its own process only.
//
// A Pool runs scripts that are not trusted, each in a virtual machine of its own. It starts workers on demand and keeps a few idle:
//
//	pool := jsworker.New(func() (jsworker.Conn, error) { return launcher.StartProcess(job) })
//	value, err := pool.Run(ctx, jsworker.Request{Member: "agent 7", Code: "return 1 + input", Input: json.RawMessage("2")})
//
// A worker that has run a script of one member never runs a script of another.
//
// A VMGroup keeps virtual machines that have loaded the same scripts of the operator. They share a few
// workers, which the VMPool of the group starts and whose memory it bounds:
//
//	pool := jsworker.NewVMPool(start)
//	group := pool.NewVMGroup(js.Limits{Pure: true}, jsworker.Script{Name: "agents.js", Source: source})
//	vm, err := group.Load(ctx, nil)
//	result, err := vm.CallFunction(ctx, "step", json.RawMessage(`{"n": 1}`))
//
// Serve is the worker's side of both. The package does not isolate the processes: package sandbox does, which starts
// Serve as a Program.
package jsworker

import (
	"context"
	"encoding/json"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/internal/js"
)

// Program is the name of Serve as a sandbox.Program.
const Program = "javascript"

// Conn is the connection to a running worker. Close ends the worker. It may be called twice
// and during a Read.
type Conn interface {
	io.ReadWriter
	Close()
}

// Request is one script to run, with the arguments of js.RunScript.
type Request struct {
	Owner  string // whom the script runs for, as in a fair.Key: owners get a fair share of the places
	Member string // one agent or caller of the owner. Its scripts may share a worker, and so learn of each other's data
	Code   string
	Input  json.RawMessage
	Time   time.Duration // the time limit; 0 is js.DefaultTime
}

// Bounds of the idle workers. A pool that is not used keeps no process after idleTimeout.
const (
	maxIdle     = 4
	idleTimeout = time.Minute
)

// Pool runs scripts in workers. It is safe for concurrent use.
type Pool struct {
	start   func() (Conn, error)
	running *fair.Semaphore // has a unit for each script that may run
	members fair.KeyedMutex // each member runs one script at a time

	mu       sync.Mutex     // guards the following
	idle     []*poolWorker  // the least recently used first; a fresh one has no member
	starting bool           // a fresh worker is being started
	closed   bool           // no worker is kept any more
	starts   sync.WaitGroup // of fresh workers
}

// New returns a Pool that starts its workers with start.
func New(start func() (Conn, error)) *Pool {
	return &Pool{start: start, running: fair.NewSemaphore(max(4, 2*runtime.NumCPU()))}
}

// Run runs a script. It returns the errors of js.RunScript and of start. If a script cannot be
// interrupted, its process is killed.
//
// Each member runs one script at a time. In total, as many scripts run as there are processors,
// times two, and at least four. They are shared fairly among owners, and then among the members
// of each. The time limit does not include the waiting.
func (p *Pool) Run(ctx context.Context, r Request) (json.RawMessage, error) {
	unlock, err := p.members.Lock(ctx, r.Member)
	if err != nil {
		return nil, err
	}
	defer unlock()
	release, err := p.running.Acquire(ctx, fair.Key{Owner: r.Owner, Member: r.Member})
	if err != nil {
		return nil, err
	}
	defer release()
	if r.Time <= 0 {
		r.Time = js.DefaultTime
	}
	w, err := p.take(r.Member)
	if err != nil {
		return nil, err
	}
	answer, err := w.run(ctx, request{Op: opRun, Code: r.Code, Input: r.Input, Time: r.Time}, maxResponse)
	if err != nil {
		w.conn.Close()
		return nil, err
	}
	p.keep(w)
	return answer.result()
}

// take returns the member's idle worker, a fresh one, or starts one.
func (p *Pool) take(member string) (*poolWorker, error) {
	w := p.takeIdle(member)
	if w == nil {
		conn, err := p.start()
		if err != nil {
			return nil, err
		}
		w = &poolWorker{worker: newWorker(conn)}
	}
	w.member = member
	p.startFresh()
	return w, nil
}

// takeIdle removes and returns an idle worker that may serve a member, nil if there is none.
func (p *Pool) takeIdle(member string) *poolWorker {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.idle, func(w *poolWorker) bool { return w.member == member && !w.isFresh() })
	if i < 0 {
		i = slices.IndexFunc(p.idle, (*poolWorker).isFresh)
	}
	if i < 0 {
		return nil
	}
	w := p.idle[i]
	p.idle = slices.Delete(p.idle, i, i+1)
	w.expiry.Stop() // if it fires now, expire does not find w in idle
	return w
}

// startFresh starts a fresh worker for the next new member, unless there is one.
func (p *Pool) startFresh() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.starting || slices.ContainsFunc(p.idle, (*poolWorker).isFresh) {
		return
	}
	p.starting = true
	p.starts.Go(func() {
		conn, err := p.start()
		p.mu.Lock()
		p.starting = false
		p.mu.Unlock()
		if err == nil { // the next Run gets the same error and returns it
			p.keep(&poolWorker{worker: newWorker(conn)})
		}
	})
}

// keep adds a worker to the idle workers. It closes the oldest if there are too many.
func (p *Pool) keep(w *poolWorker) {
	p.mu.Lock()
	drop := w
	if !p.closed {
		drop = nil
		w.expiry = time.AfterFunc(idleTimeout, func() { p.expire(w) })
		p.idle = append(p.idle, w)
	}
	if len(p.idle) > maxIdle {
		drop = p.idle[0]
		drop.expiry.Stop()
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	p.mu.Unlock()
	if drop != nil {
		drop.conn.Close()
	}
}

// expire closes a worker if it is still idle.
func (p *Pool) expire(w *poolWorker) {
	p.mu.Lock()
	i := slices.Index(p.idle, w)
	if i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	p.mu.Unlock()
	if i >= 0 {
		w.conn.Close()
	}
}

// Close ends the idle workers. The others end with their current script. Close may be called
// twice.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.starts.Wait()
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, w := range idle {
		w.expiry.Stop()
		w.conn.Close()
	}
}

// poolWorker is a worker of a Pool.
type poolWorker struct {
	*worker
	member string      // whose scripts it runs
	expiry *time.Timer // of an idle worker
}

// isFresh reports whether the worker has run no script yet and may serve any member.
func (w *poolWorker) isFresh() bool { return w.count == 0 }

// maxResponse is the maximum size of a response in bytes: a result of MaxResult characters,
// each escaped, and the fields around it.
const maxResponse = 6*js.MaxResult + 64<<10
