package runtime

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// deltaHub publishes partial model output to the watchers of a task. Deltas are
// not stored, and a slow watcher misses some.
type deltaHub struct {
	lastSeq     atomic.Uint64                             // sequence number of the last event that this process committed
	mu          sync.Mutex                                // guards newest and subscribers
	newest      uint64                                    // number of the last watcher that subscribed
	subscribers map[identity.TaskID]map[chan delta]uint64 // with their numbers
}

// delta is a part of an answer. It is shown after the event with sequence
// number after and before any later event of its agent.
type delta struct {
	journal.Event
	after uint64
}

// maxPending is the number of deltas that may queue for a watcher. Further ones
// are dropped.
const maxPending = 256

// subscribe returns a channel of the deltas of a task. It ends when the
// returned function is called.
func (h *deltaHub) subscribe(id identity.TaskID) (<-chan delta, func()) {
	c := make(chan delta, maxPending)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subscribers == nil {
		h.subscribers = map[identity.TaskID]map[chan delta]uint64{}
	}
	if h.subscribers[id] == nil {
		h.subscribers[id] = map[chan delta]uint64{}
	}
	h.newest++
	h.subscribers[id][c] = h.newest
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if delete(h.subscribers[id], c); len(h.subscribers[id]) == 0 {
			delete(h.subscribers, id)
		}
	}
}

// committed advances lastSeq. It is called with the events of a commit before
// anything acts on them.
func (h *deltaHub) committed(events []journal.Event) {
	if len(events) == 0 {
		return
	}
	seq := events[len(events)-1].Seq
	for last := h.lastSeq.Load(); last < seq && !h.lastSeq.CompareAndSwap(last, seq); {
		last = h.lastSeq.Load()
	}
}

// hasSubscribers reports whether the task has watchers.
func (h *deltaHub) hasSubscribers(id identity.TaskID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subscribers[id]) > 0
}

// publish sends a delta to the watchers of its task. Those with a number above
// known get the deltas that missed returns first. A watcher whose queue is full is
// skipped. It returns the number of the newest watcher.
func (h *deltaHub) publish(d delta, known uint64, missed func() []delta) (newest uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c, n := range h.subscribers[d.Task] {
		if n > known {
			for _, m := range missed() {
				offer(c, m)
			}
		}
		offer(c, d)
	}
	return h.newest
}

// offer sends a delta unless the queue is full.
func offer(c chan<- delta, d delta) {
	select {
	case c <- d:
	default:
	}
}

// publishDelta publishes a part of the answer. A watcher that has subscribed since
// the answer began gets the last note and the text so far before it.
func (x *exchange) publishDelta(d model.AnswerDelta) {
	if d.Answer != nil {
		return
	}
	if d.Restart {
		x.text.Reset()
	}
	if x.isUngrounded() { // the text may have to be withheld
		d.Text = ""
	}
	if x.a.rt.deltas.hasSubscribers(x.a.task) {
		body := journal.ModelDelta{Text: truncateDelta(d.Text), Tool: truncateDelta(d.Tool), Args: truncateDelta(d.Args), Restart: d.Restart, Note: truncateDelta(d.Note)}
		x.watchers = x.a.rt.deltas.publish(x.a.delta(body), x.watchers, x.published)
	}
	x.note = cmp.Or(truncateDelta(d.Note), x.note)
	x.text.WriteString(d.Text)
}

// published returns the last note and the published text of the answer as deltas.
func (x *exchange) published() (parts []delta) {
	if x.note != "" {
		parts = append(parts, x.a.delta(journal.ModelDelta{Note: x.note}))
	}
	for text := x.text.String(); text != ""; {
		part := textutil.Prefix(text, maxDelta)
		parts = append(parts, x.a.delta(journal.ModelDelta{Text: chat.CleanText(part)}))
		text = text[len(part):]
	}
	return parts
}

// delta returns a delta that follows the events committed so far.
func (a *actor) delta(d journal.ModelDelta) delta {
	return delta{a.event(d), max(a.state.seq, a.rt.deltas.lastSeq.Load())}
}

// maxDelta is the largest size of a text in a delta in bytes.
const maxDelta = 16 << 10

// truncateDelta bounds the text of a delta, since slow watchers queue up to
// maxPending of them. It copies the text to release the rest.
func truncateDelta(text string) string {
	return strings.Clone(chat.CleanText(textutil.Truncate(text, maxDelta)))
}

// WatchTask yields the events of a task after a sequence number, as they are
// committed, until its result or until ctx ends. Between them it yields partial
// model output (journal.ModelDelta), which has no sequence number and is not
// stored. A delta comes after the events that its agent had committed before
// it, and before those it commits later. The first delta of an answer in progress
// comes after what the answer has of text already.
func (rt *Runtime) WatchTask(ctx context.Context, id identity.TaskID, after uint64) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		deltas, unsubscribe := rt.deltas.subscribe(id)
		defer unsubscribe()
		merger := eventMerger{deltas: deltas, events: make(chan storedEvent), lastSeq: after, yield: yield}
		followCtx, stop := context.WithCancel(ctx)
		defer func() {
			stop()
			for range merger.events { // until the goroutine has ended
			}
		}()
		go func() {
			defer close(merger.events)
			rt.follow(followCtx, id, after, merger.events)
		}()
		for merger.step() {
		}
	}
}

// follow sends the stored events of a task to a channel, up to the task's
// result.
func (rt *Runtime) follow(ctx context.Context, id identity.TaskID, after uint64, to chan<- storedEvent) {
	for e, err := range rt.store.FollowTask(ctx, id, after, journal.WaitForMore) {
		public := err == nil && e.Task == id && journal.IsPublic(e.Body)
		select {
		case to <- storedEvent{e, err, public}:
		case <-ctx.Done():
			return
		}
		if public && rt.EndsTask(e) {
			return
		}
	}
}

// eventMerger interleaves deltas with stored events in sequence order.
type eventMerger struct {
	deltas  <-chan delta
	events  chan storedEvent
	pending *delta // received before the event that it follows
	lastSeq uint64 // the last event received
	yield   func(journal.Event, error) bool
}

// storedEvent is an event of the store, or the error of reading it.
type storedEvent struct {
	event  journal.Event
	err    error
	public bool // it belongs to the task and is public
}

// step waits for the next event or delta and yields what is due. It returns
// false at the end.
func (m *eventMerger) step() bool {
	deltas := m.deltas
	if m.pending != nil { // the deltas after it wait too
		deltas = nil
	}
	select {
	case d := <-deltas:
		m.pending = &d
		return m.emitDeltas(m.lastSeq)
	case e, open := <-m.events:
		if !open {
			return false
		}
		return m.emitEvent(e)
	}
}

// emitEvent yields an event, after the deltas that precede it and before those
// that follow it.
func (m *eventMerger) emitEvent(e storedEvent) bool {
	if e.err != nil {
		return m.yield(e.event, e.err)
	}
	if !m.emitDeltas(e.event.Seq - 1) {
		return false
	}
	m.lastSeq = e.event.Seq
	return (!e.public || m.yield(e.event, nil)) && m.emitDeltas(m.lastSeq)
}

// emitDeltas yields the deltas up to a sequence number. It returns false if the
// consumer has stopped.
func (m *eventMerger) emitDeltas(upTo uint64) bool {
	for m.hasDelta() && m.pending.after <= upTo {
		event := m.pending.Event
		m.pending = nil
		if !m.yield(event, nil) {
			return false
		}
	}
	return true
}

// hasDelta reports whether a delta is pending, after receiving one if possible.
func (m *eventMerger) hasDelta() bool {
	if m.pending != nil {
		return true
	}
	select {
	case d := <-m.deltas:
		m.pending = &d
		return true
	default:
		return false
	}
}
