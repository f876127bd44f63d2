package jsworker

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// VM is a virtual machine in a worker of a VMGroup. It is not safe for concurrent use.
type VM struct {
	worker *vmWorker
	number uint64
	gone   func()
	alone  bool // it has the lock of its worker
}

// CallFunction calls a function as js.VM does. Waiting for steps of others does not count against
// the time limit.
//
// An error is a *js.Error of the script, ErrLost, the cause of ctx, or says what happened to
// the worker in this step. After another error than a *js.Error the machine is lost.
func (v *VM) CallFunction(ctx context.Context, function string, arg json.RawMessage) (json.RawMessage, error) {
	if len(arg) > MaxStep {
		return nil, errTooLarge("is given", len(arg))
	}
	if !v.alone {
		if err := v.worker.lock(ctx); err != nil {
			return nil, err
		}
		defer v.worker.unlock()
	}
	return v.worker.call(ctx, v, function, arg)
}

// ShareWorker lets the worker serve others again if the machine was loaded alone.
func (v *VM) ShareWorker() {
	if v.alone {
		v.alone = false
		v.worker.unlock()
	}
}

// Discard ends the worker, whose answers make no sense, and closes the machine.
func (v *VM) Discard() {
	v.worker.end()
	v.Close()
}

// Close releases the machine. Its memory is freed before the next step in its worker. It may be
// called twice.
func (v *VM) Close() {
	v.ShareWorker()
	v.worker.close(v)
}

// vmWorker is a worker of a VMGroup. Who has its lock may use it.
type vmWorker struct {
	*worker
	group  *VMGroup
	turn   chan struct{} // has a token while a goroutine has the lock; those that wait get it in order
	queue  atomic.Int32  // who has the lock or waits for it
	used   atomic.Uint64 // when it was last used, in the clock of the pool
	memory atomic.Int64  // bytes that it had after its last step; 0 if unknown

	mu     sync.Mutex // guards the following
	vms    map[uint64]*VM
	closed []uint64 // machines that the worker does not know yet to be closed
	ended  bool
	expiry *time.Timer // of an idle worker; set once
}

// compareLoad compares by who waits, and then by how many machines there are.
func (w *vmWorker) compareLoad(other *vmWorker) int {
	if d := w.queue.Load() - other.queue.Load(); d != 0 {
		return int(d)
	}
	return w.machineCount() - other.machineCount()
}

func (w *vmWorker) machineCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.vms)
}

// lock waits for the lock. It returns ErrLost if the worker has ended.
func (w *vmWorker) lock(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.queue.Add(1)
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		w.queue.Add(-1)
		return context.Cause(ctx)
	}
	if w.hasEnded() {
		w.unlock()
		return ErrLost
	}
	return nil
}

// tryLock takes the lock and reports true, unless another goroutine has it.
func (w *vmWorker) tryLock() bool {
	select {
	case w.turn <- struct{}{}:
		w.queue.Add(1)
		return true
	default:
		return false
	}
}

// unlock releases the lock.
func (w *vmWorker) unlock() {
	if !w.hasEnded() {
		w.expiry.Reset(idleTimeout)
	}
	w.queue.Add(-1)
	<-w.turn
	w.group.pool.afterUse(w)
}

func (w *vmWorker) hasEnded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

// load loads a machine. The first request to a worker has the scripts.
func (w *vmWorker) load(ctx context.Context, v *VM) error {
	q := request{Op: opLoad, VM: v.number, Limits: &w.group.limits}
	if w.count == 0 {
		q.Scripts = w.group.scripts
	}
	w.mu.Lock()
	w.vms[v.number] = v
	w.mu.Unlock()
	_, err := w.step(ctx, q)
	if err != nil {
		w.close(v)
	}
	return err
}

// call calls a function of a machine.
func (w *vmWorker) call(ctx context.Context, v *VM, function string, arg json.RawMessage) (json.RawMessage, error) {
	w.mu.Lock()
	known := w.vms[v.number] == v
	w.mu.Unlock()
	if !known {
		return nil, ErrLost
	}
	a, err := w.step(ctx, request{Op: opCall, VM: v.number, Function: function, Input: arg})
	if err != nil {
		return nil, err
	}
	if len(a.Value) == 0 {
		w.end()
		return nil, errUnexpected(errors.New("response without a value"))
	}
	return a.Value, nil
}

// trim lets the worker close machines if it has more memory than its share. An error ends it.
func (w *vmWorker) trim(ctx context.Context) {
	if w.memory.Load() > w.group.pool.share(w.group.limits) && w.lock(ctx) == nil {
		_, _ = w.step(ctx, request{Op: opTrim})
		w.unlock()
	}
}

// cancelGrace is the time that a step has to end after its context. Most steps end in it,
// and the worker need not be killed.
const cancelGrace = 50 * time.Millisecond

// maxStepResponse is the maximum size of a response in bytes: a result and the fields around it.
const maxStepResponse = MaxStep + 1<<20

// step performs a request. The caller has the lock. An error other than a *js.Error ends the
// worker.
func (w *vmWorker) step(ctx context.Context, q request) (response, error) {
	q.Time, q.Memory, q.Closed = w.group.limits.Time, w.group.pool.share(w.group.limits), w.takeClosed()
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(cancelGrace, func() { cancel(context.Cause(ctx)) })
	})
	defer stop()
	a, err := w.run(late, q, maxStepResponse)
	if err != nil {
		if endedBefore := !w.end(); endedBefore || errors.Is(err, errNotSent) {
			return a, ErrLost
		}
		return a, err
	}
	w.memory.Store(a.Memory)
	w.lose(a.Lost, q.VM)
	failure, valid := a.stepError()
	if !valid {
		w.end()
		return a, errUnexpected(failure)
	}
	return a, failure
}

// takeClosed returns the machines that were closed since the last request.
func (w *vmWorker) takeClosed() []uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	closed := w.closed
	w.closed = nil
	return closed
}

// close releases a machine.
func (w *vmWorker) close(v *VM) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.vms[v.number] == v && !w.ended {
		w.closed = append(w.closed, v.number)
	}
	delete(w.vms, v.number)
}

// lose forgets machines that the worker has closed, except the one whose step it was.
func (w *vmWorker) lose(numbers []uint64, current uint64) {
	var lost []*VM
	w.mu.Lock()
	for _, number := range numbers {
		if v := w.vms[number]; v != nil && number != current {
			lost = append(lost, v)
			delete(w.vms, number)
		}
	}
	w.mu.Unlock()
	callGone(lost)
}

// callGone reports machines as lost. It must be called without a lock.
func callGone(lost []*VM) {
	for _, v := range lost {
		if v.gone != nil {
			v.gone()
		}
	}
}

// expire ends the worker if it is still idle.
func (w *vmWorker) expire() {
	if w.tryLock() {
		w.end()
		w.unlock()
	}
}

// end kills the worker. All its machines are lost. It may be called without the lock. It reports
// whether the worker had not ended before.
func (w *vmWorker) end() bool {
	w.mu.Lock()
	first := !w.ended
	w.ended = true
	var lost []*VM
	for _, v := range w.vms {
		lost = append(lost, v)
	}
	clear(w.vms)
	w.mu.Unlock()
	if !first {
		return false
	}
	w.conn.Close()
	w.expiry.Stop()
	w.group.remove(w)
	w.group.pool.remove(w)
	callGone(lost)
	return true
}
