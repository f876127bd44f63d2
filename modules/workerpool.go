package modules

import "time"

// workerPool runs calls in goroutines and reuses an idle goroutine for the next call.
// The stack of a used goroutine has grown already. The stack of a new goroutine would
// be copied several times during a call into a database driver.
type workerPool struct {
	calls chan func()
	done  <-chan struct{} // closed when there are no further calls
}

// workerIdleTimeout is how long a goroutine waits for its next call.
const workerIdleTimeout = 100 * time.Millisecond

// run starts call and returns.
func (w *workerPool) run(call func()) {
	select {
	case w.calls <- call:
	default:
		go w.work(call)
	}
}

// work runs calls until none has come for workerIdleTimeout. A call may end the
// goroutine.
func (w *workerPool) work(call func()) {
	idle := time.NewTimer(workerIdleTimeout)
	defer idle.Stop()
	for {
		call()
		idle.Reset(workerIdleTimeout)
		select {
		case call = <-w.calls:
		case <-idle.C:
			return
		case <-w.done:
			return
		}
	}
}
