package pulsar

import (
	"context"
	"errors"
	"fmt"

	"github.com/rolecall/rolecall/modules/toolservice/broker"
)

// link carries the requests to one service, in sessions that it opens again when they are lost.
type link struct {
	*broker.SessionLink[*session]
	driver *driver
}

// Open implements broker.Driver.
func (d *driver) Open(ctx context.Context, q broker.Queues, receive func(broker.Delivery)) (broker.Link, error) {
	sessions, err := broker.OpenSessionLink(ctx, d.links, broker.SessionConfig[*session]{
		Broker: d.config.Name, Service: q.Service, Receive: receive, Log: d.config.Log,
		Open: func() (*session, error) { return d.openSession(q) },
	})
	if err != nil {
		return nil, err
	}
	return &link{sessions, d}, nil
}

// openSession opens a session.
func (d *driver) openSession(q broker.Queues) (*session, error) {
	s, err := newSession(d, q)
	if err != nil {
		return nil, d.unavailable(err)
	}
	return s, nil
}

// unavailable returns an ErrUnavailable that says the broker and the reason.
func (d *driver) unavailable(err error) error {
	return fmt.Errorf("%w: %s: %w", broker.ErrUnavailable, d.config.Name, err)
}

// Send implements broker.Link. It returns when the broker has the request.
func (l *link) Send(ctx context.Context, m broker.Message) (sent bool, err error) {
	if len(m.Body) > maxBody {
		return false, broker.ErrTooLarge
	}
	s, connected := l.CurrentSession()
	if !connected {
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
	return l.driver.unavailable(err)
}
