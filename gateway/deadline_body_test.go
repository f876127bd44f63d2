package gateway_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/org/hosts"
)

// oneCall is a listener of one connection.
type oneCall struct {
	conns chan net.Conn
	once  sync.Once
}

func (l *oneCall) Accept() (net.Conn, error) {
	conn, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l *oneCall) Close() error {
	l.once.Do(func() { close(l.conns) })
	return nil
}

func (l *oneCall) Addr() net.Addr { return &net.UnixAddr{Name: "test", Net: "unix"} }

// A body has a minute to arrive; the answer to one that did may last longer.
func TestABodyHasToArriveAndAnAnswerMayLast(t *testing.T) {
	for name, c := range map[string]struct {
		sent string
		want string
	}{
		"whole": {"0123456789", "arrived, and answered after 5m0s"},
		"half":  {"01234", "cut off after 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := make(chan string, 1)
				handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					began := time.Now()
					if _, err := io.ReadAll(r.Body); err != nil {
						told <- "cut off after " + time.Since(began).String()
						return
					}
					select {
					case <-r.Context().Done():
						told <- "arrived, and given up after " + time.Since(began).String()
					case <-time.After(5 * time.Minute):
						told <- "arrived, and answered after " + time.Since(began).String()
					}
				})
				door := gateway.HostCheck{Hosts: []hosts.Authority{{Name: "gw"}}}.Wrap(handler)
				here, there := net.Pipe()
				l := &oneCall{conns: make(chan net.Conn, 1)}
				l.conns <- there
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- gateway.Serve(ctx, l, door) }()
				if _, err := io.WriteString(here, "POST / HTTP/1.1\r\nHost: gw\r\nContent-Length: 10\r\n\r\n"+c.sent); err != nil {
					t.Fatal(err)
				}
				go func() { _, _ = io.Copy(io.Discard, bufio.NewReader(here)) }()
				if got := <-told; got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
				here.Close()
				cancel()
				if err := <-done; err != nil {
					t.Errorf("serve: %v", err)
				}
			})
		})
	}
}
