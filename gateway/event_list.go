package gateway

import (
	"context"
	"encoding/json"
	"iter"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/journal"
)

// Limits of a request for events of the organization.
const (
	maxEventRequests = 32                    // of one sender at once, streams included
	maxSearched      = 20_000                // events that a page is searched in
	maxSearchTime    = 50 * time.Millisecond // for which a page is searched; looked at every searchStep events
	searchStep       = 256
	maxPageBytes     = 8 << 20 // of the events of a page
	maxUnmatched     = 100_000 // events that a stream passes over, one after another, before it catches up
	maxBehind        = 10_000  // events that a reader which had caught up may be behind
)

// listEvents answers with the events of the organization that the sender sees. The answer is a
// page, newest first, or a stream, oldest first.
func (a *api) listEvents(w http.ResponseWriter, r *http.Request) error {
	release, err := a.eventLimiter.Acquire(auth.SenderOf(r))
	if err != nil {
		return err
	}
	defer release()
	q, err := a.parseEventQuery(r)
	if err != nil {
		return err
	}
	follow, err := boolParam(r, "follow")
	if err != nil {
		return err
	}
	p, err := parsePaging(r)
	if err != nil {
		return err
	}
	if acceptsSSE(r) || accepts(r, wire.NDJSON) {
		return a.streamEvents(w, r, q, p, follow)
	}
	if follow {
		return errcode.New(errcode.InvalidArguments, "follow=1 needs a stream; send \"Accept: text/event-stream\" or \"Accept: %s\"", wire.NDJSON).With("field", "follow")
	}
	return a.writeEventPage(w, r, q, p)
}

// writeEventPage answers with a page of events.
func (a *api) writeEventPage(w http.ResponseWriter, r *http.Request, q eventQuery, p paging) error {
	first, err := parseBefore(p.after)
	if err != nil {
		return err
	}
	page := wire.EventPage[json.RawMessage]{Last: a.rt.JournalStore().LastSeq()}
	page.Items = []json.RawMessage{}
	found, next, err := a.searchEvents(r.Context(), q, first, p.limit, a.visibilityFor(r))
	if err != nil {
		return err
	}
	for _, e := range found {
		page.Items = append(page.Items, e.text)
	}
	if next > 0 {
		page.Next = encodeCursor(formatSeq(next))
	}
	return wire.WriteJSON(w, http.StatusOK, page)
}

// encodedEvent is an event as it is sent.
type encodedEvent struct {
	seq  uint64
	text json.RawMessage
}

// encodeEvent encodes an event as a sender is shown it.
func encodeEvent(e journal.Event, v visibility) (encodedEvent, error) {
	text, err := json.Marshal(v.mask(e))
	return encodedEvent{e.Seq, text}, err
}

// searchEvents returns up to limit events before a number, newest first. It searches a
// bounded part of the log. next is the number to continue before, 0 at the end.
func (a *api) searchEvents(ctx context.Context, q eventQuery, before uint64, limit int, v visibility) (list []encodedEvent, next uint64, err error) {
	begin, searched, bytes := time.Now(), 0, 0
	for e, err := range a.rt.JournalStore().EventsBefore(ctx, a.filter(q), before) {
		if err != nil {
			return nil, 0, err
		}
		if e.Seq <= q.after {
			break
		}
		if searched++; e.Body != nil {
			found, err := encodeEvent(e, v)
			if err != nil {
				return nil, 0, err
			}
			list, bytes = append(list, found), bytes+len(found.text)
		}
		late := searched%searchStep == 0 && time.Since(begin) > maxSearchTime
		if len(list) == limit || bytes > maxPageBytes || searched == maxSearched || late {
			next = e.Seq
			break
		}
	}
	if next <= q.after+1 {
		next = 0
	}
	return list, next, nil
}

// streamEvents answers with a stream of events. These are the events after the last event that the
// client has received, or the newest events. With follow, the stream continues with later events.
func (a *api) streamEvents(w http.ResponseWriter, r *http.Request, q eventQuery, p paging, follow bool) error {
	if p.after != "" {
		return errcode.New(errcode.InvalidArguments, "a stream has no cursor; use after").With("field", "cursor")
	}
	resumed, err := parseSeq(r.Header.Get("Last-Event-ID"), "Last-Event-ID")
	if err != nil {
		return err
	}
	ctx, cancel := UntilShutdown(r.Context())
	defer cancel()
	s := &logStream{api: a, q: q, r: r, out: newEventStream(w, r), follow: follow, begun: a.rt.JournalStore().LastSeq()}
	if follow { // tells the client at once that it is connected
		s.out.open()
		s.q.after, resumed = min(s.q.after, s.begun), min(resumed, s.begun) // no client has seen an event of the future
	}
	switch {
	case s.out.resuming:
		s.q.after = max(s.q.after, resumed)
	case !q.fromStart || r.URL.Query().Has("limit"):
		err = s.sendNewest(ctx, p.limit)
	}
	if err == nil {
		err = s.send(ctx)
	}
	if err != nil {
		return a.abortStream(s.out, err)
	}
	s.out.close(!follow)
	return nil
}

// logStream sends the events of a query.
type logStream struct {
	*api
	q      eventQuery
	r      *http.Request
	out    *eventStream
	follow bool
	begun  uint64 // the last event when the stream began; a stream that is past it has caught up
	gone   bool   // the client has disconnected
}

// sendNewest sends up to limit events of the past. The stream continues after them.
func (s *logStream) sendNewest(ctx context.Context, limit int) error {
	last := s.rt.JournalStore().LastSeq()
	list, _, err := s.searchEvents(ctx, s.q, last+1, limit, s.visibilityFor(s.r))
	if err != nil {
		return err
	}
	slices.Reverse(list)
	for _, e := range list {
		if err := s.write(e); err != nil || s.gone {
			return err
		}
	}
	s.q.after = max(s.q.after, last)
	return nil
}

// send sends the events after the events that were sent. It ends with a gap if the client reads too
// slowly, or if no event was found for long. The client then continues after the gap.
func (s *logStream) send(ctx context.Context) error {
	unmatched, shown := 0, s.followVisibility(s.r)
	for e, err := range s.events(ctx) {
		if err != nil {
			return err
		}
		if unmatched++; e.Body != nil {
			unmatched = 0
			found, err := encodeEvent(e, shown())
			if err == nil {
				err = s.write(found)
			}
			if err != nil || s.gone {
				return err
			}
		}
		last := s.rt.JournalStore().LastSeq()
		if s.mustEnd(e.Seq, last, unmatched) {
			return s.sendGap(e.Seq, last)
		}
	}
	return nil
}

// mustEnd reports whether a stream ends after an event although there are more, up to last.
func (s *logStream) mustEnd(seq, last uint64, unmatched int) bool {
	if seq < s.begun {
		return unmatched >= maxUnmatched
	}
	return last > seq+maxBehind
}

// events yields the events after the events that were sent.
func (s *logStream) events(ctx context.Context) iter.Seq2[journal.Event, error] {
	if s.gone || s.q.after == math.MaxUint64 {
		return func(func(journal.Event, error) bool) {}
	}
	return s.rt.JournalStore().FollowMatching(ctx, s.filter(s.q), s.q.after, s.follow)
}

// sendGap tells the client to continue after an event.
func (s *logStream) sendGap(after, last uint64) error {
	text, err := json.Marshal(journal.Event{Seq: after, At: time.Now().UTC(), Body: journal.EventGap{Last: last}})
	if err != nil {
		return err
	}
	return s.write(encodedEvent{after, text})
}

// write sends one event, if the sender of the request is still authenticated.
func (s *logStream) write(e encodedEvent) error {
	if err := s.authenticate.Revalidate(s.r); err != nil {
		return err
	}
	s.gone = s.out.write(e.seq, e.text) != nil
	return nil
}
