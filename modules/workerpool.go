package modules

import "time"

// workers run calls in goroutines of their own: in one that has run others, if
// one waits. Its stack has grown by then; a new one's would be copied several
// times on its way into a database.
type workers struct {
	next chan func()
	over <-chan struct{} // closed when there will be no call
}

// spare is how long a goroutine waits for the next call.
const spare = 100 * time.Millisecond

func (w *workers) run(call func()) {
	select {
	case w.next <- call:
	default:
		go w.work(call)
	}
}

// work returns when nothing comes; a call may end its goroutine.
func (w *workers) work(call func()) {
	idle := time.NewTimer(spare)
	defer idle.Stop()
	for {
		call()
		idle.Reset(spare)
		select {
		case call = <-w.next:
		case <-idle.C:
			return
		case <-w.over:
			return
		}
	}
}
