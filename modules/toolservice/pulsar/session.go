package pulsar

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/backoff"

	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// session is a client with the topics of one link. It ends with its connection: the client does
// not connect again, since it would send requests a second time.
type session struct {
	client    pulsar.Client
	requests  pulsar.Producer
	responses pulsar.Consumer
	lost      chan struct{} // closed when the connection is lost
	lose      func()

	mu     sync.RWMutex // held for reading while a request is handed to the client
	closed bool
}

// newSession opens the topics of a link. When it returns, responses are received.
func newSession(d *driver, q broker.Queues) (*session, error) {
	client, err := d.newClient()
	if err != nil {
		return nil, err
	}
	s := &session{client: client, lost: make(chan struct{})}
	s.lose = sync.OnceFunc(func() { close(s.lost) })
	if err := s.open(q); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// open subscribes to the responses and prepares requests.
func (s *session) open(q broker.Queues) (err error) {
	var never uint // the client asks for a backoff when it has lost the connection
	onLost := func() backoff.Policy { s.lose(); return backoff.NewDefaultBackoff() }
	s.responses, err = s.client.Subscribe(pulsar.ConsumerOptions{
		Topic: q.Response.URL(), SubscriptionName: "rolecall-" + rand.Text(), Type: pulsar.Exclusive, SubscriptionMode: pulsar.NonDurable,
		AckGroupingOptions: &pulsar.AckGroupingOptions{MaxSize: 1}, // the client drops what has the id of a message that waits in a group: all of them
		ReceiverQueueSize:  maxResponses, MaxPendingChunkedMessage: maxChunkedResponses, MaxReconnectToBroker: &never, BackOffPolicyFunc: onLost,
	})
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", q.Response.URL(), err)
	}
	s.requests, err = s.client.CreateProducer(pulsar.ProducerOptions{
		Topic: q.Request.URL(), DisableBatching: true, DisableBlockIfQueueFull: true, MaxPendingMessages: maxPending,
		SendTimeout: -1, MaxReconnectToBroker: &never, BackOffPolicyFunc: onLost,
	})
	if err != nil {
		return fmt.Errorf("open %s: %w", q.Request.URL(), err)
	}
	return nil
}

// Serve implements broker.Session. It passes on responses until the connection is lost or ctx ends.
func (s *session) Serve(ctx context.Context, receive func(broker.Delivery)) {
	defer s.close()
	for {
		select {
		case m := <-s.responses.Chan():
			receive(broker.Delivery{Message: broker.Message{ID: m.Properties()[protocol.HeaderID], Body: m.Payload()}})
			_ = s.responses.Ack(m) // without it the broker would keep the response of a persistent topic
		case <-s.lost:
			return
		case <-ctx.Done():
			return
		}
	}
}

// close closes the client. Requests that it has not sent, or not seen confirmed, fail.
func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.client.Close()
}

// outcome is the end of sending a request.
type outcome struct {
	sent bool // the service may receive the request
	err  error
}

// send hands a request to the client, which does not block. end receives the outcome.
func (s *session) send(ctx context.Context, m broker.Message, end chan<- outcome) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed { // the client panics
		end <- outcome{err: broker.ErrUnavailable}
		return
	}
	properties := map[string]string{protocol.HeaderID: m.ID}
	if m.Token != "" {
		properties[protocol.HeaderToken] = m.Token
	}
	s.requests.SendAsync(ctx, &pulsar.ProducerMessage{Payload: m.Body, Properties: properties}, func(id pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
		end <- outcomeOf(id, err)
	})
}

// notSent are the errors of the client that end a request before it is written.
var notSent = []error{pulsar.ErrContextExpired, context.Canceled, context.DeadlineExceeded}

// outcomeOf returns the outcome of a request that the client reports.
func outcomeOf(id pulsar.MessageID, err error) outcome {
	switch {
	case err == nil && id.LedgerID() < 0: // the broker dropped it: too many others of the connection wait
		return outcome{err: broker.ErrBusy}
	case errors.Is(err, pulsar.ErrSendQueueIsFull), errors.Is(err, pulsar.ErrMemoryBufferIsFull): // the same in the client
		return outcome{err: broker.ErrBusy}
	case errors.Is(err, pulsar.ErrMessageTooLarge):
		return outcome{err: broker.ErrTooLarge}
	}
	o := outcome{sent: true, err: err}
	for _, e := range notSent {
		o.sent = o.sent && !errors.Is(err, e)
	}
	return o
}
