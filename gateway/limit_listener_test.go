package gateway_test

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
)

// stalledConnections is how many connections TestListener_NewcomerBesideStalled
// opens. The listener allows a fifth of them.
var stalledConnections = flag.Int("connections", 200, "how many stalled connections a newcomer meets")

// limitedServer is a gateway behind a listener with limits.
type limitedServer struct {
	address string
	token   string // of ann, a caller
}

// serveLimited serves the API of a fixture, and slow below /slow, on loopback with
// limits.
func serveLimited(t *testing.T, limits gateway.ConnectionLimits) limitedServer {
	t.Helper()
	f := newFixture(t, gatewaytest.TeamModel)
	role := f.AddRole(t, "reader", "workspace")
	token, described := gatewaytest.NewToken("ann", auth.Token{Scope: auth.ScopeRole, Role: role.ID})
	tokens := gatewaytest.NewTokens(t, f, described)
	handler := f.WithAuthenticator(t, tokens.Authenticate).Handler
	l, err := gateway.ListenTCP("127.0.0.1:0", false, func() gateway.ConnectionLimits { return limits })
	if err != nil {
		t.Fatal(err)
	}
	gatewaytest.ServeListener(t, l, auth.HostCheck{Tokens: tokens}.Wrap(handler))
	return limitedServer{l.Addr().String(), token}
}

// get sends a request on a connection and returns the status of the answer. token
// may be empty.
func (s limitedServer) get(conn net.Conn, path, token string) (status int, err error) {
	head := ""
	if token != "" {
		head = "Authorization: Bearer " + token + "\r\n"
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, s.address, head); err != nil {
		return 0, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// dial opens a connection from an address of this host; "" is any.
func (s limitedServer) dial(t *testing.T, from string) net.Conn {
	t.Helper()
	d := net.Dialer{Timeout: time.Minute}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	conn, err := d.DialContext(t.Context(), "tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// newcomerTimeout is how long a new connection may wait for its answer. Without
// connections that give way it waits for ten seconds or more.
const newcomerTimeout = 5 * time.Second

// wantServed checks that a newcomer is answered soon, and returns how long it took.
func (s limitedServer) wantServed(t *testing.T, path, token string) time.Duration {
	t.Helper()
	began := time.Now()
	conn := s.dial(t, "")
	if err := conn.SetDeadline(began.Add(newcomerTimeout)); err != nil {
		t.Fatal(err)
	}
	status, err := s.get(conn, path, token)
	if err != nil || status != http.StatusOK {
		t.Fatalf("a newcomer's request for %s: %d, %v", path, status, err)
	}
	return time.Since(began)
}

func TestListener_NewcomerBesideStalled(t *testing.T) {
	get := func(path string, withToken bool) func(limitedServer, net.Conn) error {
		return func(s limitedServer, conn net.Conn) error {
			token := ""
			if withToken {
				token = s.token
			}
			_, err := s.get(conn, path, token)
			return err
		}
	}
	send := func(text string) func(limitedServer, net.Conn) error {
		return func(s limitedServer, conn net.Conn) error {
			_, err := io.WriteString(conn, strings.NewReplacer("HOST", s.address, "TOKEN", s.token).Replace(text))
			return err
		}
	}
	for name, begin := range map[string]func(limitedServer, net.Conn) error{
		"idle after an answer":             get("/healthz", false),
		"nothing sent":                     send(""),
		"a head that does not end":         send("GET / HT"),
		"a body that does not end":         send("POST /api/v1/can HTTP/1.1\r\nHost: HOST\r\nContent-Length: 100\r\n\r\n{"),
		"idle, authenticated":              get("/", true),
		"authenticated, body does not end": send("POST /api/v1/can HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer TOKEN\r\nContent-Length: 100\r\n\r\n{"),
	} {
		for _, addresses := range []int{1, 200} {
			t.Run(fmt.Sprintf("%s, %d addresses", name, addresses), func(t *testing.T) {
				t.Parallel()
				if addresses > 1 && runtime.GOOS != "linux" {
					t.Skip("only Linux has all addresses of 127.0.0.0/8")
				}
				s := serveLimited(t, gateway.ConnectionLimits{Total: *stalledConnections / 5})
				for i := range *stalledConnections {
					conn := s.dial(t, fmt.Sprintf("127.0.1.%d", 1+i%addresses))
					_ = conn.SetDeadline(time.Now().Add(newcomerTimeout))
					if err := begin(s, conn); err != nil {
						t.Fatalf("connection %d: %v", i, err)
					}
				}
				t.Logf("beside %d connections, answers after %v and, with a token, %v",
					*stalledConnections, s.wantServed(t, "/healthz", ""), s.wantServed(t, "/", s.token))
			})
		}
	}
}

// A connection that carries requests of an authenticated sender is not closed for
// newcomers: they wait. No more requests are served at once than there are places.
func TestListener_WaitsForAuthenticatedRequests(t *testing.T) {
	const total, clients = 4, 40
	var active, highest atomic.Int32
	entered, release := make(chan struct{}), make(chan struct{})
	slow := func(w http.ResponseWriter, _ *http.Request) {
		highest.Store(max(highest.Load(), active.Add(1)))
		entered <- struct{}{}
		<-release
		active.Add(-1)
		w.Header().Set("Connection", "close")
	}
	address := serveMarked(t, gateway.ConnectionLimits{Total: total, PerAddress: clients, MinTime: time.Hour}, slow)
	answered := make(chan error, clients)
	for range clients {
		go func() {
			answer, err := (&http.Client{Transport: &http.Transport{}}).Get("http://" + address)
			if err == nil {
				answer.Body.Close()
			}
			answered <- err
		}()
	}
	for range total {
		<-entered
	}
	for n := range clients {
		release <- struct{}{}
		if err := <-answered; err != nil {
			t.Errorf("request %d: %v", n, err)
		}
		if n+total < clients {
			<-entered
		}
	}
	if got := highest.Load(); got != total {
		t.Errorf("%d requests at once, want %d", got, total)
	}
}

// serveMarked serves a handler whose requests are all authenticated, and returns
// its address.
func serveMarked(t *testing.T, limits gateway.ConnectionLimits, serve http.HandlerFunc) (address string) {
	t.Helper()
	l, err := gateway.ListenTCP("127.0.0.1:0", false, func() gateway.ConnectionLimits { return limits })
	if err != nil {
		t.Fatal(err)
	}
	gatewaytest.ServeListener(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gateway.TrackSender(r, true)
		serve(w, r)
	}))
	return l.Addr().String()
}

// One address gets its share of connections, however busy, unless it is a trusted
// proxy.
func TestListener_SharePerAddress(t *testing.T) {
	for name, c := range map[string]struct {
		trusted []netip.Prefix
		want    bool // a third connection of the address is served
	}{
		"own share":     {nil, false},
		"trusted proxy": {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/30")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			entered, release := make(chan struct{}, 10), make(chan struct{})
			stuck := time.AfterFunc(newcomerTimeout, func() { panic("a connection within the share is not served") })
			defer stuck.Stop()
			address := serveMarked(t, gateway.ConnectionLimits{Total: 100, PerAddress: 2, TrustedProxies: c.trusted}, func(http.ResponseWriter, *http.Request) {
				entered <- struct{}{}
				<-release
			})
			s := limitedServer{address: address}
			defer close(release)
			send := func(from string) net.Conn {
				conn := s.dial(t, from)
				if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", address); err != nil && c.want {
					t.Error(err)
				}
				return conn
			}
			for range 2 {
				send("127.0.0.1")
				<-entered
			}
			third := send("127.0.0.1")
			if c.want {
				<-entered
			} else {
				wantClosed(t, third)
			}
			if runtime.GOOS == "linux" {
				send("127.0.1.1")
				<-entered // another address has a share of its own
			}
		})
	}
}

// wantClosed checks that the server has closed a connection.
func wantClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(newcomerTimeout))
	if n, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes, %v; want the connection closed", n, err)
	}
}

// Connections of authenticated senders stay open between their requests while
// others come and go.
func TestListener_ReservesForAuthenticated(t *testing.T) {
	const total = 16
	s := serveLimited(t, gateway.ConnectionLimits{Total: total, PerAddress: total})
	var known []net.Conn
	for range total / 4 {
		conn := s.dial(t, "")
		if status, err := s.get(conn, "/", s.token); err != nil || status != http.StatusOK {
			t.Fatalf("%d, %v", status, err)
		}
		known = append(known, conn)
	}
	for range 10 * total {
		s.dial(t, "")
	}
	s.wantServed(t, "/healthz", "") // all of them have been accepted
	for n, conn := range known {
		if status, err := s.get(conn, "/", s.token); err != nil || status != http.StatusOK {
			t.Errorf("connection %d, second request: %d, %v", n, status, err)
		}
	}
}

// A connection whose last request was rejected has no preference.
func TestListener_PreferenceEndsWithAuthentication(t *testing.T) {
	for name, c := range map[string]struct {
		host, token string
		want        int
	}{
		"unknown token":   {"", "rc_unknown", http.StatusUnauthorized},
		"rejected before": {"evil.example", "rc_ann", http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveLimited(t, gateway.ConnectionLimits{Total: 8, PerAddress: 8})
			conn := s.dial(t, "")
			if status, err := s.get(conn, "/", s.token); err != nil || status != http.StatusOK {
				t.Fatalf("%d, %v", status, err)
			}
			other := limitedServer{cmp.Or(c.host, s.address), s.token}
			if status, err := other.get(conn, "/", c.token); err != nil || status != c.want {
				t.Fatalf("%d, %v", status, err)
			}
			for range 20 {
				s.dial(t, "")
			}
			s.wantServed(t, "/healthz", "")
			wantClosed(t, conn)
		})
	}
}

// A request whose connection has given way has no effect.
func TestListener_ServesNothingOfClosedConnection(t *testing.T) {
	var begun, served atomic.Int32
	reached, release := make(chan struct{}), make(chan struct{})
	l, err := gateway.ListenTCP("127.0.0.1:0", false, func() gateway.ConnectionLimits { return gateway.ConnectionLimits{Total: 1, PerAddress: 2} })
	if err != nil {
		t.Fatal(err)
	}
	gatewaytest.ServeListener(t, l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if begun.Add(1) == 1 {
			close(reached)
			<-release
		}
		gateway.TrackSender(r, true)
		served.Add(1)
	}))
	s := limitedServer{address: l.Addr().String()}
	first := s.dial(t, "")
	if _, err := fmt.Fprintf(first, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-reached
	s.wantServed(t, "/", "")
	close(release)
	wantClosed(t, first)
	s.wantServed(t, "/", "")
	if got := served.Load(); got != 2 {
		t.Errorf("%d requests were served, want the two of the connections that stayed open", got)
	}
}

func TestListener_CloseEndsAccept(t *testing.T) {
	asked := make(chan struct{}, 10)
	l, err := gateway.ListenTCP("127.0.0.1:0", false, func() gateway.ConnectionLimits {
		asked <- struct{}{}
		return gateway.ConnectionLimits{Total: 1, MinTime: time.Hour}
	})
	if err != nil {
		t.Fatal(err)
	}
	s := limitedServer{address: l.Addr().String()}
	s.dial(t, "")
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	<-asked
	s.dial(t, "")
	ended := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	<-asked // it waits for a place now
	for range 2 {
		_ = l.Close()
	}
	select {
	case err := <-ended:
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v, want net.ErrClosed", err)
		}
	case <-time.After(newcomerTimeout):
		t.Error("Accept did not end")
	}
}
