package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/internal/openfiles"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/tool"
)

// anyHost lets everybody reach all hosts.
type anyHost struct{}

func (anyHost) MayReach(context.Context, identity.Principal, hosts.Host) error { return nil }

// Requests to a server that does not answer hold connections. The agents of one caller leave
// connections for other callers, and for the process.
func TestHTTPRequest_LimitsConnectionsOfOwner(t *testing.T) {
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			arrived <- struct{}{}
			<-release
		}
		_, _ = io.WriteString(w, "answered")
	}))
	defer server.Close()
	w := newNetworkFixture(t, nil)
	w.hosts, w.slots = anyHost{}, fair.NewSemaphore(4)
	call := func(owner, agent, path string, timeoutMs int) gjson.Result {
		t.Helper()
		args, _ := json.Marshal(obj{"url": server.URL + path, "timeoutMs": timeoutMs})
		r, err := w.fixture["http_request"].Call(t.Context(), tool.Call{ID: "c", Name: "http_request", Args: args, By: identity.ByAgent(identity.AgentID(agent)), Owner: owner})
		if err != nil {
			t.Error(err)
		}
		return gjson.ParseBytes(r.JSON())
	}
	var greedy sync.WaitGroup
	for i := range 2 {
		greedy.Go(func() { call("ann", fmt.Sprint(i), "/hang", 240_000) })
		<-arrived
	}
	if got := call("ann", "another", "/fast", 20); errcode.Code(got.Get("error").Str) != errcode.RateLimited {
		t.Errorf("a third request of the same owner: %s, want rate_limited", got)
	}
	if got := call("bob", "his", "/fast", 240_000); got.Get("body").Str != "answered" {
		t.Errorf("another owner: %s", got)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.fixture["http_request"].Call(cancelled, tool.Call{ID: "c", Name: "http_request", Args: json.RawMessage(`{"url":"` + server.URL + `"}`), Owner: "ann"})
	if errcode.CodeOf(err) != errcode.RequestAborted {
		t.Errorf("a cancelled call that waits: %v", err)
	}
	close(release)
	greedy.Wait()
	if got := call("ann", "another", "/fast", 240_000); got.Get("body").Str != "answered" {
		t.Errorf("after the requests have ended: %s", got)
	}
}

// All requests together use a small part of the files that the process may open.
func TestHTTPRequest_LeavesFilesForOthers(t *testing.T) {
	slots, got := newRequestSlots(), 0
	for owner := range maxRequests * 2 {
		done, cancel := context.WithCancel(t.Context())
		cancel()
		for {
			if _, err := slots.Acquire(done, fair.Key{Owner: fmt.Sprint(owner)}); err != nil {
				break
			}
			got++
		}
	}
	if most := min(maxRequests, openfiles.MaxOutgoing()); got == 0 || got > most {
		t.Errorf("%d requests at once, want at most %d", got, most)
	}
}
