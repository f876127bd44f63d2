package notify

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// A receiver may ask for a delay in seconds or until a date, of at most five minutes.
func TestPost_RetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-1": 0, "2": 2 * time.Second, "99999999999999999999": maxRetryAfter,
		"Fri, 31 Dec 9999 23:59:59 GMT": maxRetryAfter, "Mon, 02 Jan 2006 15:04:05 GMT": 0,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", text)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		n := config.Notification{URL: yamldoc.Secret(server.URL), AllowHTTP: true, PrivateAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		r := newReceiver(&Engine{config: Config{Timeout: time.Minute}}, n, nil)
		if got, err := r.post(t.Context(), "id", nil); err == nil || got.retryAfter != want {
			t.Errorf("%q: got %v, %v, want %v", text, got.retryAfter, err, want)
		}
		server.Close()
	}
}
