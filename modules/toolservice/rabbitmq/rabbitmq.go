// Package rabbitmq reaches tool services through RabbitMQ, with the exchanges, headers and
// bodies of TrustGraph.
//
// A request goes to the fanout exchange of its queue, tg.request.NAME. Responses come from the
// fanout exchange tg.response.NAME, through a queue that the link alone reads. All callers of a
// service see all its responses there. Package toolservice drops the responses for others.
//
// A request is published once and never kept for a later connection. It is published as
// mandatory, so that the broker returns it if no service has a queue.
package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
)

// Kind returns the kind rabbitmq.
func Kind() broker.Kind { return broker.Kind{Name: "rabbitmq", Check: check, Connect: Connect} }

// driver is a connection to RabbitMQ. The connection is made when the first link is opened.
// Each link has a channel of its own, so that an error of one does not close another.
type driver struct {
	config broker.Config
	tls    *tls.Config // nil for amqp
	links  *broker.LinkGroup

	dialing chan struct{} // has one place: the right to dial
	delays  backoff.Backoff
	retryAt time.Time // no dial before; both are guarded by dialing
	failure error     // of the last dial

	mu   sync.Mutex // guards what follows
	conn *connection
}

// connection is one connection of a driver.
type connection struct {
	*amqp.Connection
	blocked atomic.Bool // the broker takes no messages for now: it lacks memory or disk
}

// Connect returns the driver of a configuration; it is the Connect of Kind. It does not wait
// for the broker. Errors: InvalidConfig.
func Connect(c broker.Config) (broker.Driver, error) {
	if err := check(c); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	d := &driver{
		config: c, links: broker.NewLinkGroup(), dialing: make(chan struct{}, 1),
		delays: backoff.Backoff{Initial: broker.FirstDelay, Max: broker.LongestDelay, Jitter: true},
	}
	var err error
	d.tls, err = readTLS(c)
	return d, err
}

// readTLS reads the files of a configuration. It returns nil for a URL without TLS.
func readTLS(c broker.Config) (*tls.Config, error) {
	if c.URL[:len("amqps")] != "amqps" {
		return nil, nil
	}
	return c.ReadTLS()
}

// connection returns the open connection. It connects if there is no connection, but not sooner
// than the delay after a failure. Until then it returns that failure.
func (d *driver) connection() (*connection, error) {
	select {
	case d.dialing <- struct{}{}:
		defer func() { <-d.dialing }()
	case <-d.links.Context().Done():
		return nil, broker.ErrUnavailable
	}
	switch conn := d.current(); {
	case d.links.Context().Err() != nil:
		return nil, broker.ErrUnavailable
	case conn != nil && !conn.IsClosed():
		return conn, nil
	case d.failure != nil && time.Now().Before(d.retryAt):
		return nil, d.failure
	}
	conn, err := d.dial()
	if err != nil {
		d.failure = fmt.Errorf("%w: %s: %w", broker.ErrUnavailable, d.config.Name, err)
		d.retryAt = time.Now().Add(d.delays.Next())
		return nil, d.failure
	}
	d.failure = nil
	d.delays.Reset()
	return conn, d.keep(conn)
}

// current returns the last connection, which may be closed; nil before the first one.
func (d *driver) current() *connection {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.conn
}

// keep makes conn the connection, unless the driver was closed meanwhile.
func (d *driver) keep(conn *connection) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.links.Context().Err() != nil {
		_ = conn.CloseDeadline(time.Now().Add(closeTimeout)) // of no use to anyone
		return broker.ErrUnavailable
	}
	d.conn = conn
	return nil
}

// Limits of connections.
const (
	connectTimeout = 3 * time.Second // TCP, TLS and the handshake
	closeTimeout   = time.Second
	heartbeat      = 5 * time.Second // a broker that is silent three times as long is lost
)

// dial connects. Close ends it.
func (d *driver) dial() (*connection, error) {
	stop := func() bool { return true }
	defer func() { stop() }()
	dialTCP := func(network, address string) (net.Conn, error) {
		conn, err := d.dialTCP(network, address)
		if err == nil {
			stop = context.AfterFunc(d.links.Context(), func() { _ = conn.Close() })
		}
		return conn, err
	}
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName("rolecall")
	conn, err := amqp.DialConfig(d.config.URL, amqp.Config{
		SASL:      []amqp.Authentication{&amqp.PlainAuth{Username: d.config.User, Password: d.config.Password}},
		Heartbeat: heartbeat, TLSClientConfig: d.tls.Clone(), Properties: properties, Dial: dialTCP,
	})
	if err != nil {
		return nil, err
	}
	c := &connection{Connection: conn}
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 1))
	go func() {
		for b := range blocked {
			c.blocked.Store(b.Active)
			d.config.Log.Warn("broker reported whether it takes messages", "broker", d.config.Name, "blocked", b.Active, "reason", b.Reason)
		}
	}()
	return c, nil
}

// dialTCP connects to an address. It sets the deadline of the handshake, which removes it.
func (d *driver) dialTCP(network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: connectTimeout}
	conn, err := dialer.DialContext(d.links.Context(), network, address)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(connectTimeout))
}

// MaxBytes implements broker.Driver. It is the default limit of RabbitMQ 4; earlier versions
// accept more.
func (d *driver) MaxBytes() int { return 16 << 20 }

// Close implements broker.Driver. It waits until the links have ended.
func (d *driver) Close() error {
	d.links.Cancel()
	if conn := d.current(); conn != nil {
		if err := conn.CloseDeadline(time.Now().Add(closeTimeout)); err != nil && !errors.Is(err, amqp.ErrClosed) {
			d.config.Log.Warn("broker connection not closed cleanly", "broker", d.config.Name, "error", err)
		}
	}
	d.links.Close()
	return nil
}
