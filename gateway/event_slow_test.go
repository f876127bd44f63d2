package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/journal"
)

// unreadRecorder is a connection whose client does not read. A flush fails at
// the write deadline, at once to save time, and without a near deadline blocks
// until the context ends.
type unreadRecorder struct {
	*httptest.ResponseRecorder
	ctx context.Context

	mu       sync.Mutex // guards deadline
	deadline time.Time
}

func (d *unreadRecorder) SetWriteDeadline(at time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deadline = at
	return nil
}

// FlushError supports http.ResponseController.
func (d *unreadRecorder) FlushError() error {
	d.mu.Lock()
	at := d.deadline
	d.mu.Unlock()
	if at.IsZero() || time.Until(at) > time.Minute {
		<-d.ctx.Done()
		return d.ctx.Err()
	}
	return os.ErrDeadlineExceeded
}

// A client that follows a task and does not read is disconnected.
func TestEvents_DropsSlowReader(t *testing.T) {
	m, release := blockedTeamModel()
	f := newFixture(t, m)
	defer close(release)
	id := f.StartTask(t, "go")
	for name, header := range map[string]http.Header{"lines": nil, "events": sseHeader} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/tasks/"+string(id)+"/events?follow=1", nil)
		r.Header = header.Clone()
		f.Handler.ServeHTTP(&unreadRecorder{ResponseRecorder: httptest.NewRecorder(), ctx: ctx}, r)
		if ctx.Err() != nil {
			t.Errorf("%s: the handler is still blocked", name)
		}
	}
	if events := gatewaytest.CollectAll(t, f.LocalClient().TaskEvents(t.Context(), string(id), 0, false)); len(events) == 0 || events[0].Body.EventType() != (journal.TaskStarted{}).EventType() {
		t.Errorf("events afterwards: %v", events)
	}
}

// unreadWriter is an unreadRecorder without a buffer: a write is like a flush.
type unreadWriter struct{ *unreadRecorder }

// Write implements http.ResponseWriter.
func (u unreadWriter) Write([]byte) (int, error) { return 0, u.FlushError() }

// A client that sends requests and does not read the answers is disconnected. Without that,
// its connections would never give way to new ones.
func TestHandler_DropsClientThatDoesNotRead(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	caller := f.WithCaller(t, f.AddRole(t, "clerk", "artifact").ID)
	for name, path := range map[string]string{"an answer": "/api/v1/tools", "an error": "/api/v1/tools/none"} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		w := unreadWriter{&unreadRecorder{ResponseRecorder: httptest.NewRecorder(), ctx: ctx}}
		caller.Handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
		if ctx.Err() != nil {
			t.Errorf("%s: the handler is still blocked", name)
		}
	}
}
