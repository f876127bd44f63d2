package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// maxSeedEvents is how many events of the log before a page are read, to know when the models of
// its first answers were asked.
const maxSeedEvents = 10_000

// listSpans answers with a page of the spans of a task, by their first events.
func (a *api) listSpans(r *http.Request) (any, error) {
	p, err := parsePaging(r)
	if err != nil {
		return nil, err
	}
	after, err := parseSeq(p.after, "cursor")
	if err != nil {
		return nil, errInvalidCursor()
	}
	task, err := a.ownTask(r)
	if err != nil {
		return nil, err
	}
	f := newSpanBuilder()
	if after > task.FirstSeq {
		err = a.seedSpans(r.Context(), task, f, after)
	}
	if err != nil {
		return nil, err
	}
	next, err := a.buildSpans(r.Context(), task, f, max(after, task.FirstSeq), p.limit, a.visibilityFor(r))
	if err != nil {
		return nil, err
	}
	page := wire.Page[*wire.Span]{Items: f.spans}
	if page.Items == nil {
		page.Items = []*wire.Span{}
	}
	if next > 0 {
		page.Next = encodeCursor(formatSeq(next))
	}
	return page, nil
}

// seedSpans reads the events of a task up to a number, the newest first.
func (a *api) seedSpans(ctx context.Context, task org.Task, f *spanBuilder, last uint64) error {
	seed, read := spanSeed{f, map[identity.AgentID]bool{}}, 0
	for e, err := range a.rt.JournalStore().EventsBefore(ctx, ofTask(task.ID), last+1) {
		if err != nil {
			return err
		}
		if seed.add(e); e.Seq <= task.FirstSeq+1 {
			break
		}
		if read++; read == maxSeedEvents {
			break
		}
	}
	return nil
}

// buildSpans reads the events of a task after a number until so many spans have begun, and then
// until they have ended. It searches a bounded part of the log. next is the number after which the
// following spans begin, 0 at the end.
func (a *api) buildSpans(ctx context.Context, task org.Task, f *spanBuilder, after uint64, limit int, v visibility) (next uint64, err error) {
	begin, searched := time.Now(), 0
	for e, err := range a.rt.JournalStore().FollowMatching(ctx, ofTask(task.ID), after, journal.StoredOnly) {
		if err != nil {
			return 0, err
		}
		full := next > 0
		switch {
		case e.Body == nil:
		case full:
			f.end(v.mask(e))
		default:
			f.add(v.mask(e))
		}
		searched++
		late := searched == maxSearched || !full && searched%searchStep == 0 && time.Since(begin) > maxSearchTime
		switch {
		case a.rt.EndsTask(e):
			return next, nil
		case late && full:
			return next, nil
		case late || !full && len(f.spans) == limit:
			next, searched = e.Seq, 0
		}
		if next > 0 && len(f.open) == 0 {
			return next, nil
		}
	}
	return next, nil
}

// ofTask returns the filter of the events of a task.
func ofTask(id identity.TaskID) journal.EventFilter {
	return func(h journal.EventHead) bool { return h.Task() == id }
}
