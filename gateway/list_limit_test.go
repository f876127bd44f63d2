package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
)

// blockedWriter is a connection whose client does not read: a write sends on began and
// waits until release is closed.
type blockedWriter struct {
	*httptest.ResponseRecorder
	began, release chan struct{}
}

func (b blockedWriter) Write(text []byte) (int, error) {
	b.began <- struct{}{}
	<-b.release
	return b.ResponseRecorder.Write(text)
}

// A list of tools with their schemas can be large. One sender must not take all memory and
// processors with lists, also if it does not read them.
func TestLists_LimitConcurrentRequestsOfSender(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	role := f.AddRole(t, "clerk", "artifact").ID
	users := f.WithAuthenticator(t, func(r *http.Request) (identity.Principal, error) {
		return identity.ByCaller(identity.UserName(r.Header.Get("User")), role), nil
	})
	paths := []string{"/api/v1/tools", "/api/v1/tool-groups", "/api/toolset", "/api/v1/tasks"}
	began, release := make(chan struct{}), make(chan struct{})
	var requests sync.WaitGroup
	for i := range 64 {
		requests.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, paths[i%len(paths)], nil)
			r.Header.Set("User", "ann")
			users.Handler.ServeHTTP(blockedWriter{httptest.NewRecorder(), began, release}, r)
		})
		<-began
	}
	for _, path := range paths {
		for user, want := range map[string]int{"ann": http.StatusTooManyRequests, "bob": http.StatusOK} {
			if w := users.SendRequest(t, path, "", http.Header{"User": {user}}); w.Code != want {
				t.Errorf("%s of %s: got %d %s, want %d", path, user, w.Code, w.Body, want)
			}
		}
	}
	for user, want := range map[string]int{"ann": http.StatusTooManyRequests, "bob": http.StatusOK} {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/can", strings.NewReader(`{"role":"clerk"}`))
		r.Header.Set("User", user)
		if users.Handler.ServeHTTP(w, r); w.Code != want { // without a tool it answers for each tool
			t.Errorf("can of %s: got %d %s, want %d", user, w.Code, w.Body, want)
		}
	}
	close(release)
	requests.Wait()
	if w := users.SendRequest(t, paths[0], "", http.Header{"User": {"ann"}}); w.Code != http.StatusOK {
		t.Errorf("afterwards: got %d %s", w.Code, w.Body)
	}
}
