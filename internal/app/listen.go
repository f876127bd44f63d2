package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/config"
)

// DefaultAddress is where ListenHTTP listens when neither its caller nor the
// configuration names an address.
const DefaultAddress = "127.0.0.1:7464"

// HTTPListener is the HTTP API on a TCP address.
type HTTPListener struct {
	net.Listener
	Handler http.Handler
	Token   string // start-up token of the operator; "" if the configuration lists an operator's token

	log    *slog.Logger
	secure bool // it serves TLS
}

// ListenHTTP listens on address, or if it is empty on the address of the configuration;
// cfg may be nil. It returns an error for an address that other machines can reach
// when the configuration lists neither tokens nor issuers. Requests wait until MarkReady is called. The
// caller serves or closes the listener.
func (a *App) ListenHTTP(address string, cfg *config.Config) (*HTTPListener, error) {
	var section config.Gateway
	if cfg != nil {
		section = cfg.Gateway
	}
	handler, err := a.Handler()
	if err != nil {
		return nil, err
	}
	check := auth.HostCheck{Hosts: section.Hosts, Origins: section.Origins, Tokens: a.Tokens, OnRefused: a.metrics.CountRefused}
	l := &HTTPListener{Handler: check.Wrap(a.whenReady(handler)), log: a.options.Log}
	address = cmp.Or(address, section.Address, DefaultAddress)
	if l.Listener, err = gateway.ListenTCP(address, len(section.Tokens)+len(section.Issuers) > 0, a.limits.connectionLimits); err != nil {
		return nil, err
	}
	if files := section.TLS; files.Cert != "" {
		secure, err := gateway.WithTLS(l.Listener, files.Cert, files.Key, a.options.Warn)
		if err != nil {
			return nil, errors.Join(err, l.Listener.Close())
		}
		l.Listener, l.secure = secure, true
	}
	hasOperator := slices.ContainsFunc(section.Tokens, func(t config.Token) bool { return t.Scope == config.OperatorScope })
	if l.Loopback() && !hasOperator {
		l.Token = a.Tokens.StartupToken()
	}
	return l, nil
}

// Serve serves requests until ctx ends, and closes the listener.
func (l *HTTPListener) Serve(ctx context.Context) error {
	return gateway.Serve(ctx, l.Listener, l.Handler, l.log)
}

// URL returns the address of the API, without a path.
func (l *HTTPListener) URL() string {
	if l.secure {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

// Encrypted reports whether no program on the network can read tokens and answers. They are sent by
// TLS, or do not leave this machine.
func (l *HTTPListener) Encrypted() bool { return l.secure || l.Loopback() }

// Loopback reports whether only this machine can reach the listener.
func (l *HTTPListener) Loopback() bool {
	at, ok := l.Addr().(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

// ServeSocket serves the API on the data directory's socket until stop is called. Requests
// wait until MarkReady is called. The socket belongs to the owner of the directory, so its
// clients are the operator.
func (a *App) ServeSocket() (stop func() error, err error) {
	handler, err := a.Handler()
	if err != nil {
		return nil, err
	}
	l, err := gateway.ListenUnix(a.options.Data)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- gateway.Serve(ctx, l, auth.TrustLocalOwner(a.whenReady(handler)), a.options.Log) }()
	return func() error {
		cancel()
		return <-done
	}, nil
}

// Client returns a client of the API within the process, as the operator.
func (a *App) Client() (*client.Client, error) {
	handler, err := a.Handler()
	if err != nil {
		return nil, err
	}
	return client.NewLocal(auth.TrustLocalOwner(handler)), nil
}

// CloseWithin is Close with a timeout, because a tool or script that hangs must not
// keep the program from exiting. After a timeout the program should exit: the App is not
// usable any more, and its tasks can be resumed by the next process.
func (a *App) CloseWithin(d time.Duration) error {
	done := make(chan error, 1)
	go func() { done <- a.Close() }()
	select {
	case err := <-done:
		return err
	case <-time.After(d):
		return fmt.Errorf("a tool or script did not stop within %v; the task can be resumed", d)
	}
}
