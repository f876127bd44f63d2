package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/identity"
)

// openedRecorder closes opened when the head of the answer is sent.
type openedRecorder struct {
	*httptest.ResponseRecorder
	once    sync.Once
	opened  chan struct{}
	onEvent func() // called when an event is written; may be nil
}

func (w *openedRecorder) Write(p []byte) (int, error) {
	if w.onEvent != nil && strings.Contains(string(p), "data:") {
		defer w.onEvent()
	}
	return w.ResponseRecorder.Write(p)
}

func (w *openedRecorder) WriteHeader(status int) {
	w.ResponseRecorder.WriteHeader(status)
	w.once.Do(func() { close(w.opened) })
}

// A stream may resume after an event of the future, such as one of a data directory that was
// restored since. It has what happens from now on, and ends with the task.
func TestEvents_ResumeAfterFutureEvent(t *testing.T) {
	for _, path := range []string{"/events?follow=1", "/events?follow=1&deltas=1"} {
		for _, id := range []string{"1000000", "18446744073709551614"} {
			m, release := blockedTeamModel()
			f := newFixture(t, m)
			task := f.StartTask(t, "go")
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/tasks/"+string(task)+path, nil)
			r.Header.Set("Accept", "text/event-stream")
			r.Header.Set("Last-Event-ID", id)
			w := &openedRecorder{ResponseRecorder: httptest.NewRecorder(), opened: make(chan struct{})}
			var stream sync.WaitGroup
			stream.Go(func() { f.Handler.ServeHTTP(w, r) })
			<-w.opened
			close(release)
			stream.Wait()
			if text := w.Body.String(); !strings.Contains(text, `"type":"result"`) {
				t.Errorf("%s after %s: %s", path, id, text)
			}
		}
	}
}

// The stream of the organization, too.
func TestOrgEvents_ResumeAfterFutureEvent(t *testing.T) {
	f, role, _, _ := newEventFixture(t)
	for _, query := range []string{"", "&after=1000000"} {
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/events?follow=1&denied=1"+query, nil)
		r.Header.Set("Accept", "text/event-stream")
		if query == "" {
			r.Header.Set("Last-Event-ID", "1000000")
		}
		w := &openedRecorder{ResponseRecorder: httptest.NewRecorder(), opened: make(chan struct{}), onEvent: cancel}
		var stream sync.WaitGroup
		stream.Go(func() { f.Handler.ServeHTTP(w, r) })
		<-w.opened
		invoke(t, f, identity.ByCaller("ann", role.ID), "secret_tool")
		stream.Wait() // until the event is sent
		cancel()
		if text := w.Body.String(); !strings.Contains(text, "secret_tool") {
			t.Errorf("%s: %s", query, text)
		}
	}
}
