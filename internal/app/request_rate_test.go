package app

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// The limit of requests follows the configuration.
func TestRequestsPerMinute_FollowsConfiguration(t *testing.T) {
	f := newFixture(t)
	handler, err := f.Handler()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		limits string
		want   int
	}{{"\nlimits: {requestsPerMinute: 1}", http.StatusTooManyRequests}, {"", http.StatusOK}} {
		if _, err := f.reconfigure(t.Context(), f.read("{kind: role, name: ci}", tokenDoc("ci")+c.limits)); err != nil {
			t.Fatal(err)
		}
		var last int
		for range 2 {
			r, w := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), httptest.NewRecorder()
			r.Header.Set("Authorization", "Bearer rc_ci")
			handler.ServeHTTP(w, r)
			last = w.Code
		}
		if last != c.want {
			t.Errorf("with %q: %d, want %d", c.limits, last, c.want)
		}
	}
}
