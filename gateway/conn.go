package gateway

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/rolecall/rolecall/gateway/auth"
)

// trackedConn is a connection of a limitListener. Its state says whether it may
// give way to a new connection.
type trackedConn struct {
	*net.TCPConn
	table   *connTable
	peer    netip.Addr
	address netip.Prefix // whose share it belongs to

	// Guarded by table.mu.
	viaProxy      bool      // peer is a trusted proxy
	inRequest     bool      // a handler runs
	admitted      bool      // the sender of the request in progress is authenticated
	received      bool      // the body of the request in progress has arrived
	authenticated bool      // the sender of the last request was authenticated
	gone          bool      // it was closed, or has given way to another connection
	since         time.Time // when it was accepted; if authenticated, when its last request began or ended
}

// newTrackedConn returns a connection that is not in the table yet.
func newTrackedConn(conn *net.TCPConn, t *connTable) *trackedConn {
	c := &trackedConn{TCPConn: conn, table: t, since: time.Now()}
	if at, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		c.peer = at.AddrPort().Addr().Unmap().WithZone("")
	}
	c.address = auth.ClientNetwork(c.peer)
	return c
}

// yieldRank orders connections: connections of a lower rank give way first.
type yieldRank uint8

const (
	rankIdle          yieldRank = iota // no request in progress, sender not authenticated
	rankAnonymous                      // a request whose sender is not authenticated
	rankAuthenticated                  // no request in progress, the last one was authenticated
	rankReceiving                      // a request of an authenticated sender that is incomplete or not authenticated yet
	rankNever                          // a request of an authenticated sender: it does not give way
)

// rank must be called with table.mu held.
func (c *trackedConn) rank() yieldRank {
	switch {
	case !c.authenticated && !c.inRequest:
		return rankIdle
	case !c.authenticated:
		return rankAnonymous
	case !c.inRequest:
		return rankAuthenticated
	case !c.admitted || !c.received:
		return rankReceiving
	}
	return rankNever
}

// Close implements net.Conn. It may be called twice.
func (c *trackedConn) Close() error {
	err := c.TCPConn.Close()
	c.table.remove(c)
	return err
}

// beginRequest is called when the head of a request has arrived. It reports whether
// the request may be served.
func (c *trackedConn) beginRequest(hasBody bool) bool {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.inRequest, c.admitted, c.received = true, false, !hasBody
	c.touch()
	return !c.gone
}

// admitSender is called when a request is authenticated, or is served without
// authentication. It reports whether the request may be served.
func (c *trackedConn) admitSender(authenticated bool) bool {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	if c.gone {
		return false
	}
	c.admitted = authenticated
	c.table.setAuthenticated(c, authenticated)
	return true
}

// bodyReceived is called at the end of the request's body.
func (c *trackedConn) bodyReceived() {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.received = true
}

// endRequest is called when a response has been sent.
func (c *trackedConn) endRequest() {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	if c.inRequest && !c.admitted {
		c.table.setAuthenticated(c, false)
	}
	c.inRequest = false
	c.touch()
	c.table.changed.Broadcast() // it may give way now
}

// touch records the use of a connection of an authenticated sender. Other senders gain
// nothing by sending requests. It must be called with table.mu held.
func (c *trackedConn) touch() {
	if c.authenticated {
		c.since = time.Now()
	}
}

// connKey is the context key for the trackedConn of a request.
type connKey struct{}

// asTracked returns the trackedConn of a connection of http.Server. It is the connection itself, or
// the connection below its TLS. asTracked returns nil if there is no trackedConn.
func asTracked(conn net.Conn) *trackedConn {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	c, _ := conn.(*trackedConn)
	return c
}

// withConn returns the context of a connection's requests, for http.Server.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if c := asTracked(conn); c != nil {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// connOf returns the connection of a request, nil if it is not limited.
func connOf(r *http.Request) *trackedConn {
	c, _ := r.Context().Value(connKey{}).(*trackedConn)
	return c
}

// handleConnState notices the end of requests, for http.Server.
func handleConnState(conn net.Conn, state http.ConnState) {
	if c := asTracked(conn); c != nil && state == http.StateIdle {
		c.endRequest()
	}
}

// trackRequests returns next for connections that may give way. A request whose
// connection has given way is not served: its sender could not get the answer.
func trackRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := connOf(r); c != nil {
			hasBody := r.Body != nil && r.Body != http.NoBody
			if !c.beginRequest(hasBody) {
				panic(http.ErrAbortHandler)
			}
			if hasBody {
				r.Body = &trackedBody{r.Body, c}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// Values of authenticated in trackSender.
const (
	authenticatedSender = true
	anonymousSender     = false
)

// trackSender marks the connection of a request as one of an authenticated sender,
// or of another one. It aborts the request if the connection has given way.
func trackSender(r *http.Request, authenticated bool) {
	if c := connOf(r); c != nil && !c.admitSender(authenticated) {
		panic(http.ErrAbortHandler)
	}
}

// trackedBody is a request body that notices its end.
type trackedBody struct {
	io.ReadCloser
	conn *trackedConn
}

// Read implements io.Reader.
func (b *trackedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.conn.bodyReceived()
	}
	return n, err
}
