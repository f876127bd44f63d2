package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
)

// slowBody has 64 KiB that arrive at once. The rest arrives when release is closed.
type slowBody struct {
	sent             int
	waiting, release chan struct{}
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.sent < 64<<10 {
		n := min(len(p), 64<<10-b.sent)
		b.sent += n
		return n, nil
	}
	b.waiting <- struct{}{}
	<-b.release
	return 0, io.EOF
}

// Large bodies that arrive slowly, from senders without a secret, take the share of one network.
// The addresses of an IPv6 network are one, behind a trusted proxy too.
func TestHook_SlowBodiesShareBudgetOfNetwork(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	tokens, err := auth.NewTokenStore(auth.TokenStoreConfig{Role: f.Runtime.Org().RoleByID, TrustedProxies: func() []netip.Prefix {
		return []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	}})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: tokens.Authenticate, Sessions: tokens, FindHook: func(string, http.Header, []byte) (gateway.Hook, bool) { return gateway.Hook{}, false }})
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	send := func(remote, forwarded string) (status chan int, waiting chan struct{}) {
		status, waiting = make(chan int, 1), make(chan struct{}, 1)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/x", &slowBody{waiting: waiting, release: release})
		r.ContentLength, r.RemoteAddr = 1<<20, remote
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		go func() {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			status <- w.Code
		}()
		return status, waiting
	}
	var slow sync.WaitGroup
	for i := range 32 { // of 1 MiB, the share of one sender
		remote, forwarded := fmt.Sprintf("[2001:db8::%x]:1", i+1), ""
		if i%2 == 0 {
			remote, forwarded = "127.0.0.1:1", fmt.Sprintf("2001:db8::1:%x", i)
		}
		status, waiting := send(remote, forwarded)
		<-waiting
		slow.Go(func() {
			if got := <-status; got != http.StatusUnauthorized {
				t.Errorf("a slow body: %d", got)
			}
		})
	}
	status, _ := send("[2001:db8::ffff]:1", "")
	if got := <-status; got != http.StatusTooManyRequests {
		t.Errorf("one more of the network: %d", got)
	}
	others := []chan int{}
	for _, forwarded := range []string{"2001:db8:1::1", "192.0.2.7"} {
		status, waiting := send("127.0.0.1:1", forwarded)
		<-waiting
		others = append(others, status)
	}
	close(release)
	slow.Wait()
	for _, status := range others {
		if got := <-status; got != http.StatusUnauthorized {
			t.Errorf("another network: %d", got)
		}
	}
}

// A gateway with hooks and without the networks of their senders is not made.
func TestNew_HooksNeedSessions(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	if _, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: auth.AlwaysOperator, FindHook: func(string, http.Header, []byte) (gateway.Hook, bool) { return gateway.Hook{}, false }}); err == nil {
		t.Error("it was made")
	}
}
