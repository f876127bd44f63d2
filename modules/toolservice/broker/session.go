package broker

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rolecall/rolecall/internal/backoff"
)

// Session is what a driver opens for one link and loses with its connection.
type Session interface {
	// Serve calls receive with what arrives. When the session is lost or ctx ends, it closes the
	// session and returns.
	Serve(ctx context.Context, receive func(Delivery))
}

// SessionConfig says which sessions a SessionLink has. All fields are required.
type SessionConfig[S Session] struct {
	Broker  string            // its name, for logs and errors
	Service string            // id of the service, for logs
	Open    func() (S, error) // opens a session. Its errors are ErrUnavailable
	Receive func(Delivery)    // as in Driver.Open
	Log     *slog.Logger
}

// The first and the longest delay between attempts to reach a broker.
const (
	FirstDelay   = 100 * time.Millisecond
	LongestDelay = 5 * time.Second
)

// SessionLink keeps a session open for one link: a goroutine opens another when one is lost. Types
// that embed it are a Link with the method Send. It is safe for concurrent use.
type SessionLink[S Session] struct {
	config SessionConfig[S]
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu      sync.Mutex // guards what follows
	session S
	isOpen  bool // session is open
}

// OpenSessionLink adds a link to a group and returns when it has its first session. The error is
// ErrUnavailable if that cannot be opened before ctx ends.
func OpenSessionLink[S Session](ctx context.Context, group *LinkGroup, config SessionConfig[S]) (*SessionLink[S], error) {
	l := &SessionLink[S]{config: config}
	var err error
	if l.ctx, l.cancel, err = group.Add(); err != nil {
		return nil, err
	}
	opened := make(chan error, 1)
	go func() {
		defer group.Done()
		l.run(opened)
	}()
	select {
	case err = <-opened:
	case <-ctx.Done():
		err = fmt.Errorf("%w: %s: %w", ErrUnavailable, config.Broker, context.Cause(ctx))
	}
	if err != nil {
		l.cancel()
		return nil, err
	}
	return l, nil
}

// run keeps a session open until the link is closed. It reports the outcome of the first
// attempt, and ends if that fails.
func (l *SessionLink[S]) run(opened chan<- error) {
	s, err := l.open()
	opened <- err
	for err == nil {
		s.Serve(l.ctx, l.config.Receive)
		l.lose()
		if l.ctx.Err() != nil {
			return
		}
		l.config.Receive(Delivery{Err: ErrUnavailable})
		l.config.Log.Warn("lost the connection to the broker; connecting again", "broker", l.config.Broker, "service", l.config.Service)
		s, err = l.reopen()
	}
}

// reopen opens a session as soon as that succeeds. It fails only once the link is
// closed.
func (l *SessionLink[S]) reopen() (S, error) {
	delays := backoff.Backoff{Initial: FirstDelay, Max: LongestDelay, Jitter: true}
	for {
		s, err := l.open()
		if err == nil || l.ctx.Err() != nil {
			return s, err
		}
		l.config.Log.Debug("broker not reached", "broker", l.config.Broker, "service", l.config.Service, "error", err)
		timer := time.NewTimer(delays.Next())
		select {
		case <-timer.C:
		case <-l.ctx.Done():
			timer.Stop()
			return s, ErrUnavailable
		}
	}
}

// open opens a session and makes it the one of the link.
func (l *SessionLink[S]) open() (S, error) {
	s, err := l.config.Open()
	if err == nil {
		l.mu.Lock()
		l.session, l.isOpen = s, true
		l.mu.Unlock()
	}
	return s, err
}

// lose records that the session has ended.
func (l *SessionLink[S]) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	var none S
	l.session, l.isOpen = none, false
}

// CurrentSession returns the session that requests are sent on. It reports false if there is no
// session, and after Close.
func (l *SessionLink[S]) CurrentSession() (S, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session, l.isOpen && l.ctx.Err() == nil
}

// IsConnected implements ConnectedLink.
func (l *SessionLink[S]) IsConnected() bool {
	_, connected := l.CurrentSession()
	return connected
}

// Close implements Link. It does not wait: Serve closes the session, and LinkGroup.Close waits.
func (l *SessionLink[S]) Close() error {
	l.cancel()
	return nil
}
