package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// taskEvents streams the public events of a task until its result, as JSON
// lines or server-sent events. With follow=1 it waits for further events. With
// deltas=1 it also sends the text that models are generating.
func (a *api) taskEvents(w http.ResponseWriter, r *http.Request) error {
	follow, err := boolParam(r, "follow")
	if err != nil {
		return err
	}
	deltas, err := boolParam(r, "deltas")
	if err != nil {
		return err
	}
	after, err := parseLastEvent(r)
	if err != nil {
		return err
	}
	newest := a.rt.JournalStore().LastSeq() // read before the task: the end of a task that runs has a higher number
	task, err := a.ownTask(r)
	if err != nil {
		return err
	}
	release, err := a.limitWaiting(r)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := UntilShutdown(r.Context())
	defer cancel()
	s := newEventStream(w, r)
	ended := task.Status.Ended()
	if follow && !ended { // tells the client at once that it is connected
		s.open()
	}
	after = max(min(after, newest), task.FirstSeq) // a number that no event has yet counts as newest
	events := a.rt.JournalStore().FollowTask(ctx, task.ID, after, follow && !ended)
	if deltas && follow && !ended {
		events = a.rt.WatchTask(ctx, task.ID, after)
	}
	if err := s.sendAll(task.ID, a.eventsFor(r, events), a.rt.EndsTask, func() error { return a.authenticate.Revalidate(r) }); err != nil {
		return a.abortStream(s, err)
	}
	s.close(ended)
	return nil
}

// limitWaiting counts a request that may take long. A caller may have maxEventRequests of
// them at once, the operator any number.
//
// Errors: RateLimited.
func (a *api) limitWaiting(r *http.Request) (release func(), err error) {
	sender := auth.SenderOf(r)
	if sender.Kind == identity.Operator {
		return func() {}, nil
	}
	return a.eventLimiter.Acquire(sender)
}

// eventsFor returns events as the sender of a request is shown them.
func (a *api) eventsFor(r *http.Request, events iter.Seq2[journal.Event, error]) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		shown := a.followVisibility(r)
		for e, err := range events {
			if e.Body != nil {
				e = shown().mask(e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// abortStream ends a stream after an error of the journal or of authentication. If
// events have been sent, it aborts the connection, so that the client does not
// take the stream for complete. That a client has disconnected is no failure.
func (a *api) abortStream(s *eventStream, err error) error {
	if !s.opened {
		return err
	}
	if s.r.Context().Err() == nil && !errors.Is(err, context.Canceled) {
		a.failures.LogRequest(slog.LevelError, "event stream aborted", auth.SenderOf(s.r), s.r, err)
	}
	panic(http.ErrAbortHandler)
}

// parseLastEvent returns the number of the last event that the client has
// received. It is in the header Last-Event-ID, or in the query for clients that
// cannot set headers.
func parseLastEvent(r *http.Request) (uint64, error) {
	if text := r.Header.Get("Last-Event-ID"); text != "" {
		return parseSeq(text, "Last-Event-ID")
	}
	return parseSeq(r.URL.Query().Get("after"), "after")
}

// parseSeq parses an event number; "" is 0.
func parseSeq(text, field string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 1<<64-1 {
		return 0, errcode.New(errcode.InvalidArguments, "%s is %q; want an event number", field, text).With("field", field)
	}
	return n, nil
}

// formatSeq formats an event number.
func formatSeq(n uint64) string { return strconv.FormatUint(n, 10) }

// eventStream writes events as they occur. Writes fail if the client does not
// read.
type eventStream struct {
	w        http.ResponseWriter
	r        *http.Request
	sse      bool
	resuming bool // the client has been connected before
	opened   bool
}

// newEventStream returns a stream that answers r in the format that the client
// accepts.
func newEventStream(w http.ResponseWriter, r *http.Request) *eventStream {
	return &eventStream{w: w, r: r, sse: acceptsSSE(r), resuming: r.Header.Get("Last-Event-ID") != ""}
}

// acceptsSSE reports whether the client accepts server-sent events.
func acceptsSSE(r *http.Request) bool { return accepts(r, "text/event-stream") }

// accepts reports whether the client accepts a media type by its name.
func accepts(r *http.Request, mediaType string) bool {
	for kind := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		name, _, _ := strings.Cut(kind, ";")
		if strings.EqualFold(strings.TrimSpace(name), mediaType) {
			return true
		}
	}
	return false
}

// open sends the headers, once.
func (s *eventStream) open() {
	if s.opened {
		return
	}
	s.opened = true
	kind := wire.NDJSON
	if s.sse {
		kind = "text/event-stream"
	}
	s.w.Header().Set("Content-Type", kind)
	s.w.WriteHeader(http.StatusOK)
	_ = s.flush()
}

// sendAll sends the public events of a task until it has sent an event that ends
// reports. It returns the error of events, of encoding one, or of authorize, which is called before
// each event. It returns nil when the client disconnects.
func (s *eventStream) sendAll(task identity.TaskID, events iter.Seq2[journal.Event, error], ends func(journal.Event) bool, authorize func() error) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		if e.Task != task || !journal.IsPublic(e.Body) {
			continue
		}
		if err := authorize(); err != nil {
			return err
		}
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if s.write(e.Seq, text) != nil {
			return nil
		}
		if ends(e) {
			return nil
		}
	}
	return nil
}

// write writes one encoded event.
func (s *eventStream) write(seq uint64, text []byte) error {
	s.open()
	form := "%[2]s\n"
	switch {
	case s.sse && seq == 0: // a delta is not stored, so a client cannot resume at it
		form = "data: %[2]s\n\n"
	case s.sse:
		form = "id: %[1]d\ndata: %[2]s\n\n"
	}
	if _, err := fmt.Fprintf(s.w, form, seq, text); err != nil {
		return err
	}
	return s.flush()
}

// close ends the stream. A browser reconnects by itself. The status 204 stops it: it is the answer if the
// task has ended and the browser has all events.
func (s *eventStream) close(ended bool) {
	if !s.opened && s.sse && s.resuming && ended {
		s.w.WriteHeader(http.StatusNoContent)
		return
	}
	s.open()
}

// flush sends buffered events, so that the client receives each event at once.
func (s *eventStream) flush() error { return http.NewResponseController(s.w).Flush() }

// shutdownKey is the context key for the context that ends when Serve begins to
// shut down.
type shutdownKey struct{}

// UntilShutdown returns a context for a response without a time limit. It ends
// with ctx, the context of a request, and when Serve begins to shut down. It is
// meant for mcpserver.Config.Streaming.
func UntilShutdown(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	serving, ok := ctx.Value(shutdownKey{}).(context.Context)
	if !ok {
		return ctx, cancel
	}
	stop := context.AfterFunc(serving, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
