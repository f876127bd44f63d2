// Package jsworker owns running scripts in processes of their own: what a
// script does to the engine, or the engine to its process, ends there.
//
// A Pool starts workers as it needs them and keeps a few:
//
//	pool := worker.New(func() (worker.Conn, error) { return launcher.Start(job) })
//	value, err := pool.Run(ctx, worker.Request{Owner: "agent 7", Code: "return 1 + input", Input: "2"})
//
// and Serve is the worker's side. A worker that has run the script of one
// owner is never given another's. The package builds no walls: that is
// sandbox's, whose Program Serve is.
package jsworker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/internal/js"
)

// Program is the name under which a binary has Serve.
const Program = "javascript"

// Conn is a running worker. Close ends it, and may be called twice and while
// somebody reads.
type Conn interface {
	io.ReadWriter
	Close()
}

// Request is one script to run, as js.Run takes it.
type Request struct {
	Owner string // who shares a worker: those that may know each other's data
	Code  string
	Input json.RawMessage
	Time  time.Duration // what it may take; 0 is js.DefaultTime
}

// maxIdle is how many workers wait for their owners' next scripts, idleFor how
// long: a pool that nobody uses any more keeps no process.
const (
	maxIdle = 4
	idleFor = time.Minute
)

// Pool runs scripts in workers. It is safe for concurrent use.
type Pool struct {
	start   func() (Conn, error)
	running chan struct{}   // holds a token for each script that runs; more wait
	turns   fair.KeyedMutex // of owners: one script at a time

	mu       sync.Mutex     // guards what follows
	idle     []*worker      // by last use, oldest first; one that is fresh has no owner
	starting bool           // a fresh one is on its way
	closed   bool           // nothing is kept any more
	begun    sync.WaitGroup // for the fresh one
}

// New makes a Pool that starts its workers with start. They end with who
// started them.
func New(start func() (Conn, error)) *Pool {
	return &Pool{start: start, running: make(chan struct{}, max(4, 2*runtime.NumCPU()))}
}

// Run runs a script. Errors are those of js.Run and of start; a script that
// cannot be stopped is ended with its process. Of one owner one runs at a
// time, so that nobody keeps others waiting with many, and of all only so many,
// twice as many as there are processors; the others wait, and their time has
// not begun.
func (p *Pool) Run(ctx context.Context, r Request) (json.RawMessage, error) {
	done, err := p.turns.Lock(ctx, r.Owner)
	if err != nil {
		return nil, err
	}
	defer done()
	select {
	case p.running <- struct{}{}:
		defer func() { <-p.running }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if r.Time <= 0 {
		r.Time = js.DefaultTime
	}
	w, err := p.take(r.Owner)
	if err != nil {
		return nil, err
	}
	a, err := w.ask(ctx, r)
	if err != nil {
		w.conn.Close()
		return nil, err
	}
	p.keep(w)
	return a.result()
}

// take gives the owner's worker, a fresh one, or a new one.
func (p *Pool) take(owner string) (*worker, error) {
	w := p.waiting(owner)
	if w == nil {
		conn, err := p.start()
		if err != nil {
			return nil, err
		}
		w = newWorker(conn)
	}
	w.owner = owner
	p.prepare()
	return w, nil
}

// waiting takes an idle worker that may serve an owner; nil when there is none.
func (p *Pool) waiting(owner string) *worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.idle, func(w *worker) bool { return w.owner == owner && !w.fresh() })
	if i < 0 {
		i = slices.IndexFunc(p.idle, (*worker).fresh)
	}
	if i < 0 {
		return nil
	}
	w := p.idle[i]
	p.idle = slices.Delete(p.idle, i, i+1)
	w.expiry.Stop() // one that expires just now is not found, and lives
	return w
}

// prepare sees to it that a fresh worker waits for the next new owner.
func (p *Pool) prepare() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.starting || slices.ContainsFunc(p.idle, (*worker).fresh) {
		return
	}
	p.starting = true
	p.begun.Go(func() {
		conn, err := p.start()
		p.mu.Lock()
		p.starting = false
		p.mu.Unlock()
		if err == nil { // else the next Run meets the same error, and says it
			p.keep(newWorker(conn))
		}
	})
}

// keep lets a worker wait for its owner's next script, for a while.
func (p *Pool) keep(w *worker) {
	p.mu.Lock()
	drop := w
	if !p.closed {
		drop = nil
		w.expiry = time.AfterFunc(idleFor, func() { p.expire(w) })
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

// expire ends a worker that has waited long enough, if it still waits.
func (p *Pool) expire(w *worker) {
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

// Close ends the workers that wait; those at work end with their scripts. It
// may be called twice.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.begun.Wait()
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, w := range idle {
		w.expiry.Stop()
		w.conn.Close()
	}
}

// worker is one process, asked by one caller at a time.
type worker struct {
	conn   Conn
	from   *io.LimitedReader
	decode *json.Decoder
	encode *json.Encoder
	owner  string
	count  uint64
	expiry *time.Timer // of one that waits
}

func newWorker(conn Conn) *worker {
	from := &io.LimitedReader{R: conn}
	return &worker{conn: conn, from: from, decode: json.NewDecoder(from), encode: json.NewEncoder(conn)}
}

func (w *worker) fresh() bool { return w.count == 0 }

// maxAnswer is how many bytes an answer may have: a result of the longest
// kind, each character escaped, and its frame.
const maxAnswer = 6*js.MaxResult + 64<<10

// grace is how much longer than a script's time a worker may take to say that
// the time is over.
const grace = time.Second

// ask runs one script. After an error the worker is not to be used again.
func (w *worker) ask(ctx context.Context, r Request) (response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.Time+grace, errcode.New(errcode.ToolTimeout,
		"the script ran out of time: it may take %v", r.Time))
	defer cancel()
	stop := context.AfterFunc(ctx, w.conn.Close) // which ends the reading below
	defer stop()
	w.count++
	w.from.N = maxAnswer
	var a response
	err := w.encode.Encode(request{w.count, r.Code, r.Input, r.Time})
	if err == nil {
		err = w.decode.Decode(&a)
	}
	switch {
	case ctx.Err() != nil:
		return a, context.Cause(ctx)
	case err != nil:
		return a, errcode.Wrap(errcode.ToolExecutionFailed, err, "the script's process ended before it answered: it took too much memory, or broke the engine")
	case a.Number != w.count:
		return a, errcode.Wrap(errcode.ToolExecutionFailed, errors.New("an answer to another question"), "the script's process answered out of turn and was ended")
	}
	return a, nil
}
