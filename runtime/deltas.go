package runtime

import (
	"context"
	"iter"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// deltaHub passes on what models are saying to whoever watches a task. It is
// shown and forgotten: who comes late or reads too slowly misses it.
type deltaHub struct {
	last     atomic.Uint64 // event that this process recorded
	mu       sync.Mutex    // guards watchers
	watchers map[identity.TaskID]map[chan delta]bool
}

// delta is a part of an answer, and the last event that was on record when it
// came: it is shown behind that one and before any that its agent does next.
type delta struct {
	journal.Event
	after uint64
}

// maxPending is how many pieces a watcher may be behind before it misses some.
const maxPending = 256

func (l *deltaHub) watch(id identity.TaskID) (<-chan delta, func()) {
	c := make(chan delta, maxPending)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watchers == nil {
		l.watchers = map[identity.TaskID]map[chan delta]bool{}
	}
	if l.watchers[id] == nil {
		l.watchers[id] = map[chan delta]bool{}
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

// committed is called with the events of a commit before anybody acts on it.
func (l *deltaHub) committed(events []journal.Event) {
	if len(events) == 0 {
		return
	}
	seq := events[len(events)-1].Seq
	for last := l.last.Load(); last < seq && !l.last.CompareAndSwap(last, seq); {
		last = l.last.Load()
	}
}

func (l *deltaHub) watched(id identity.TaskID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.watchers[id]) > 0
}

func (l *deltaHub) publish(p delta) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.watchers[p.Task] {
		select {
		case c <- p:
		default:
		}
	}
}

// publishDelta passes on a piece of an agent's answer.
func (a *actor) publishDelta(d model.Delta) {
	if d.Answer != nil || !a.rt.deltas.watched(a.task) {
		return
	}
	said := journal.ModelDelta{Text: truncateDelta(d.Text), Tool: truncateDelta(d.Tool), Args: truncateDelta(d.Args), Restart: d.Restart, Note: truncateDelta(d.Note)}
	a.rt.deltas.publish(delta{a.event(said), max(a.state.seq, a.rt.deltas.last.Load())})
}

// truncateDelta bounds a piece: who watches and does not read holds many.
func truncateDelta(text string) string {
	const most = 16 << 10
	return strings.Clone(chat.Clean(short(text, most)))
}

// Watch gives a task's events after a sequence number, up to its result, as
// they come and until ctx ends; with what its models are saying in between
// (journal.ModelDelta), which has no sequence number and is kept nowhere. What
// an agent says comes between the events before and after which it said it.
func (rt *Runtime) Watch(ctx context.Context, id identity.TaskID, after uint64) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		said, leave := rt.deltas.watch(id)
		defer leave()
		w := eventMerger{deltas: said, events: make(chan storedEvent), lastSeq: after, yield: yield}
		following, stop := context.WithCancel(ctx)
		defer func() {
			stop()
			for range w.events { // until nobody follows
			}
		}()
		go func() {
			defer close(w.events)
			rt.follow(following, id, after, w.events)
		}()
		for w.step() {
		}
	}
}

// follow sends events on, up to a task's result.
func (rt *Runtime) follow(ctx context.Context, id identity.TaskID, after uint64, to chan<- storedEvent) {
	for e, err := range rt.store.FollowTask(ctx, id, after, true) {
		shown := err == nil && e.Task == id && journal.Public(e.Body)
		select {
		case to <- storedEvent{e, err, shown}:
		case <-ctx.Done():
			return
		}
		if _, ended := e.Body.(journal.Result); ended && shown {
			return
		}
	}
}

// eventMerger puts what is said and what is kept into one order.
type eventMerger struct {
	deltas  <-chan delta
	events  chan storedEvent
	pending *delta // came before the event it follows
	lastSeq uint64 // the last event that was looked at
	yield   func(journal.Event, error) bool
}

type storedEvent struct {
	event journal.Event
	err   error
	shown bool // it is one of the task's, for everybody
}

// step gives what comes next; false when that was the last.
func (w *eventMerger) step() bool {
	said := w.deltas
	if w.pending != nil { // what came behind it waits too
		said = nil
	}
	select {
	case p := <-said:
		w.pending = &p
		return w.emitDeltas(w.lastSeq)
	case k, open := <-w.events:
		if !open {
			return false
		}
		return w.emitEvent(k)
	}
}

// emitEvent gives an event, with what was said before it and what waited for it.
func (w *eventMerger) emitEvent(k storedEvent) bool {
	if k.err != nil {
		return w.yield(k.event, k.err)
	}
	if !w.emitDeltas(k.event.Seq - 1) {
		return false
	}
	w.lastSeq = k.event.Seq
	return (!k.shown || w.yield(k.event, nil)) && w.emitDeltas(w.lastSeq)
}

// emitDeltas gives what was said up to an event; false when nobody listens.
func (w *eventMerger) emitDeltas(upTo uint64) bool {
	for w.next() && w.pending.after <= upTo {
		said := w.pending.Event
		w.pending = nil
		if !w.yield(said, nil) {
			return false
		}
	}
	return true
}

// next says whether a piece is there.
func (w *eventMerger) next() bool {
	if w.pending != nil {
		return true
	}
	select {
	case p := <-w.deltas:
		w.pending = &p
		return true
	default:
		return false
	}
}
