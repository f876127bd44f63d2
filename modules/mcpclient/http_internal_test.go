package mcpclient

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

// A server that sends no headers in time has no stream of its own. The stream of a call that is resumed is waited for, as
// long as the call may take.
func TestHTTPTransport_WaitsForResumedStream(t *testing.T) {
	goOn := make(chan struct{})
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		until := goOn
		if r.Header.Get("Last-Event-Id") == "" {
			until = nil // no headers at all
		}
		select {
		case <-until:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(at.Close)
	address, err := url.Parse(at.URL)
	if err != nil {
		t.Fatal(err)
	}
	w := newHTTPTransport(t.Context(), address, nil, newConnSecrets(Config{}, nil))
	w.streamTime = time.Millisecond
	if got := openStream(t.Context(), t, w, at.URL, ""); got != http.StatusMethodNotAllowed {
		t.Errorf("a stream without headers is answered %d", got)
	}
	resumed := make(chan int, 1)
	go func() { resumed <- openStream(t.Context(), t, w, at.URL, "a_1") }()
	select {
	case goOn <- struct{}{}:
	case got := <-resumed:
		t.Fatalf("a stream that is resumed is not waited for: %d", got)
	}
	if got := <-resumed; got != http.StatusOK {
		t.Errorf("a stream that is resumed is answered %d", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if got := openStream(ctx, t, w, at.URL, "a_1"); got != 0 {
		t.Errorf("a stream whose call has ended is answered %d", got)
	}
}

// openStream opens a stream behind an event, "" for none, and returns the status; 0 for an error.
func openStream(ctx context.Context, t *testing.T, w *httpTransport, address, last string) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	if last != "" {
		r.Header.Set("Last-Event-Id", last)
	}
	response, err := w.RoundTrip(r)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}
