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

// maxConnections limits the open connections of one browser.
const maxConnections = 256

// keyHost is a host that does not exist. The proxy answers requests to it itself, so that a
// context can check its key.
const keyHost = "key.invalid"

// proxy is the HTTP proxy of one browser, through which all its requests go. It listens on a
// loopback port. If that is in the sandbox, only the browser reaches it; if not, the proxy serves
// only clients that have its key.
type proxy struct {
	access   accessPolicy
	private  bool // only the browser reaches the listener, so that it needs no key
	key      string
	listener net.Listener // closed with the proxy
	server   *http.Server
	forward  *httputil.ReverseProxy
	ctx      context.Context // ends the connections
	cancel   context.CancelFunc
	requests sync.WaitGroup
	slots    chan struct{} // one token for each open connection

	mu     sync.Mutex    // guards what follows
	closed bool          // no request is added to requests any more
	spent  chan struct{} // closed when the budget is used up; resetBudget replaces it

	keyShown    atomic.Bool  // the browser has sent the key
	keyMissing  atomic.Bool  // a request has come without the key since the browser was given it
	budget      atomic.Int64 // bytes that may be received until the next call
	maxTransfer int64        // the budget at the start of a call
	blocked     blockedHosts
}

// newProxy starts the proxy of a browser. The caller closes it.
func newProxy(b *process, access accessPolicy, maxTransfer int64) *proxy {
	p := &proxy{access: access, private: b.private, key: rand.Text(), listener: b.listener, maxTransfer: maxTransfer, slots: make(chan struct{}, maxConnections), spent: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.budget.Store(maxTransfer)
	discard := log.New(io.Discard, "", 0)
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: time.Minute, ErrorLog: discard}
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(*httputil.ProxyRequest) {}, Transport: p.transport(), ModifyResponse: rejectProxyChallenge,
		FlushInterval: -1, ErrorLog: discard, ErrorHandler: p.onForwardError,
	}
	p.requests.Go(func() { _ = p.server.Serve(b.listener) })
	return p
}

func (p *proxy) url() string { return "http://" + p.listener.Addr().String() }

// close ends all connections and waits for all goroutines of the proxy.
func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.server.Close()
	p.requests.Wait()
}

// beginRequest adds a request to requests; the caller calls requests.Done. It reports false
// when the proxy is closed.
func (p *proxy) beginRequest() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.requests.Add(1)
	}
	return !p.closed
}

// resetBudget sets the budget to maxTransfer and clears the blocked hosts. It is called at the
// start of a call.
func (p *proxy) resetBudget() {
	p.mu.Lock()
	p.spent = make(chan struct{})
	p.mu.Unlock()
	p.budget.Store(p.maxTransfer)
	p.blocked.clear()
}

// exceedBudget records that a host sends more than the budget allows.
func (p *proxy) exceedBudget(h hosts.Host) {
	p.blocked.add(h.String(), errcode.New(errcode.ResultTooLarge, "the pages have received %d bytes since the last call began, which is the limit; the operator can raise maxTransfer", p.maxTransfer))
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.spent:
	default:
		close(p.spent)
	}
}

// showTimeout is how long a page may take to show what arrived before the budget was used up.
const showTimeout = time.Second

// whileTransferring returns a context that ends showTimeout after the budget is used up: the page
// receives nothing more. The caller calls the function to release it.
func (p *proxy) whileTransferring(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.mu.Lock()
	spent := p.spent
	p.mu.Unlock()
	go func() {
		select {
		case <-ctx.Done():
			return
		case <-spent:
		}
		sleep(ctx, showTimeout)
		cancel(errTransferLimit)
	}()
	return ctx, func() { cancel(nil) }
}

// transport returns a transport that dials with p.dial and uses each connection once.
func (p *proxy) transport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			h, err := parseAuthority(address)
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
	if !p.beginRequest() {
		return
	}
	defer p.requests.Done()
	if !p.hasKey(r) {
		p.keyMissing.Store(true)
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
		p.keyShown.Store(true)
		w.WriteHeader(http.StatusNoContent)
	default:
		p.forwardHTTP(w, r)
	}
}

// hasKey reports whether a request comes from the browser.
func (p *proxy) hasKey(r *http.Request) bool {
	if p.private {
		return true
	}
	key, _, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
	return subtle.ConstantTimeCompare([]byte(key), []byte(p.key)) == 1
}

// forwardHTTP forwards a request without TLS.
func (p *proxy) forwardHTTP(w http.ResponseWriter, r *http.Request) {
	h, err := hosts.FromURL(r.URL)
	if err == nil {
		err = p.access.checkPlainHTTP()
	}
	if err == nil {
		err = p.access.check(r.Context(), h)
	}
	if err != nil {
		p.block(w, h.String(), err)
		return
	}
	r.Host = "" // then the URL's host is sent
	p.forward.ServeHTTP(w, r)
}

// rejectProxyChallenge rejects the status that only a proxy answers with. The browser would take
// it for an answer of its proxy and forget the key.
func rejectProxyChallenge(r *http.Response) error {
	if r.StatusCode != http.StatusProxyAuthRequired {
		return nil
	}
	return errcode.New(errcode.ToolExecutionFailed, "%s answered with HTTP 407, which only a proxy may", r.Request.URL.Host)
}

// onForwardError handles a request that could not be forwarded.
func (p *proxy) onForwardError(w http.ResponseWriter, r *http.Request, err error) {
	h, _ := hosts.FromURL(r.URL) // forwardHTTP has checked it
	p.block(w, h.String(), err)
}

// block answers a request that is not allowed or has failed, and records the host.
func (p *proxy) block(w http.ResponseWriter, host string, err error) {
	status := http.StatusForbidden
	if _, denied := errors.AsType[*errcode.Error](err); !denied {
		status = http.StatusBadGateway
		text := "the connection to %s was refused, or closed before the answer was complete"
		if _, unknown := errors.AsType[*net.DNSError](err); unknown {
			text = "the host %s cannot be found"
		}
		err = errcode.Wrap(errcode.ToolExecutionFailed, err, text, host)
	}
	p.blocked.add(host, err)
	w.Header().Set("Connection", "close")
	w.WriteHeader(status)
}

// dial connects to a host if the access policy and the limit of connections allow it.
func (p *proxy) dial(ctx context.Context, h hosts.Host) (net.Conn, error) {
	select {
	case p.slots <- struct{}{}:
	default:
		return nil, errcode.New(errcode.RateLimited, "%d connections are open, which is the limit", maxConnections)
	}
	c, err := p.access.dial(ctx, h)
	if err != nil {
		<-p.slots
		return nil, err
	}
	limited := &limitedConn{Conn: c, proxy: p, host: h}
	limited.checkedAt.Store(time.Now().UnixNano())
	assigned := make(chan struct{})
	limited.stop = context.AfterFunc(p.ctx, func() { <-assigned; limited.Close() })
	close(assigned)
	return limited, nil
}

// limitedConn is a connection to a host. Reading consumes the budget of the proxy. While data is
// read or written, the access policy is checked again every second.
type limitedConn struct {
	net.Conn
	proxy     *proxy
	host      hosts.Host
	checkedAt atomic.Int64 // Unix time in nanoseconds
	stop      func() bool
	once      sync.Once
}

var errTransferLimit = errors.New("transfer limit reached")

// Read implements io.Reader.
func (c *limitedConn) Read(b []byte) (int, error) {
	if c.proxy.budget.Load() <= 0 {
		c.proxy.exceedBudget(c.host)
		return 0, errTransferLimit
	}
	n, err := c.Conn.Read(b)
	c.proxy.budget.Add(-int64(n))
	if denied := c.recheck(); denied != nil {
		return 0, denied
	}
	return n, err
}

// Write implements io.Writer.
func (c *limitedConn) Write(b []byte) (int, error) {
	if denied := c.recheck(); denied != nil {
		return 0, denied
	}
	return c.Conn.Write(b)
}

// recheck checks the access policy again, unless that was done within the last second. It closes
// the connection if the host is denied: the other direction may wait for data.
func (c *limitedConn) recheck() error {
	last, now := c.checkedAt.Load(), time.Now().UnixNano()
	if now-last <= int64(time.Second) || !c.checkedAt.CompareAndSwap(last, now) {
		return nil
	}
	denied := c.proxy.access.check(c.proxy.ctx, c.host)
	if denied != nil {
		c.proxy.blocked.add(c.host.String(), denied)
		c.Close()
	}
	return denied
}

// Close implements io.Closer.
func (c *limitedConn) Close() error {
	c.once.Do(func() {
		c.stop()
		<-c.proxy.slots
	})
	return c.Conn.Close()
}
