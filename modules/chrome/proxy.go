package chrome

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/org/hosts"
)

// maxConnections is how many connections of one context may be open at once.
const maxConnections = 256

// keyHost is a host that no name leads to: who asks the proxy for it learns
// whether it takes his key.
const keyHost = "key.invalid"

// proxy is the one way out of one browser context. It serves on a loopback
// port those who have its key, for one principal.
type proxy struct {
	reach   accessPolicy
	key     string
	listen  net.Listener
	server  *http.Server
	forward *httputil.ReverseProxy
	ctx     context.Context // ends the connections
	end     context.CancelFunc
	ended   sync.WaitGroup
	open    chan struct{} // a place for each connection

	mu     sync.Mutex // guards closed
	closed bool       // nothing enters ended any more

	known   atomic.Bool  // the browser has shown the key
	left    atomic.Int64 // bytes that may still be received
	most    int64        // at the start of a call
	refused blockedHosts
}

func newProxy(r accessPolicy, most int64) (*proxy, error) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{reach: r, key: rand.Text(), listen: listen, most: most, open: make(chan struct{}, maxConnections)}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.left.Store(most)
	silent := log.New(io.Discard, "", 0)
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: time.Minute, ErrorLog: silent}
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(*httputil.ProxyRequest) {}, Transport: p.transport(),
		FlushInterval: -1, ErrorLog: silent, ErrorHandler: p.failed,
	}
	p.ended.Go(func() { _ = p.server.Serve(listen) })
	return p, nil
}

func (p *proxy) url() string { return "http://" + p.listen.Addr().String() }

// close ends all connections, and returns when nothing of the proxy runs.
func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.end()
	p.server.Close()
	p.ended.Wait()
}

// enter lets a request in; each that entered is done with ended.
func (p *proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.ended.Add(1)
	}
	return !p.closed
}

// resetBudget lets pages receive as much as they may from one call to the next, and
// forgets what was refused.
func (p *proxy) resetBudget() {
	p.left.Store(p.most)
	p.refused.clear()
}

// transport makes connections that are guarded and used once.
func (p *proxy) transport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			h, err := hostOf(address)
			if err != nil {
				return nil, err
			}
			return p.dial(ctx, h)
		},
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 256 << 10,
	}
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		return
	}
	defer p.ended.Done()
	given, _, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
	if subtle.ConstantTimeCompare([]byte(given), []byte(p.key)) != 1 {
		w.Header().Set("Proxy-Authenticate", `Basic realm="rolecall"`)
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	switch {
	case r.Method == http.MethodConnect:
		p.connect(w, r)
	case r.URL.Scheme != "http" || r.URL.Host == "":
		w.WriteHeader(http.StatusBadRequest)
	case r.URL.Host == keyHost:
		p.known.Store(true)
		w.WriteHeader(http.StatusNoContent)
	default:
		p.forwardHTTP(w, r)
	}
}

// forwardHTTP sends on a request without TLS.
func (p *proxy) forwardHTTP(w http.ResponseWriter, r *http.Request) {
	h, err := hosts.FromURL(r.URL)
	if err == nil {
		err = p.reach.checkPlainHTTP()
	}
	if err == nil {
		err = p.reach.check(r.Context(), h)
	}
	if err != nil {
		p.refuse(w, h.String(), err)
		return
	}
	r.Host = "" // the URL's
	p.forward.ServeHTTP(w, r)
}

func (p *proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	h, _ := hosts.FromURL(r.URL) // pass has read it
	p.refuse(w, h.String(), err)
}

// refuse answers a request that does not go out, and notes why.
func (p *proxy) refuse(w http.ResponseWriter, host string, err error) {
	status := http.StatusForbidden
	if _, decided := errors.AsType[*errcode.Error](err); !decided {
		status = http.StatusBadGateway
		words := "the connection to %s was refused, or broke before the answer was complete"
		if _, unknown := errors.AsType[*net.DNSError](err); unknown {
			words = "the host %s cannot be found"
		}
		err = errcode.Wrap(errcode.ToolExecutionFailed, err, words, host)
	}
	p.refused.add(host, err)
	w.Header().Set("Connection", "close")
	w.WriteHeader(status)
}

// dial connects within the limits of the context.
func (p *proxy) dial(ctx context.Context, h hosts.Host) (net.Conn, error) {
	select {
	case p.open <- struct{}{}:
	default:
		return nil, errcode.New(errcode.RateLimited, "%d connections are open already", maxConnections)
	}
	c, err := p.reach.dial(ctx, h)
	if err != nil {
		<-p.open
		return nil, err
	}
	m := &limitedConn{Conn: c, proxy: p, host: h, asked: time.Now()}
	m.stop = context.AfterFunc(p.ctx, func() { m.Close() })
	return m, nil
}

// limitedConn is a connection to a host. What it reads counts, and while it reads
// it asks again whether it may.
type limitedConn struct {
	net.Conn
	proxy *proxy
	host  hosts.Host
	asked time.Time // by the one who reads
	stop  func() bool
	once  sync.Once
}

var errTransferLimit = errors.New("the pages have received as much as they may")

// Read implements io.Reader.
func (m *limitedConn) Read(b []byte) (int, error) {
	if m.proxy.left.Load() <= 0 {
		m.proxy.refused.add(m.host.String(), errcode.New(errcode.ResultTooLarge, "the pages have received %d bytes since the call began, which is the limit; the operator can raise maxTransfer", m.proxy.most))
		return 0, errTransferLimit
	}
	n, err := m.Conn.Read(b)
	m.proxy.left.Add(-int64(n))
	if time.Since(m.asked) > time.Second {
		m.asked = time.Now()
		if refusal := m.proxy.reach.check(m.proxy.ctx, m.host); refusal != nil {
			m.proxy.refused.add(m.host.String(), refusal)
			return 0, refusal
		}
	}
	return n, err
}

// Close implements io.Closer.
func (m *limitedConn) Close() error {
	m.once.Do(func() {
		m.stop()
		<-m.proxy.open
	})
	return m.Conn.Close()
}
