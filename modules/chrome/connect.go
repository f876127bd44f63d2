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

// connect makes a tunnel: TLS, or a web socket without it.
func (p *proxy) connect(w http.ResponseWriter, r *http.Request) {
	h, err := hostOf(r.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	far, err := p.dial(r.Context(), h)
	if err != nil {
		p.refuse(w, h.String(), err)
		return
	}
	defer far.Close()
	near, in, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer near.Close()
	defer context.AfterFunc(p.ctx, func() { near.Close() })()
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	if err := p.requireTLS(near, in.Reader); err != nil {
		p.refused.add(h.String(), err)
		return
	}
	pipeBoth(near, in.Reader, far)
}

// requireTLS waits for the browser's first bytes: they have to be TLS where nothing
// else may go out.
func (p *proxy) requireTLS(near net.Conn, in *bufio.Reader) error {
	_ = near.SetReadDeadline(time.Now().Add(30 * time.Second))
	head, err := in.Peek(2)
	_ = near.SetReadDeadline(time.Time{})
	if err != nil {
		return nil // it said nothing; splice finds out
	}
	if isTLS := head[0] == 0x16 && head[1] == 3; isTLS {
		return nil
	}
	return p.reach.checkPlainHTTP()
}

// pipeBoth carries bytes both ways until either end is closed.
func pipeBoth(near net.Conn, in io.Reader, far net.Conn) {
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(far, in)
		far.Close()
	})
	both.Go(func() {
		_, _ = io.Copy(near, far)
		near.Close()
	})
	both.Wait()
}

// blockedHosts are the last hosts that pages of a context were refused.
type blockedHosts struct {
	mu   sync.Mutex // guards list
	list []refusal
}

type refusal struct {
	host string
	err  error
}

// add notes the first refusal of a host.
func (r *blockedHosts) add(host string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := slices.ContainsFunc(r.list, func(o refusal) bool { return o.host == host })
	if !known && len(r.list) < 20 {
		r.list = append(r.list, refusal{host, err})
	}
}

func (r *blockedHosts) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = nil
}

// of gives why a host was refused, nil when it was not.
func (r *blockedHosts) of(host string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.list {
		if o.host == host {
			return o.err
		}
	}
	return nil
}

// first gives the first refusal, nil when there is none.
func (r *blockedHosts) first() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == 0 {
		return nil
	}
	return r.list[0].err
}

// codes gives "host: code" for each, in order.
func (r *blockedHosts) codes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for _, o := range r.list {
		list = append(list, o.host+": "+string(errcode.Of(o.err)))
	}
	return list
}
