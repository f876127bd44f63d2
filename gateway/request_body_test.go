package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
)

// The bodies of one sender that are in progress at the same time have a share of the memory, on all
// routes. A small one needs none, and another sender has its own share.
func TestRequest_BodiesShareBudgetOfSender(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	for _, path := range []string{"/api/v1/can", "/access/v1/evaluation", "/api/v1/pause"} {
		handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: func(r *http.Request) (identity.Principal, error) {
			return identity.Principal{Kind: identity.Operator, User: identity.UserName(r.Header.Get("From"))}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		send := func(sender string, body io.Reader, size int64) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, body)
			r.ContentLength = size
			r.Header.Set("From", sender)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w.Code
		}
		release, ended := make(chan struct{}), make(chan int)
		for range 32 { // of 1 MiB
			waiting := make(chan struct{}, 1)
			go func() { ended <- send("ann", &slowBody{waiting: waiting, release: release}, 1<<20) }()
			<-waiting
		}
		large := strings.Repeat(" ", 100<<10)
		for _, tt := range []struct {
			sender, body string
			want         int
		}{{"ann", large, http.StatusTooManyRequests}, {"ann", "x", http.StatusBadRequest}, {"eve", large, http.StatusBadRequest}} {
			if got := send(tt.sender, strings.NewReader(tt.body), int64(len(tt.body))); got != tt.want {
				t.Errorf("%s: %d bytes of %s: %d, want %d", path, len(tt.body), tt.sender, got, tt.want)
			}
		}
		close(release)
		for range 32 {
			if got := <-ended; got != http.StatusBadRequest {
				t.Errorf("%s: a slow body: %d", path, got)
			}
		}
		large = strings.Repeat(" ", 1<<20)
		for range 33 { // more than the share, one after another
			if got := send("ann", strings.NewReader(large), int64(len(large))); got != http.StatusBadRequest {
				t.Errorf("%s: when the others have ended: %d", path, got)
			}
		}
	}
}
