// Package natsbroker reaches tool services through NATS. This is an external server or
// cluster, or a server that runs in this process.
//
// A request goes to the subject of its queue. Each response goes to an inbox that only the
// caller subscribes to. So the response queue of a service is not used. No message is stored.
package natsbroker

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// Kind returns the kind nats.
func Kind() broker.Kind {
	return broker.Kind{Name: "nats", Check: check, Connect: Connect, Announces: true}
}

// driver opens links to NATS. Each link has a connection of its own, so a service that floods its
// link slows or loses no other.
type driver struct {
	config broker.Config
	server *embedded // nil for an external server

	maxPayload atomic.Int64 // of the newest connection; 0 before the first

	mu     sync.Mutex // guards what follows
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

// connect returns a connection for a link. A request is never kept for a later connection. It fails
// at once, so that the caller knows that it was not sent.
func (d *driver) connect(l *link) (*nats.Conn, error) {
	o := nats.GetDefaultOptions()
	list := []nats.Option{
		nats.Name("rolecall " + l.service), nats.Timeout(connectTimeout), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.NoEcho(), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(200 * time.Millisecond), nats.PingInterval(20 * time.Second), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(l.disconnected),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			d.config.Log.Warn("broker reported an error", "broker", d.config.Name, "service", l.service, "error", err)
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
			return nil, errcode.Wrap(errcode.InvalidConfig, err, "connect to the broker %s: %v", d.config.Name, err)
		}
	}
	conn, err := o.Connect()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", broker.ErrUnavailable, d.config.Name, err)
	}
	d.maxPayload.Store(conn.MaxPayload())
	return conn, nil
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

// MaxBytes implements broker.Driver. Before the first connection it is the default of NATS.
func (d *driver) MaxBytes() int {
	return int(cmp.Or(d.maxPayload.Load(), 1<<20)) - headerBytes
}

// DisconnectInvalid implements broker.Embedded.
func (d *driver) DisconnectInvalid() {
	if d.server != nil {
		d.server.disconnectInvalid()
	}
}

// ConnectedServices implements broker.Embedded.
func (d *driver) ConnectedServices() []string {
	if d.server == nil {
		return nil
	}
	return d.server.connectedServices()
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
	links := d.links
	d.links, d.closed = nil, true
	d.mu.Unlock()
	for l := range links {
		l.conn.Close()
	}
	if d.server != nil {
		d.server.stop()
	}
	return nil
}

// inboxes returns how the inboxes of a service's links begin. The id of the service is one part of
// the subject, whatever its characters.
func inboxes(service string) string {
	return nats.InboxPrefix + base64.RawURLEncoding.EncodeToString([]byte(service)) + "."
}

// link carries the requests to one service. Its inbox is a subject that cannot be guessed.
type link struct {
	driver  *driver
	service string
	conn    *nats.Conn
	subject string
	inbox   string // with the dot at its end
	receive func(broker.Delivery)
}

// Open implements broker.Driver.
func (d *driver) Open(ctx context.Context, q broker.Queues, receive func(broker.Delivery)) (broker.Link, error) {
	l := &link{driver: d, service: q.Service, subject: q.Request.Subject(), inbox: inboxes(q.Service) + rand.Text() + ".", receive: receive}
	conn, err := d.connect(l)
	if err != nil {
		return nil, err
	}
	l.conn = conn
	if err := d.subscribe(ctx, l, l.inbox+"*", l.deliver); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%w: %s: %w", broker.ErrUnavailable, d.config.Name, err)
	}
	return l, nil
}

// subscribe subscribes a link and remembers it.
func (d *driver) subscribe(ctx context.Context, l *link, subject string, receive nats.MsgHandler) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if _, err := l.conn.Subscribe(subject, receive); err != nil {
		return err
	}
	if err := l.conn.FlushWithContext(ctx); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nats.ErrConnectionClosed
	}
	d.links[l] = true
	return nil
}

// disconnected reports that responses may be lost.
func (l *link) disconnected(conn *nats.Conn, err error) {
	if conn.IsClosed() {
		return
	}
	l.driver.config.Log.Warn("lost the connection to the broker; connecting again", "broker", l.driver.config.Name, "service", l.service, "error", err)
	l.receive(broker.Delivery{Err: broker.ErrUnavailable})
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

// IsConnected implements broker.ConnectedLink.
func (l *link) IsConnected() bool { return l.conn.IsConnected() }

// Close implements broker.Link.
func (l *link) Close() error {
	l.driver.mu.Lock()
	delete(l.driver.links, l)
	l.driver.mu.Unlock()
	l.conn.Close()
	return nil
}
