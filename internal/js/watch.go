package js

import (
	"context"
	"time"
)

// watcher interrupts a call that exceeds its time limit or whose context ends.
//
// The engine checks for an interrupt once in ten thousand loops and calls, and not at all
// inside of a built-in function. The watcher repeats the interrupt until the call has ended: an
// interrupt that comes before the call has begun is lost. It also sets the memory limit to the
// engine's minimum, so that a VM which has more fails at its next allocation. The VM is unusable
// afterwards.
type watcher struct {
	done   chan struct{} // closed when the call has ended
	result chan error    // receives the reason for the interrupt, nil if there was none
}

// interruptInterval is the time between two interrupts of a call that does not end.
const interruptInterval = 2 * time.Millisecond

// watch starts to watch a call. stop must be called before v is used again.
func (v *VM) watch(ctx context.Context) watcher {
	w := watcher{make(chan struct{}), make(chan error, 1)}
	go func() { w.result <- w.run(ctx, v) }()
	return w
}

// stop ends the watcher and returns the reason for its interrupt, nil if there was none.
func (w watcher) stop() error {
	close(w.done)
	return <-w.result
}

// run waits for the end of the call, of ctx or of the time limit.
func (w watcher) run(ctx context.Context, v *VM) error {
	timer := time.NewTimer(v.limits.Time)
	defer timer.Stop()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		w.interrupt(v)
		return cancelledError(ctx)
	case <-timer.C:
		w.interrupt(v)
		return timeoutError(v.limits.Time)
	}
}

// interrupt interrupts v until the call has ended.
func (w watcher) interrupt(v *VM) {
	tick := time.NewTicker(interruptInterval)
	defer tick.Stop()
	for {
		v.engine.Interrupt()
		v.engine.SetMemoryLimit(0)
		select {
		case <-w.done:
			return
		case <-tick.C:
		}
	}
}
