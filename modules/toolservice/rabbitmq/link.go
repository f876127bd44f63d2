package rabbitmq

import (
	"context"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// link carries the requests to one service. A goroutine keeps a session open for it.
type link struct {
	driver    *driver
	queues    broker.Queues
	receive   func(broker.Delivery)
	ctx       context.Context
	cancel    context.CancelFunc
	publishes chan struct{} // one element for each request that is being written

	mu      sync.Mutex // guards session
	session *session   // nil while there is none
}

// maxPublishes is the largest number of requests of a link that are written at a time. More of
// them wait: a broker that reads nothing must not collect them here.
const maxPublishes = 64

// Open implements broker.Driver.
func (d *driver) Open(ctx context.Context, q broker.Queues, receive func(broker.Delivery)) (broker.Link, error) {
	l := &link{driver: d, queues: q, receive: receive, publishes: make(chan struct{}, maxPublishes)}
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
		return nil, fmt.Errorf("%w: %s: %w", broker.ErrUnavailable, d.config.Name, context.Cause(ctx))
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
	conn, err := l.driver.connection()
	if err != nil {
		return nil, err
	}
	s, err := newSession(conn, l.queues)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", broker.ErrUnavailable, l.driver.config.Name, err)
	}
	l.set(s)
	return s, nil
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

// ready returns the session that requests are sent on.
func (l *link) ready() (*session, error) {
	switch s := l.current(); {
	case s == nil:
		return nil, broker.ErrUnavailable
	case s.conn.blocked.Load():
		return nil, broker.ErrBusy
	default:
		return s, nil
	}
}

// Close implements broker.Link. The goroutine of the link closes the session.
func (l *link) Close() error {
	l.cancel()
	return nil
}

// Send implements broker.Link. It returns when the broker has the request. A broker that takes
// no messages for now gets none.
func (l *link) Send(ctx context.Context, m broker.Message) (sent bool, err error) {
	if len(m.Body) > l.driver.MaxBytes() {
		return false, broker.ErrTooLarge
	}
	select {
	case l.publishes <- struct{}{}:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	s, err := l.ready()
	if err != nil {
		<-l.publishes
		return false, fmt.Errorf("%w: %s", err, l.driver.config.Name)
	}
	done := make(chan published, 1)
	go func() { // writing does not end with ctx
		defer func() { <-l.publishes }()
		done <- s.publish(m)
	}()
	return l.await(ctx, done)
}

// published is the outcome of writing a request.
type published struct {
	confirmation *amqp.DeferredConfirmation
	err          error // the request was not written completely, so the broker does not have it
}

// await waits until a request is written and the broker confirms that it has it.
func (l *link) await(ctx context.Context, done <-chan published) (sent bool, err error) {
	var p published
	select {
	case p = <-done:
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
	if p.err != nil {
		return false, fmt.Errorf("%w: %s: %w", broker.ErrUnavailable, l.driver.config.Name, p.err)
	}
	select {
	case <-p.confirmation.Done():
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
	if !p.confirmation.Acked() { // rejected, or the connection was lost before
		return true, fmt.Errorf("%w: %s", broker.ErrUnavailable, l.driver.config.Name)
	}
	return true, nil
}

// publish writes a request.
func (s *session) publish(m broker.Message) published {
	headers := amqp.Table{protocol.HeaderID: m.ID}
	if m.Token != "" {
		headers[protocol.HeaderToken] = m.Token
	}
	c, err := s.channel.PublishWithDeferredConfirm(s.request, "", true, false, amqp.Publishing{
		Headers: headers, ContentType: "application/json", DeliveryMode: amqp.Transient, Body: m.Body,
	})
	return published{c, err}
}
