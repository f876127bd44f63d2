package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
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
	for name, header := range map[string]http.Header{"lines": {"Accept": {wire.NDJSON}}, "events": sseHeader} {
		for _, path := range []string{"/api/v1/tasks/" + string(id) + "/events?follow=1", "/api/v1/events?follow=1"} {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
			r.Header = header.Clone()
			f.Handler.ServeHTTP(&unreadRecorder{ResponseRecorder: httptest.NewRecorder(), ctx: ctx}, r)
			if ctx.Err() != nil {
				t.Errorf("%s of %s: the handler is still blocked", name, path)
			}
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
	for name, path := range map[string]string{"an answer": "/api/v1/tools", "a page of events": "/api/v1/events", "an error": "/api/v1/tools/none"} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		w := unreadWriter{&unreadRecorder{ResponseRecorder: httptest.NewRecorder(), ctx: ctx}}
		caller.Handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
		if ctx.Err() != nil {
			t.Errorf("%s: the handler is still blocked", name)
		}
	}
}

// The routes that callers do not have disconnect such a client, too.
func TestHandler_DropsMonitorThatDoesNotRead(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	figures := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("up 1\n")) })
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: auth.AlwaysOperator, Metrics: figures})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/metrics", "/readyz", "/healthz", "/", "/api/openapi.json", "/api/v1/tokens", "/nowhere"} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		w := unreadWriter{&unreadRecorder{ResponseRecorder: httptest.NewRecorder(), ctx: ctx}}
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
		if ctx.Err() != nil {
			t.Errorf("%s: the handler is still blocked", path)
		}
	}
}

// laggingRecorder is a connection whose client is slow: while it reads the first event,
// others are committed.
type laggingRecorder struct {
	*httptest.ResponseRecorder
	meanwhile func()
}

func (l *laggingRecorder) Write(b []byte) (int, error) {
	n, err := l.ResponseRecorder.Write(b)
	l.meanwhile()
	l.meanwhile = func() {}
	return n, err
}

// A client that disconnects in the middle of a stream is no failure that is logged.
func TestEvents_DisconnectIsNotLogged(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	addEvents(t, f.Store, 1000)
	var logs bytes.Buffer
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: auth.AlwaysOperator, Log: slog.New(slog.NewTextHandler(&logs, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/events?after=0", nil)
	r.Header.Set("Accept", wire.NDJSON)
	w := &laggingRecorder{httptest.NewRecorder(), cancel}
	func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler {
				t.Errorf("the stream ended with %v", p)
			}
		}()
		handler.ServeHTTP(w, r)
	}()
	if logs.Len() > 0 {
		t.Errorf("logged %s", &logs)
	}
}

// A client that follows the organization and falls far behind is told where it is, and
// disconnected. It misses nothing when it continues there.
func TestOrgEvents_SlowReaderGetsGap(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	addEvents(t, f.Store, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/events?follow=1&limit=1", nil)
	r.Header = sseHeader.Clone()
	w := &laggingRecorder{httptest.NewRecorder(), func() { addEvents(t, f.Store, 10_100) }}
	f.Handler.ServeHTTP(w, r)
	if ctx.Err() != nil {
		t.Fatal("the handler is still blocked")
	}
	ids := eventIDs(t, w.Body.String())
	if last := f.Store.LastSeq(); len(ids) != 3 || ids[0] != ids[1]-1 || ids[2] != ids[1] || !strings.Contains(w.Body.String(), fmt.Sprintf(`"type":"gap","last":%d`, last)) {
		t.Fatalf("got %s", w.Body)
	}
	rest := gatewaytest.CollectAll(t, f.LocalClient().StreamEvents(t.Context(), client.EventQuery{After: ids[2]}, false))
	if want := 10_100 - 1; len(rest) != want {
		t.Errorf("%d events after the gap, want %d", len(rest), want)
	}
}

// The requests of one sender for events are limited.
func TestOrgEvents_LimitsRequestsOfSender(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	server := httptest.NewServer(f.Handler)
	defer server.Close()
	follow := func() *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/events?follow=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = sseHeader.Clone()
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	for range 32 {
		answer := follow()
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("status %d", answer.StatusCode)
		}
	}
	answer := follow()
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the 33rd stream has status %d, want 429", answer.StatusCode)
	}
}
