package pulsar

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
)

// link carries the requests to one service. A goroutine keeps a session open for it.
type link struct {
	driver  *driver
	queues  broker.Queues
	receive func(broker.Delivery)
	ctx     context.Context
	cancel  context.CancelFunc

	mu      sync.Mutex // guards session
	session *session   // nil while there is none
}

// Open implements broker.Driver.
func (d *driver) Open(ctx context.Context, q broker.Queues, receive func(broker.Delivery)) (broker.Link, error) {
	l := &link{driver: d, queues: q, receive: receive}
	if err := d.start(l); err != nil {
		return nil, err
	}
	opened := make(chan error, 1)
	go l.run(opened)
	select {
	case err := <-opened:
		if err != nil {
			l.cancel()
			return nil, err
		}
		return l, nil
	case <-ctx.Done():
		l.cancel()
		return nil, l.unavailable(context.Cause(ctx))
	}
}

// start counts a link and makes its context, unless the driver is closed.
func (d *driver) start(l *link) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return broker.ErrUnavailable
	}
	d.links.Add(1)
	l.ctx, l.cancel = context.WithCancel(d.ctx)
	return nil
}

// run keeps a session open until the link is closed. It reports the outcome of the first
// attempt, and ends if that fails.
func (l *link) run(opened chan<- error) {
	defer l.driver.links.Done()
	s, err := l.openSession()
	opened <- err
	for err == nil {
		s.serve(l.ctx, l.receive)
		l.set(nil)
		if l.ctx.Err() != nil {
			return
		}
		l.receive(broker.Delivery{Err: broker.ErrUnavailable})
		l.driver.config.Log.Warn("lost the connection to the broker; connecting again", "broker", l.driver.config.Name, "service", l.queues.Service)
		s, err = l.reopen()
	}
}

// reopen opens a session as soon as that succeeds. The error is that of a closed link.
func (l *link) reopen() (*session, error) {
	delays := backoff.Backoff{Initial: firstDelay, Max: longestDelay, Jitter: true}
	for {
		s, err := l.openSession()
		if err == nil || l.ctx.Err() != nil {
			return s, err
		}
		l.driver.config.Log.Debug("broker not reached", "broker", l.driver.config.Name, "service", l.queues.Service, "error", err)
		timer := time.NewTimer(delays.Next())
		select {
		case <-timer.C:
		case <-l.ctx.Done():
			timer.Stop()
			return nil, broker.ErrUnavailable
		}
	}
}

// openSession opens a session and makes it the session of the link.
func (l *link) openSession() (*session, error) {
	s, err := newSession(l.driver, l.queues)
	if err != nil {
		return nil, l.unavailable(err)
	}
	l.set(s)
	return s, nil
}

// unavailable returns an ErrUnavailable that says the broker and the reason.
func (l *link) unavailable(err error) error {
	return fmt.Errorf("%w: %s: %w", broker.ErrUnavailable, l.driver.config.Name, err)
}

func (l *link) set(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = s
}

// current returns the session that requests are sent on, nil if there is none.
func (l *link) current() *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return nil
	}
	return l.session
}

// IsConnected implements broker.ConnectedLink.
func (l *link) IsConnected() bool { return l.current() != nil }

// Send implements broker.Link. It returns when the broker has the request.
func (l *link) Send(ctx context.Context, m broker.Message) (sent bool, err error) {
	if len(m.Body) > maxBody {
		return false, broker.ErrTooLarge
	}
	s := l.current()
	if s == nil {
		return false, fmt.Errorf("%w: %s", broker.ErrUnavailable, l.driver.config.Name)
	}
	end := make(chan outcome, 1)
	s.send(ctx, m, end)
	select {
	case o := <-end:
		return o.sent, l.sendError(ctx, o.err)
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

// sendError returns the error of Send for one of the client.
func (l *link) sendError(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, broker.ErrTooLarge) || errors.Is(err, broker.ErrBusy):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return l.unavailable(err)
}

// Close implements broker.Link. The goroutine of the link closes the session.
func (l *link) Close() error {
	l.cancel()
	return nil
}
