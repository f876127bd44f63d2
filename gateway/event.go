package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// taskEvents streams the public events of a task, up to its result: one a
// line, or as server-sent events. With follow it waits for those to come; with
// deltas too it shows in between what models are saying.
func (a *api) taskEvents(w http.ResponseWriter, r *http.Request) error {
	follow, err := flag(r, "follow")
	if err != nil {
		return err
	}
	deltas, err := flag(r, "deltas")
	if err != nil {
		return err
	}
	after, err := resumePoint(r)
	if err != nil {
		return err
	}
	task, err := a.rt.TaskRecord(r.Context(), identity.TaskID(r.PathValue("id")))
	if err != nil {
		return err
	}
	ctx, cancel := untilShutdown(r.Context())
	defer cancel()
	s := newStream(w, r)
	ended := task.Status != org.Running
	if follow && !ended { // the peer learns that it is connected before the first event
		s.open()
	}
	after = max(after, task.FirstSeq)
	events := a.rt.Store().FollowTask(ctx, task.ID, after, follow && !ended)
	if deltas && follow && !ended {
		events = a.rt.Watch(ctx, task.ID, after)
	}
	if err := s.sendAll(task.ID, events, func() error { return a.reauthenticate(r) }); err != nil {
		return a.abortStream(s, err)
	}
	s.close(ended)
	return nil
}

// abortStream ends a stream that the log broke, or its token: one that has begun visibly, so
// that it does not pass for a whole one.
func (a *api) abortStream(s *stream, err error) error {
	if !s.opened {
		return err
	}
	a.log.Error("event stream broken", "error", err)
	panic(http.ErrAbortHandler)
}

// resumePoint gives the number of the last event the peer has seen: from
// Last-Event-ID, or from the query for peers that set no headers.
func resumePoint(r *http.Request) (uint64, error) {
	if text := r.Header.Get("Last-Event-ID"); text != "" {
		return seqOf(text, "Last-Event-ID")
	}
	return seqOf(r.URL.Query().Get("after"), "after")
}

// seqOf reads the number of an event; "" is 0.
func seqOf(text, field string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 1<<64-1 {
		return 0, errcode.New(errcode.InvalidArguments, "%s is %q; it takes the number of an event", field, text).With("field", field)
	}
	return n, nil
}

func seqText(n uint64) string { return strconv.FormatUint(n, 10) }

// stream writes events as they come. A peer that does not read is let go.
type stream struct {
	w      http.ResponseWriter
	sse    bool
	again  bool // the peer has been here before
	opened bool
}

func newStream(w http.ResponseWriter, r *http.Request) *stream {
	return &stream{w: mcpserver.WithWriteTimeout(w, 0), sse: acceptsSSE(r), again: r.Header.Get("Last-Event-ID") != ""}
}

func acceptsSSE(r *http.Request) bool {
	for kind := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		name, _, _ := strings.Cut(kind, ";")
		if strings.TrimSpace(name) == "text/event-stream" {
			return true
		}
	}
	return false
}

// open sends the headers.
func (s *stream) open() {
	if s.opened {
		return
	}
	s.opened = true
	kind := "application/x-ndjson"
	if s.sse {
		kind = "text/event-stream"
	}
	s.w.Header().Set("Content-Type", kind)
	s.w.WriteHeader(http.StatusOK)
	_ = s.flush()
}

// sendAll sends the public events of a task, up to its result. The error is
// that of the events, or of may, which is asked before each; a peer that has gone
// ends the stream without one.
func (s *stream) sendAll(task identity.TaskID, events iter.Seq2[journal.Event, error], may func() error) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		if e.Task != task || !journal.Public(e.Body) {
			continue
		}
		if err := may(); err != nil {
			return err
		}
		if s.send(e) != nil {
			return nil
		}
		if _, ended := e.Body.(journal.Result); ended {
			return nil
		}
	}
	return nil
}

func (s *stream) send(e journal.Event) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	s.open()
	form := "%[2]s\n"
	switch {
	case s.sse && e.Seq == 0: // it is kept nowhere and cannot be gone back to
		form = "data: %[2]s\n\n"
	case s.sse:
		form = "id: %[1]d\ndata: %[2]s\n\n"
	}
	if _, err := fmt.Fprintf(s.w, form, e.Seq, text); err != nil {
		return err
	}
	return s.flush()
}

// close ends the stream. A browser that comes back to a task that has ended
// and has seen it all is told to stay away: that is what 204 is for.
func (s *stream) close(ended bool) {
	if !s.opened && s.sse && s.again && ended {
		s.w.WriteHeader(http.StatusNoContent)
		return
	}
	s.open()
}

func (s *stream) flush() error { return http.NewResponseController(s.w).Flush() }

// shutdownKey finds the context that ends when Serve begins to shut down.
type shutdownKey struct{}

// untilShutdown gives a context for an answer that may take for ever: it ends
// with the request, and when the server shuts down.
func untilShutdown(ctx context.Context) (context.Context, context.CancelFunc) {
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
