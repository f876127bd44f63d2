package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/journal"
)

// deaf is a connection to a peer that does not read: what is sent waits for the
// deadline, without one for ever. The time until then passes at once.
type deaf struct {
	*httptest.ResponseRecorder
	ctx context.Context

	mu       sync.Mutex // guards deadline
	deadline time.Time
}

func (d *deaf) SetWriteDeadline(at time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deadline = at
	return nil
}

// FlushError serves http.ResponseController.
func (d *deaf) FlushError() error {
	d.mu.Lock()
	at := d.deadline
	d.mu.Unlock()
	if at.IsZero() || time.Until(at) > time.Minute {
		<-d.ctx.Done()
		return d.ctx.Err()
	}
	return os.ErrDeadlineExceeded
}

// A peer that follows a task and does not read is let go.
func TestWhoDoesNotReadEventsIsLetGo(t *testing.T) {
	b, release := held()
	h := open(t, b)
	defer close(release)
	id := h.start(t, "go")
	for name, header := range map[string]http.Header{"lines": nil, "events": sse} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/tasks/"+string(id)+"/events?follow=1", nil)
		r.Header = header.Clone()
		h.handler.ServeHTTP(&deaf{ResponseRecorder: httptest.NewRecorder(), ctx: ctx}, r)
		if ctx.Err() != nil {
			t.Errorf("%s: the peer holds a goroutine for as long as it likes", name)
		}
	}
	if events := collect(t, h.client().Events(t.Context(), string(id), 0, false)); len(events) == 0 || events[0].Body.Type() != (journal.TaskStarted{}).Type() {
		t.Errorf("after that a task has the events %v", events)
	}
}
