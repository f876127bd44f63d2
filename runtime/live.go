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

// live passes on what models are saying to whoever watches a task. It is
// shown and forgotten: who comes late or reads too slowly misses it.
type live struct {
	last     atomic.Uint64 // event that this process recorded
	mu       sync.Mutex    // guards watchers
	watchers map[identity.TaskID]map[chan piece]bool
}

// piece is a part of an answer, and the last event that was on record when it
// came: it is shown behind that one and before any that its agent does next.
type piece struct {
	journal.Event
	after uint64
}

// maxBehind is how many pieces a watcher may be behind before it misses some.
const maxBehind = 256

func (l *live) watch(id identity.TaskID) (<-chan piece, func()) {
	c := make(chan piece, maxBehind)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watchers == nil {
		l.watchers = map[identity.TaskID]map[chan piece]bool{}
	}
	if l.watchers[id] == nil {
		l.watchers[id] = map[chan piece]bool{}
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

// recorded is called with the events of a commit before anybody acts on it.
func (l *live) recorded(events []journal.Event) {
	if len(events) == 0 {
		return
	}
	seq := events[len(events)-1].Seq
	for last := l.last.Load(); last < seq && !l.last.CompareAndSwap(last, seq); {
		last = l.last.Load()
	}
}

func (l *live) watched(id identity.TaskID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.watchers[id]) > 0
}

func (l *live) publish(p piece) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.watchers[p.Task] {
		select {
		case c <- p:
		default:
		}
	}
}

// show passes on a piece of an agent's answer.
func (a *actor) show(d model.Delta) {
	if d.Answer != nil || !a.rt.live.watched(a.task) {
		return
	}
	said := journal.ModelDelta{Text: shown(d.Text), Tool: shown(d.Tool), Args: shown(d.Args), Restart: d.Again, Note: shown(d.Note)}
	a.rt.live.publish(piece{a.event(said), max(a.state.seq, a.rt.live.last.Load())})
}

// shown bounds a piece: who watches and does not read holds many.
func shown(text string) string {
	const most = 16 << 10
	return strings.Clone(chat.Clean(short(text, most)))
}

// Watch gives a task's events after a sequence number, up to its result, as
// they come and until ctx ends; with what its models are saying in between
// (journal.ModelDelta), which has no sequence number and is kept nowhere. What
// an agent says comes between the events before and after which it said it.
func (rt *Runtime) Watch(ctx context.Context, id identity.TaskID, after uint64) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		said, leave := rt.live.watch(id)
		defer leave()
		w := watch{said: said, kept: make(chan kept), passed: after, yield: yield}
		following, stop := context.WithCancel(ctx)
		defer func() {
			stop()
			for range w.kept { // until nobody follows
			}
		}()
		go func() {
			defer close(w.kept)
			rt.follow(following, id, after, w.kept)
		}()
		for w.step() {
		}
	}
}

// follow sends events on, up to a task's result.
func (rt *Runtime) follow(ctx context.Context, id identity.TaskID, after uint64, to chan<- kept) {
	for e, err := range rt.store.FollowTask(ctx, id, after, true) {
		shown := err == nil && e.Task == id && journal.Public(e.Body)
		select {
		case to <- kept{e, err, shown}:
		case <-ctx.Done():
			return
		}
		if _, ended := e.Body.(journal.Result); ended && shown {
			return
		}
	}
}

// watch puts what is said and what is kept into one order.
type watch struct {
	said   <-chan piece
	kept   chan kept
	held   *piece // came before the event it follows
	passed uint64 // the last event that was looked at
	yield  func(journal.Event, error) bool
}

type kept struct {
	event journal.Event
	err   error
	shown bool // it is one of the task's, for everybody
}

// step gives what comes next; false when that was the last.
func (w *watch) step() bool {
	said := w.said
	if w.held != nil { // what came behind it waits too
		said = nil
	}
	select {
	case p := <-said:
		w.held = &p
		return w.give(w.passed)
	case k, open := <-w.kept:
		if !open {
			return false
		}
		return w.record(k)
	}
}

// record gives an event, with what was said before it and what waited for it.
func (w *watch) record(k kept) bool {
	if k.err != nil {
		return w.yield(k.event, k.err)
	}
	if !w.give(k.event.Seq - 1) {
		return false
	}
	w.passed = k.event.Seq
	return (!k.shown || w.yield(k.event, nil)) && w.give(w.passed)
}

// give gives what was said up to an event; false when nobody listens.
func (w *watch) give(upTo uint64) bool {
	for w.next() && w.held.after <= upTo {
		said := w.held.Event
		w.held = nil
		if !w.yield(said, nil) {
			return false
		}
	}
	return true
}

// next says whether a piece is there.
func (w *watch) next() bool {
	if w.held != nil {
		return true
	}
	select {
	case p := <-w.said:
		w.held = &p
		return true
	default:
		return false
	}
}
