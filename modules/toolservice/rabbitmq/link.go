package rabbitmq

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// link carries the requests to one service, in sessions that it opens again when they are lost.
type link struct {
	*broker.SessionLink[*session]
	driver    *driver
	publishes chan struct{} // one element for each request that is being written
}

// maxPublishes is the largest number of requests of a link that are written at a time. More of
// them wait: a broker that reads nothing must not collect them here.
const maxPublishes = 64

// Open implements broker.Driver.
func (d *driver) Open(ctx context.Context, q broker.Queues, receive func(broker.Delivery)) (broker.Link, error) {
	sessions, err := broker.OpenSessionLink(ctx, d.links, broker.SessionConfig[*session]{
		Broker: d.config.Name, Service: q.Service, Receive: receive, Log: d.config.Log,
		Open: func() (*session, error) { return d.openSession(q) },
	})
	if err != nil {
		return nil, err
	}
	return &link{sessions, d, make(chan struct{}, maxPublishes)}, nil
}

// openSession opens a session on the connection of the driver.
func (d *driver) openSession(q broker.Queues) (*session, error) {
	conn, err := d.connection()
	if err != nil {
		return nil, err
	}
	s, err := newSession(conn, q)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", broker.ErrUnavailable, d.config.Name, err)
	}
	return s, nil
}

// currentSession returns the session that requests are sent on.
func (l *link) currentSession() (*session, error) {
	switch s, connected := l.CurrentSession(); {
	case !connected:
		return nil, broker.ErrUnavailable
	case s.conn.blocked.Load():
		return nil, broker.ErrBusy
	default:
		return s, nil
	}
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
	s, err := l.currentSession()
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
