// Package natsbroker reaches tool services through NATS: an external server or cluster, or one
// that runs in this process.
//
// A request goes to the subject of its queue, and each response to an inbox that only the
// caller subscribes to, so the response queue of a service is not used. No message is stored.
package natsbroker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// Kind returns the kind nats.
func Kind() broker.Kind { return broker.Kind{Name: "nats", Check: check, Connect: Connect} }

// driver is a connection to NATS. The connection is made when the first link is opened.
type driver struct {
	config broker.Config
	server *embedded // nil for an external server

	mu     sync.Mutex // guards what follows
	conn   *nats.Conn // nil before the first link
	links  map[*link]bool
	closed bool
}

// Connect returns the driver of a configuration; it is the Connect of Kind. It starts the
// embedded server if there is no URL. Errors: InvalidConfig.
func Connect(c broker.Config) (broker.Driver, error) {
	if err := check(c); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	d := &driver{config: c, links: map[*link]bool{}}
	if c.URL != "" {
		return d, nil
	}
	var err error
	d.server, err = startEmbedded(c)
	return d, err
}

// connectTimeout limits how long connecting takes.
const connectTimeout = 3 * time.Second

// connection returns the connection, which it makes the first time.
func (d *driver) connection() (*nats.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, broker.ErrUnavailable
	case d.conn != nil:
		return d.conn, nil
	}
	options, err := d.options()
	if err != nil {
		return nil, err
	}
	if d.conn, err = options.Connect(); err != nil {
		d.conn = nil
		return nil, fmt.Errorf("%w: %s: %w", broker.ErrUnavailable, d.config.Name, err)
	}
	return d.conn, nil
}

// options returns the options of the connection. A request is never kept for a later
// connection: it fails at once, so that the caller knows that it was not sent.
func (d *driver) options() (nats.Options, error) {
	o := nats.GetDefaultOptions()
	list := []nats.Option{
		nats.Name("rolecall"), nats.Timeout(connectTimeout), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.NoEcho(),
		nats.ReconnectWait(200 * time.Millisecond), nats.PingInterval(20 * time.Second), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { d.disconnected(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			d.config.Log.Warn("broker reported an error", "broker", d.config.Name, "error", err)
		}),
	}
	if d.server != nil {
		list = append(list, d.server.clientOptions()...)
	} else {
		o.Servers = strings.Split(d.config.URL, ",")
		list = append(list, externalOptions(d.config)...)
	}
	for _, set := range list {
		if err := set(&o); err != nil {
			return o, errcode.Wrap(errcode.InvalidConfig, err, "connect to the broker %s: %v", d.config.Name, err)
		}
	}
	return o, nil
}

// externalOptions returns the options of a connection to an external server.
func externalOptions(c broker.Config) (list []nats.Option) {
	if c.User != "" || c.Password != "" {
		list = append(list, nats.UserInfo(c.User, c.Password))
	}
	if c.TLS.CA != "" {
		list = append(list, nats.RootCAs(c.TLS.CA))
	}
	if c.TLS.Cert != "" {
		list = append(list, nats.ClientCert(c.TLS.Cert, c.TLS.Key))
	}
	return list
}

// disconnected tells all links that responses may be lost.
func (d *driver) disconnected(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	d.config.Log.Warn("lost the connection to the broker; connecting again", "broker", d.config.Name, "error", err)
	for l := range d.links {
		l.receive(broker.Delivery{Err: broker.ErrUnavailable})
	}
}

// MaxBytes implements broker.Driver. Before the first connection it is the default of NATS.
func (d *driver) MaxBytes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil || d.conn.MaxPayload() == 0 {
		return 1<<20 - headerBytes
	}
	return int(d.conn.MaxPayload()) - headerBytes
}

// CheckAccounts implements broker.Embedded.
func (d *driver) CheckAccounts() {
	if d.server != nil {
		d.server.checkAccounts()
	}
}

// Address implements broker.Embedded.
func (d *driver) Address() string {
	if d.server == nil || d.server.server.Addr() == nil {
		return ""
	}
	return d.server.server.Addr().String()
}

// headerBytes is the room that is kept for the headers of a message.
const headerBytes = 12 << 10

// Close implements broker.Driver.
func (d *driver) Close() error {
	d.mu.Lock()
	conn := d.conn
	d.conn, d.closed, d.links = nil, true, nil
	d.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
	if d.server != nil {
		d.server.stop()
	}
	return nil
}

// link carries the requests to one service. Its inbox is a subject that nobody can guess.
type link struct {
	driver  *driver
	conn    *nats.Conn
	subject string
	inbox   string // with the dot at its end
	sub     *nats.Subscription
	receive func(broker.Delivery)
}

// Open implements broker.Driver.
func (d *driver) Open(ctx context.Context, q broker.Queues, receive func(broker.Delivery)) (broker.Link, error) {
	conn, err := d.connection()
	if err != nil {
		return nil, err
	}
	l := &link{driver: d, conn: conn, subject: q.Request.Subject(), inbox: nats.NewInbox() + ".", receive: receive}
	if l.sub, err = conn.Subscribe(l.inbox+"*", l.deliver); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", broker.ErrUnavailable, d.config.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := conn.FlushWithContext(ctx); err != nil {
		_ = l.sub.Unsubscribe() // the subscription is of no use any more
		return nil, fmt.Errorf("%w: %s: %w", broker.ErrUnavailable, d.config.Name, err)
	}
	return l, d.add(l)
}

// add remembers a link, unless the driver was closed meanwhile.
func (d *driver) add(l *link) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return broker.ErrUnavailable
	}
	d.links[l] = true
	return nil
}

// Send implements broker.Link.
func (l *link) Send(_ context.Context, m broker.Message) (sent bool, err error) {
	header := nats.Header{protocol.HeaderID: {m.ID}}
	if m.Token != "" {
		header[protocol.HeaderToken] = []string{m.Token}
	}
	err = l.conn.PublishMsg(&nats.Msg{Subject: l.subject, Reply: l.inbox + m.ID, Header: header, Data: m.Body})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, nats.ErrMaxPayload):
		return false, broker.ErrTooLarge
	}
	return false, fmt.Errorf("%w: %s: %w", broker.ErrUnavailable, l.driver.config.Name, err)
}

// statusNoResponders is the status of a message of NATS: nothing subscribes to the subject.
const statusNoResponders = "503"

// deliver passes on a message of the inbox. Its last part is the id of the request. A header
// with another id makes the message foreign.
func (l *link) deliver(m *nats.Msg) {
	d := broker.Delivery{Message: broker.Message{ID: strings.TrimPrefix(m.Subject, l.inbox), Body: m.Data}}
	if id := m.Header[protocol.HeaderID]; len(id) > 0 && id[0] != d.ID {
		return
	}
	if len(m.Data) == 0 && m.Header.Get("Status") == statusNoResponders {
		d.Err = broker.ErrNoService
	}
	l.receive(d)
}

// Close implements broker.Link.
func (l *link) Close() error {
	l.driver.mu.Lock()
	delete(l.driver.links, l)
	l.driver.mu.Unlock()
	if err := l.sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) && !errors.Is(err, nats.ErrBadSubscription) {
		return fmt.Errorf("close the link to %s: %w", l.subject, err)
	}
	return nil
}
