package runtime

import (
	"context"
	"iter"
	"sync"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// live passes on what models are saying to whoever watches a task. It is
// shown and forgotten: who comes late or reads too slowly misses it.
type live struct {
	mu       sync.Mutex
	watchers map[identity.TaskID]map[chan journal.Event]bool
}

// maxBehind is how many pieces a watcher may be behind before it misses some.
const maxBehind = 256

func (l *live) watch(id identity.TaskID) (<-chan journal.Event, func()) {
	c := make(chan journal.Event, maxBehind)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watchers == nil {
		l.watchers = map[identity.TaskID]map[chan journal.Event]bool{}
	}
	if l.watchers[id] == nil {
		l.watchers[id] = map[chan journal.Event]bool{}
	}
	l.watchers[id][c] = true
	return c, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if delete(l.watchers[id], c); len(l.watchers[id]) == 0 {
			delete(l.watchers, id)
		}
	}
}

func (l *live) watched(id identity.TaskID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.watchers[id]) > 0
}

func (l *live) publish(e journal.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.watchers[e.Task] {
		select {
		case c <- e:
		default:
		}
	}
}

// show passes on a piece of an agent's answer.
func (a *actor) show(d model.Delta) {
	if d.Answer != nil || !a.rt.live.watched(a.task) {
		return
	}
	a.rt.live.publish(a.event(journal.ModelDelta{Text: d.Text, Tool: d.Tool, Args: d.Args, Again: d.Again}))
}

// Watch gives a task's events after a sequence number, up to its result, as
// they come and until ctx ends; with what its models are saying in between
// (journal.ModelDelta), which has no sequence number and is kept nowhere.
func (rt *Runtime) Watch(ctx context.Context, id identity.TaskID, after uint64) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		said, leave := rt.live.watch(id)
		defer leave()
		kept := make(chan kept)
		go func() {
			defer close(kept)
			rt.follow(ctx, id, after, kept)
		}()
		for {
			select {
			case e := <-said:
				if !yield(e, nil) {
					return
				}
			case k, open := <-kept:
				if !open || !drained(said, yield) || !yield(k.event, k.err) {
					return
				}
			}
		}
	}
}

type kept struct {
	event journal.Event
	err   error
}

// follow sends a task's public events on, up to its result.
func (rt *Runtime) follow(ctx context.Context, id identity.TaskID, after uint64, to chan<- kept) {
	for e, err := range rt.store.Follow(ctx, after, true) {
		if err == nil && (e.Task != id || !journal.Public(e.Body)) {
			continue
		}
		select {
		case to <- kept{e, err}:
		case <-ctx.Done():
			return
		}
		if _, ended := e.Body.(journal.Result); ended {
			return
		}
	}
}

// drained yields what was said before the event that comes next.
func drained(said <-chan journal.Event, yield func(journal.Event, error) bool) bool {
	for {
		select {
		case e := <-said:
			if !yield(e, nil) {
				return false
			}
		default:
			return true
		}
	}
}
