package js

import (
	"context"
	"time"
)

// watcher ends an entry that is out of time or no longer wanted.
//
// The engine asks whether it should stop once in ten thousand loops and calls,
// and not at all inside a built-in function. So when the time has come the
// watcher, again and again until the entry has ended, raises the interrupt,
// which an entry that begins just then would clear, and takes the memory away,
// so that whatever allocates fails at once.
type watcher struct {
	done  chan struct{} // closed when the entry has ended
	quiet chan error    // gives why the entry was ended, nil if it was not
}

// interruptInterval is how often an entry that does not end is told again.
const interruptInterval = 2 * time.Millisecond

// watch begins to watch one entry. stop must be called before v is touched
// again.
func (v *VM) watch(ctx context.Context) watcher {
	w := watcher{make(chan struct{}), make(chan error, 1)}
	go func() { w.quiet <- w.run(ctx, v) }()
	return w
}

// stop waits until the watcher is gone and gives why it ended the entry.
func (w watcher) stop() error {
	close(w.done)
	return <-w.quiet
}

// run waits for the end of the entry, of ctx, or of the time there is.
func (w watcher) run(ctx context.Context, v *VM) error {
	timer := time.NewTimer(v.limits.Time)
	defer timer.Stop()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		w.interrupt(v)
		return cancelled(ctx)
	case <-timer.C:
		w.interrupt(v)
		return timeout(v.limits.Time)
	}
}

// interrupt stops v until the entry has ended.
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
