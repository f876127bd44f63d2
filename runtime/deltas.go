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
// not stored, and a slow watcher misses some. A watcher gets what the answers in progress
// have at once.
type deltaHub struct {
	lastSeq     atomic.Uint64                                // sequence number of the last event that this process committed
	mu          sync.Mutex                                   // guards the maps and the answers in progress
	subscribers map[identity.TaskID]map[chan delta]struct{}  // the watchers of each task
	answers     map[identity.TaskID]map[*liveAnswer]struct{} // those that models are writing
}

// delta is a part of an answer. It is shown after the event with sequence
// number after and before any later event of its agent.
type delta struct {
	journal.Event
	after uint64
}

// liveAnswer is an answer that a model is writing. It is empty before its first delta.
type liveAnswer struct {
	last delta           // the last delta
	text strings.Builder // published so far
	note string          // the last published one
}

// maxPending is the number of deltas that may queue for a watcher. Further deltas are dropped.
const maxPending = 256

// subscribe returns a channel of the deltas of a task, which begins with the answers in
// progress. It ends when the returned function is called.
func (h *deltaHub) subscribe(id identity.TaskID) (<-chan delta, func()) {
	c := make(chan delta, maxPending)
	h.mu.Lock()
	defer h.mu.Unlock()
	for answer := range h.answers[id] {
		for _, part := range answer.published() {
			offer(c, part)
		}
	}
	addTo(&h.subscribers, id, c)
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		removeFrom(h.subscribers, id, c)
	}
}

// begin adds an answer of a task, until the returned function is called.
func (h *deltaHub) begin(id identity.TaskID, answer *liveAnswer) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	addTo(&h.answers, id, answer)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		removeFrom(h.answers, id, answer)
	}
}

// addTo adds a member to the set of a task.
func addTo[T comparable](sets *map[identity.TaskID]map[T]struct{}, id identity.TaskID, member T) {
	if *sets == nil {
		*sets = map[identity.TaskID]map[T]struct{}{}
	}
	if (*sets)[id] == nil {
		(*sets)[id] = map[T]struct{}{}
	}
	(*sets)[id][member] = struct{}{}
}

// removeFrom removes a member from the set of a task, and the set with its last one.
func removeFrom[T comparable](sets map[identity.TaskID]map[T]struct{}, id identity.TaskID, member T) {
	if delete(sets[id], member); len(sets[id]) == 0 {
		delete(sets, id)
	}
}

// advanceSeq advances lastSeq. It is called with the events of a commit before
// anything acts on them.
func (h *deltaHub) advanceSeq(events []journal.Event) {
	if len(events) == 0 {
		return
	}
	seq := events[len(events)-1].Seq
	for last := h.lastSeq.Load(); last < seq && !h.lastSeq.CompareAndSwap(last, seq); {
		last = h.lastSeq.Load()
	}
}

// publish adds a delta to an answer and sends it to the watchers of its task. A watcher
// whose queue is full is skipped.
func (h *deltaHub) publish(answer *liveAnswer, d model.AnswerDelta, at delta) {
	h.mu.Lock()
	defer h.mu.Unlock()
	answer.add(d, at)
	watchers := h.subscribers[at.Task]
	if len(watchers) == 0 {
		return
	}
	part := answer.part(journal.ModelDelta{Text: truncateDelta(d.Text), Tool: truncateDelta(d.Tool), Args: truncateDelta(d.Args), Restart: d.Restart, Note: truncateDelta(d.Note)})
	for c := range watchers {
		offer(c, part)
	}
}

// offer sends a delta unless the queue is full.
func offer(c chan<- delta, d delta) {
	select {
	case c <- d:
	default:
	}
}

// publishDelta publishes a part of the answer.
func (x *exchange) publishDelta(d model.AnswerDelta) {
	if d.Answer != nil {
		return
	}
	if x.isUngrounded() { // the text may have to be withheld
		d.Text = ""
	}
	a := x.a
	a.rt.deltas.publish(&x.live, d, delta{a.event(nil), max(a.state.seq, a.rt.deltas.lastSeq.Load())})
}

// add adds a delta to the answer. It follows the events committed so far, as at says.
func (l *liveAnswer) add(d model.AnswerDelta, at delta) {
	if d.Restart {
		l.text.Reset()
	}
	l.last, l.note = at, cmp.Or(truncateDelta(d.Note), l.note)
	l.text.WriteString(d.Text)
}

// part returns a part of the answer, at the place of the last delta.
func (l *liveAnswer) part(body journal.ModelDelta) delta {
	part := l.last
	part.Body = body
	return part
}

// published returns the last note and the published text as deltas.
func (l *liveAnswer) published() (parts []delta) {
	if l.note != "" {
		parts = append(parts, l.part(journal.ModelDelta{Note: l.note}))
	}
	for text := l.text.String(); text != ""; {
		part := textutil.Prefix(text, maxDelta)
		parts = append(parts, l.part(journal.ModelDelta{Text: chat.CleanText(part)}))
		text = text[len(part):]
	}
	return parts
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
// it, and before those it commits later. The text that an answer in progress has
// already comes at once.
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

// emitEvent yields an event, after the deltas that precede it and before the deltas that follow it.
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
	for m.receiveDelta() && m.pending.after <= upTo {
		event := m.pending.Event
		m.pending = nil
		if !m.yield(event, nil) {
			return false
		}
	}
	return true
}

// receiveDelta receives a delta if none is pending and one has come. It reports whether one is
// pending.
func (m *eventMerger) receiveDelta() bool {
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
