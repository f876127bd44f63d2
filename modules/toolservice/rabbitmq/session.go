package rabbitmq

import (
	"context"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// maxResponses is the number of responses that the broker sends before the link has read them. The
// client keeps all of them in memory.
const maxResponses = 64

// session is a channel with the exchanges and the queue of one link. It ends with its channel.
type session struct {
	conn      *connection
	channel   *amqp.Channel
	request   string // the exchange
	returns   chan amqp.Return
	responses <-chan amqp.Delivery
}

// newSession opens a channel on a connection. When it returns, responses are received.
func newSession(conn *connection, q broker.Queues) (*session, error) {
	channel, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, channel: channel, request: q.Request.Subject(), returns: channel.NotifyReturn(make(chan amqp.Return, 64))}
	if err := s.declare(q.Response.Subject()); err != nil {
		_ = channel.Close() // it may be closed already
		return nil, err
	}
	return s, nil
}

// declare declares the exchanges, and receives from the one of responses. Services and other
// callers declare the same exchanges with the same arguments.
func (s *session) declare(response string) error {
	for _, exchange := range []string{s.request, response} {
		if err := s.channel.ExchangeDeclare(exchange, amqp.ExchangeFanout, true, false, false, false, nil); err != nil {
			return err
		}
	}
	queue, err := s.channel.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		return err
	}
	if err := s.channel.QueueBind(queue.Name, "", response, false, nil); err != nil {
		return err
	}
	if err := s.channel.Qos(maxResponses, 0, false); err != nil {
		return err
	}
	if s.responses, err = s.channel.Consume(queue.Name, "", false, true, false, false, nil); err != nil {
		return err
	}
	return s.channel.Confirm(false)
}

// Serve implements broker.Session. It passes on what arrives, until the channel is closed or ctx
// ends.
func (s *session) Serve(ctx context.Context, receive func(broker.Delivery)) {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		for r := range s.returns {
			receive(broker.Delivery{Message: broker.Message{ID: text(r.Headers[protocol.HeaderID])}, Err: broker.ErrNoService})
		}
	}()
	stop := context.AfterFunc(ctx, s.close)
	read := make(chan uint64, maxResponses) // no more are not acknowledged
	go s.acknowledge(read)
	defer close(read)
	for r := range s.responses {
		receive(broker.Delivery{Message: broker.Message{ID: text(r.Headers[protocol.HeaderID]), Body: r.Body}})
		read <- r.DeliveryTag
	}
	if stop() {
		s.close() // the broker may have removed the queue alone
	}
	<-returned
}

// acknowledge tells the broker which responses were read. It waits while the broker does not read, and a
// request is being written.
func (s *session) acknowledge(read <-chan uint64) {
	for tag := range read {
		_ = s.channel.Ack(tag, false) // the channel may be closed; then its queue is gone too
	}
}

// close closes the channel.
func (s *session) close() { _ = s.channel.Close() } // it may be closed already

// text returns the value of a header that is a text; "" if it is something else.
func text(header any) string {
	value, _ := header.(string)
	return value
}
