package notify

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/metrics"
)

// Limits of a receiver.
const (
	savedStep     = 10_000          // events without a message after which the position is stored
	maxRetryAfter = 5 * time.Minute // longest delay that the header Retry-After may set
	journalDelay  = 5 * time.Second // after an error of the journal
)

// receiver sends messages to one address, one after another.
type receiver struct {
	config.Notification
	engine      *Engine
	client      *http.Client
	predecessor *receiver // the earlier receiver of this name, which must stop first; nil for none
	count       *counters

	begun   bool        // guarded by Engine.mu, like unlink
	unlink  func() bool // ends the link to the context of start; nil before start
	failing bool        // the last attempt failed; only run uses it
	cancel  context.CancelFunc
	ctx     context.Context
	done    chan struct{}
}

// counters count what was sent to a receiver.
type counters struct {
	delivered, retried, dropped atomic.Uint64
	since                       atomic.Int64 // time of the event that is being sent, in Unix nanoseconds; 0 for none
}

func (c *counters) read() metrics.DeliveryCounts {
	d := metrics.DeliveryCounts{Delivered: c.delivered.Load(), Retried: c.retried.Load(), Dropped: c.dropped.Load()}
	if since := c.since.Load(); since != 0 {
		d.Delay = max(0, time.Since(time.Unix(0, since)))
	}
	return d
}

func newReceiver(e *Engine, n config.Notification, predecessor *receiver) *receiver {
	r := &receiver{Notification: n, engine: e, client: newClient(n, e.config.Timeout), predecessor: predecessor, count: &counters{}, done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if predecessor != nil {
		r.count = predecessor.count
	}
	return r
}

// withoutPlace returns a notification without its place in the files, which does not matter.
func withoutPlace(n config.Notification) config.Notification {
	n.Pos = yamldoc.Pos{}
	return n
}

func (r *receiver) withoutPlace() config.Notification { return withoutPlace(r.Notification) }

// start begins to send until ctx ends or stop is called. It must be called with Engine.mu held.
func (r *receiver) start(ctx context.Context) {
	if r.begun {
		return
	}
	r.begun = true
	r.unlink = context.AfterFunc(ctx, r.cancel)
	go r.run()
}

// stop ends an attempt in progress, and sends no more. It must be called
// with Engine.mu held.
func (r *receiver) stop() {
	r.cancel()
	if !r.begun {
		r.begun = true
		close(r.done)
		return
	}
	r.unlink()
}

func (r *receiver) wait() { <-r.done }

func (r *receiver) run() {
	defer close(r.done)
	if r.predecessor != nil {
		r.predecessor.wait()
		r.predecessor = nil
	}
	for r.ctx.Err() == nil {
		if err := r.follow(); err != nil && r.ctx.Err() == nil {
			r.log(slog.LevelError, "notifications not sent", err)
			r.pause(journalDelay)
		}
	}
}

// follow sends a message about each event after the stored position, until the receiver stops.
func (r *receiver) follow() error {
	after, err := r.position()
	if err != nil {
		return err
	}
	delays, saved := r.engine.config.Delays, after
	for e, err := range r.engine.config.Journal.FollowMatching(r.ctx, r.wants, after, journal.WaitForMore) {
		if err != nil {
			return err
		}
		if e.Body != nil && !r.deliver(e, &delays) {
			return nil
		}
		if e.Body == nil && e.Seq < saved+savedStep {
			continue
		}
		if err := r.engine.positions.move(r.ctx, r.Name, e.Seq); err != nil {
			return err
		}
		saved = e.Seq
	}
	return nil
}

// position returns the position of the receiver. If positions could not be read so far, it reads
// them; a receiver without one begins now.
func (r *receiver) position() (uint64, error) {
	if seq, known := r.engine.positions.find(r.Name); known {
		return seq, nil
	}
	return r.engine.positions.add(r.ctx, r.Name, r.engine.config.Journal.LastSeq())
}

// wants reports whether the receiver is told about an event.
func (r *receiver) wants(h journal.EventHead) bool {
	return slices.ContainsFunc(r.Events, func(name string) bool { return h.IsType(journal.EventType(name)) })
}

// deliver sends the message about an event, and tries again until it is accepted, refused for
// good, or too old. It reports false if the receiver stops before.
func (r *receiver) deliver(e journal.Event, delays *backoff.Backoff) bool {
	r.count.since.Store(e.At.UnixNano())
	defer r.count.since.Store(0)
	body, err := r.encode(e)
	if err != nil {
		r.drop(e, err)
		return true
	}
	until := later(e.At, r.engine.began).Add(r.RetryFor)
	for {
		if r.failing && time.Now().After(until) {
			r.drop(e, errTooOld)
			return true
		}
		got, err := r.post(r.ctx, messageID(e), body)
		if r.failing = err != nil; !r.failing {
			r.count.delivered.Add(1)
			delays.Reset()
			return true
		}
		if r.ctx.Err() != nil {
			return false
		}
		wait := max(delays.Next(), got.retryAfter)
		if got.refusesForGood() || time.Now().Add(wait).After(until) {
			r.drop(e, err)
			return true
		}
		r.count.retried.Add(1)
		r.log(slog.LevelWarn, "notification not delivered; it is tried again", err, "id", messageID(e), "after", wait.String())
		if !r.pause(wait) {
			return false
		}
	}
}

var errTooOld = errors.New("the receiver did not accept the messages before it, and it is too old now")

// log writes a line about an error, without secrets.
func (r *receiver) log(level slog.Level, text string, err error, attributes ...any) {
	err = r.engine.config.Redact().RedactError(err)
	r.engine.log.LogFailure(level, text, r.Name, err, append(attributes, "notification", r.Name)...)
}

// drop gives up a message.
func (r *receiver) drop(e journal.Event, err error) {
	r.count.dropped.Add(1)
	r.log(slog.LevelError, "notification dropped", err, "id", messageID(e))
}

// pause waits for a time. It reports false if the receiver stops before.
func (r *receiver) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.ctx.Done():
		return false
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
