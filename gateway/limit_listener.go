package gateway

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/rolecall/rolecall/internal/openfiles"
)

// The defaults of ConnectionLimits.
const (
	defaultConnections = 1024
	addressDivisor     = 2 // one address may have half of the connections
	defaultMinTime     = 75 * time.Millisecond
	reserveDivisor     = 4 // a quarter of a limit is for authenticated senders
)

// ConnectionLimits bounds the open TCP connections of a listener. A field that is
// not positive has its default.
type ConnectionLimits struct {
	Total      int // open connections; default 1024, never more than half of the files that this process may open
	PerAddress int // open connections of one IPv4 address or IPv6 /64 network; default half of Total

	// MinTime is how long a connection has at least to send its request and be
	// authenticated before it gives way; default 75 ms. Without it, many clients
	// that connect at the same time would displace each other.
	MinTime time.Duration

	// TrustedProxies lists addresses that many clients share. PerAddress does not
	// apply to them.
	TrustedProxies []netip.Prefix
}

// orDefault returns the limits with unset fields replaced by the defaults.
func (c ConnectionLimits) orDefault() ConnectionLimits {
	if c.Total <= 0 {
		c.Total = defaultConnections
	}
	c.Total = min(c.Total, openfiles.MaxIncoming())
	if c.PerAddress <= 0 {
		c.PerAddress = c.Total / addressDivisor
	}
	c.PerAddress = max(1, c.PerAddress)
	if c.MinTime <= 0 {
		c.MinTime = defaultMinTime
	}
	return c
}

// trusts reports whether an address is one of the trusted proxies.
func (c ConnectionLimits) trusts(at netip.Addr) bool {
	for _, p := range c.TrustedProxies {
		if p.Contains(at) {
			return true
		}
	}
	return false
}

// limitListener is a TCP listener that limits the number of open connections. At
// a limit, a connection without a request in progress gives way to the new one
// (connTable.yieldsBefore has the order). Accept blocks while all connections carry
// requests of authenticated senders.
//
// Its connections have CloseWrite. net/http needs that to deliver an error response
// to a client that is still sending.
type limitListener struct {
	*net.TCPListener
	table *connTable
}

// newLimitListener returns a listener with limits, which it reads for every
// connection; nil means the defaults.
func newLimitListener(l *net.TCPListener, limits func() ConnectionLimits) *limitListener {
	if limits == nil {
		limits = func() ConnectionLimits { return ConnectionLimits{} }
	}
	return &limitListener{TCPListener: l, table: newConnTable(limits)}
}

// Accept implements net.Listener. It closes connections of an address that has
// its share of connections already, unless one of them gives way.
func (l *limitListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptTCP()
		if errors.Is(err, syscall.EMFILE) && l.table.evictOne() {
			continue
		}
		if err != nil {
			return nil, err
		}
		if c := l.table.admit(conn); c != nil {
			return c, nil
		}
		_ = conn.Close()
	}
}

// Close implements net.Listener. It may be called twice.
func (l *limitListener) Close() error {
	l.table.close()
	return l.TCPListener.Close()
}
