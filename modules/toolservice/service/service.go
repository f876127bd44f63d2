// Package service writes tool services in Go. A service connects to NATS, receives requests and
// answers them:
//
//	func main() {
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//		defer stop()
//		err := service.Run(ctx, service.Options{
//			URL: os.Getenv("NATS_URL"), ID: "joke-service", Key: os.Getenv("ROLECALL_SERVICE_KEY"),
//		}, func(_ context.Context, c *service.Call) (string, error) {
//			var joke struct{ Style, Topic string }
//			err := c.Decode(&joke)
//			return "Here's a " + joke.Style + " about " + joke.Topic, err
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//	}
//
// With a key, a request without a valid call token is rejected before the handler is called. So
// Call.Token describes the caller truly. Several processes with the same ID share the requests.
//
// The package imports no other part of rolecall than package protocol.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// Options configure a service. ID is required.
type Options struct {
	URL   string // of the server; "" is nats://127.0.0.1:4222
	ID    string // id of the tool service, as its declaration has it
	Queue string // its request queue; "" is non-persistent://tg/request/ID

	// Key is what "rolecall key service ID" prints. It is the password at the embedded server, and
	// checks call tokens. "" checks none.
	Key string
	// Connect are options of the connection in addition, such as nats.UserCredentials for an
	// external server.
	Connect []nats.Option

	// Tools are announced from the start until the service stops, so that the operator need not
	// declare them. They require a Key. Without Tools, the service announces nothing.
	Tools []Tool
	Lease time.Duration // of an announcement, 10 s to 10 min; 0 is a minute

	MaxConcurrent int           // calls at a time; 0 is 16. Further ones are told to come back
	StopTimeout   time.Duration // how long Run waits for calls in progress when ctx ends; 0 is 30 s
	Log           *slog.Logger  // nil discards
}

// Handler answers one call. The text is the result that the model reads. The model also reads an
// error. ctx ends when the caller stops waiting or the service stops. A panic is an error.
// Handlers run concurrently.
type Handler func(ctx context.Context, c *Call) (string, error)

// Service is a running service. Its methods are safe for concurrent use.
type Service struct {
	options   Options
	handler   Handler
	subject   string
	signer    *protocol.Signer // verifies call tokens
	conn      *nats.Conn
	announcer *announcer // nil without tools
	sub       *nats.Subscription
	slots     chan struct{} // one element for each call in progress
	calls     sync.WaitGroup
	ctx       context.Context // of all calls
	cancel    context.CancelFunc
}

// Run starts a service and answers calls until ctx ends. Then it takes no more requests, waits for
// requests in progress and returns nil.
func Run(ctx context.Context, o Options, h Handler) error {
	s, err := Start(o, h)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return s.Stop()
}

// Start starts a service. The caller stops it. It returns an error if the options are invalid or
// the server cannot be reached; afterwards the service connects again whenever the connection is
// lost.
func Start(o Options, h Handler) (*Service, error) {
	if o.ID == "" || h == nil {
		return nil, errors.New("start a tool service: an ID and a handler are required")
	}
	topic, err := protocol.ParseTopic(cmp.Or(o.Queue, "non-persistent://tg/request/"+o.ID))
	if err != nil {
		return nil, fmt.Errorf("start the tool service %s: queue: %w", o.ID, err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{options: o, handler: h, subject: topic.Subject(), signer: protocol.NewSigner(o.Key), slots: make(chan struct{}, cmp.Or(o.MaxConcurrent, 16))}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if s.announcer, err = newAnnouncer(s); err != nil {
		return nil, fmt.Errorf("start the tool service %s: %w", o.ID, err)
	}
	if err := s.connect(); err != nil {
		return nil, err
	}
	if s.announcer != nil {
		go s.announcer.run()
	}
	return s, nil
}

// connect connects and subscribes. The queue group is the id, so that processes share requests.
func (s *Service) connect() (err error) {
	list := []nats.Option{nats.Name(s.options.ID), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(false), nats.IgnoreAuthErrorAbort()}
	if s.options.Key != "" {
		list = append(list, nats.UserInfo(s.options.ID, s.options.Key))
	}
	if s.announcer != nil {
		list = append(list, nats.ReconnectHandler(s.announcer.announceAgain))
	}
	list = append(list, s.options.Connect...)
	if s.conn, err = nats.Connect(cmp.Or(s.options.URL, nats.DefaultURL), list...); err != nil {
		return fmt.Errorf("start the tool service %s: connect: %w", s.options.ID, err)
	}
	if s.sub, err = s.conn.QueueSubscribe(s.subject, s.options.ID, s.receive); err == nil {
		err = s.conn.Flush()
	}
	if err == nil {
		err = s.conn.LastError() // a subscription that the server rejects is reported so
	}
	if err != nil {
		s.conn.Close()
		return fmt.Errorf("start the tool service %s: subscribe to %s: %w", s.options.ID, s.subject, err)
	}
	return nil
}

// CheckHealth returns nil while the service is connected and takes calls.
func (s *Service) CheckHealth() error {
	switch {
	case s.ctx.Err() != nil:
		return errors.New("the service has stopped")
	case !s.conn.IsConnected():
		return fmt.Errorf("the service is not connected: %s", s.conn.Status())
	}
	return nil
}

// ServeHTTP answers health checks: 200 while CheckHealth returns nil, else 503.
func (s *Service) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if err := s.CheckHealth(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// Stop takes no more calls, waits for calls in progress and disconnects. Calls that are not done
// after StopTimeout are told to end; the error says so. Stop is called once.
func (s *Service) Stop() error {
	s.announcer.end()
	err := s.waitForCalls()
	s.cancel()
	if s.conn.IsConnected() {
		err = errors.Join(err, s.conn.Flush())
	}
	s.conn.Close()
	return err
}

// waitForCalls unsubscribes and waits for the calls that were received before.
func (s *Service) waitForCalls() error {
	drained, done := make(chan struct{}), make(chan struct{})
	markDrained := sync.OnceFunc(func() { close(drained) })
	s.sub.SetClosedHandler(func(string) { markDrained() })
	if err := s.sub.Drain(); err != nil || !s.conn.IsConnected() {
		markDrained() // without a connection there are no more requests
	}
	go func() {
		<-drained
		s.calls.Wait()
		close(done)
	}()
	timer := time.NewTimer(cmp.Or(s.options.StopTimeout, 30*time.Second))
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return fmt.Errorf("stop the tool service %s: calls were still in progress", s.options.ID)
	}
}
