package auth_test

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
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/org/hosts"
)

// oneShotListener is a listener that accepts the connections of a channel.
type oneShotListener struct {
	conns chan net.Conn
	once  sync.Once
}

func (l *oneShotListener) Accept() (net.Conn, error) {
	conn, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l *oneShotListener) Close() error {
	l.once.Do(func() { close(l.conns) })
	return nil
}

func (l *oneShotListener) Addr() net.Addr { return &net.UnixAddr{Name: "test", Net: "unix"} }

// A request body must arrive within a minute. The answer may take longer.
func TestHostCheck_BodyReadTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		sent string
		want string
	}{
		"complete body":   {"0123456789", "arrived, and answered after 5m0s"},
		"incomplete body": {"01234", "cut off after 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				result := make(chan string, 1)
				slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					began := time.Now()
					if _, err := io.ReadAll(r.Body); err != nil {
						result <- "cut off after " + time.Since(began).String()
						return
					}
					select {
					case <-r.Context().Done():
						result <- "arrived, and given up after " + time.Since(began).String()
					case <-time.After(5 * time.Minute):
						result <- "arrived, and answered after " + time.Since(began).String()
					}
				})
				handler := auth.HostCheck{Hosts: []hosts.Authority{{Name: "gw"}}}.Wrap(slow)
				here, there := net.Pipe()
				l := &oneShotListener{conns: make(chan net.Conn, 1)}
				l.conns <- there
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- gateway.Serve(ctx, l, handler, nil) }()
				if _, err := io.WriteString(here, "POST / HTTP/1.1\r\nHost: gw\r\nContent-Length: 10\r\n\r\n"+c.sent); err != nil {
					t.Fatal(err)
				}
				go func() { _, _ = io.Copy(io.Discard, bufio.NewReader(here)) }()
				if got := <-result; got != c.want {
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
