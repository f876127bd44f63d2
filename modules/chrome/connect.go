package chrome

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
)

// connect handles CONNECT: it tunnels TLS, or a web socket without TLS where that is allowed.
func (p *proxy) connect(w http.ResponseWriter, r *http.Request) {
	h, err := parseAuthority(r.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	upstream, err := p.dial(r.Context(), h)
	if err != nil {
		p.block(w, h.String(), err)
		return
	}
	defer upstream.Close()
	client, in, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	defer context.AfterFunc(p.ctx, func() { client.Close() })()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	if err := p.requireTLS(client, in.Reader); err != nil {
		p.blocked.add(h.String(), err)
		return
	}
	pipeBoth(client, in.Reader, upstream)
}

// requireTLS waits for the first bytes of the browser. They must be a TLS record unless plain
// HTTP is allowed.
func (p *proxy) requireTLS(client net.Conn, in *bufio.Reader) error {
	_ = client.SetReadDeadline(time.Now().Add(30 * time.Second))
	head, err := in.Peek(2)
	_ = client.SetReadDeadline(time.Time{})
	if err != nil {
		return nil // no bytes were sent; pipeBoth ends
	}
	if isTLS := head[0] == 0x16 && head[1] == 3; isTLS {
		return nil
	}
	return p.access.checkPlainHTTP()
}

// pipeBoth copies bytes in both directions until either end is closed. in is the reader of
// client, which may have buffered bytes.
func pipeBoth(client net.Conn, in io.Reader, upstream net.Conn) {
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(upstream, in)
		upstream.Close()
	})
	both.Go(func() {
		_, _ = io.Copy(client, upstream)
		client.Close()
	})
	both.Wait()
}

// blockedHosts records the hosts that were blocked for the pages of a context since the last
// call began. It is safe for concurrent use.
type blockedHosts struct {
	mu   sync.Mutex // guards list
	list []blockedHost
}

// blockedHost is a host with the reason why it is blocked.
type blockedHost struct {
	host string
	err  error
}

// add records a host, unless it is recorded already or there are 20 of them.
func (b *blockedHosts) add(host string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	recorded := slices.ContainsFunc(b.list, func(o blockedHost) bool { return o.host == host })
	if !recorded && len(b.list) < 20 {
		b.list = append(b.list, blockedHost{host, err})
	}
}

func (b *blockedHosts) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = nil
}

// reason returns why a host is blocked, nil if it is not.
func (b *blockedHosts) reason(host string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.list {
		if o.host == host {
			return o.err
		}
	}
	return nil
}

// first returns the reason of the first blocked host, nil if there is none.
func (b *blockedHosts) first() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.list) == 0 {
		return nil
	}
	return b.list[0].err
}

// codes returns "host: code" for each blocked host, in order.
func (b *blockedHosts) codes() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []string
	for _, o := range b.list {
		list = append(list, o.host+": "+string(errcode.CodeOf(o.err)))
	}
	return list
}
