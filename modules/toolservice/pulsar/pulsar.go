// Package pulsar reaches tool services through Apache Pulsar, with the topics, properties and
// bodies of TrustGraph. It is a Go module of its own, so that no other program contains a client
// of Pulsar.
//
// A request is a message of the topic non-persistent://tg/request/NAME. Responses are messages of
// non-persistent://tg/response/NAME. A link carries the requests to one service and its responses.
// It reads the responses with a subscription of its own. All callers of a service see all its
// responses there. Package toolservice drops the responses for others.
//
// A message of such a topic is kept nowhere: Pulsar drops a request that no service subscribes to,
// and does not report it.
package pulsar

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall/modules/toolservice/broker"
)

// Kind returns the kind pulsar.
func Kind() broker.Kind { return broker.Kind{Name: "pulsar", Check: check, Connect: Connect} }

// driver makes links. Each has a client of its own, so a service that floods its link slows or
// loses no other.
type driver struct {
	config   broker.Config
	listener string
	tls      *tls.Config // nil for pulsar://
	auth     pulsar.Authentication
	links    *broker.LinkGroup
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
	var s settings
	_ = c.ReadSettings(&s) // check has read them
	d := &driver{config: c, listener: s.Listener, links: broker.NewLinkGroup()}
	var err error
	if d.tls, err = readTLS(c); err != nil {
		return nil, err
	}
	if d.auth, err = authentication(c, d.tls); err != nil {
		return nil, err
	}
	return d, nil
}

// Limits of links.
const (
	maxBody             = 5<<20 - headerBytes // the default limit of a broker is 5 MiB
	headerBytes         = 64 << 10
	maxPending          = 256             // requests of a link that wait for the broker
	maxResponses        = 1000            // that the broker sends before the link has read them
	connectTimeout      = 3 * time.Second // TCP and TLS
	operationTimeout    = 5 * time.Second // of a command, such as subscribing
	keepAlive           = 5 * time.Second // a broker that is silent twice as long is lost
	maxChunkedResponses = 1               // chunked responses that are joined at the same time
)

// MaxBytes implements broker.Driver.
func (d *driver) MaxBytes() int { return maxBody }

// Close implements broker.Driver. It waits until the links have ended.
func (d *driver) Close() error {
	d.links.Close()
	return nil
}

// newClient returns a client. It connects with the first topic.
func (d *driver) newClient() (pulsar.Client, error) {
	return pulsar.NewClient(pulsar.ClientOptions{
		URL: d.config.URL, ListenerName: d.listener, Authentication: d.auth, TLSConfig: d.tls.Clone(), Description: "rolecall",
		ConnectionTimeout: connectTimeout, OperationTimeout: operationTimeout, KeepAliveInterval: keepAlive,
		Logger: log.NewLoggerWithSlog(slog.New(clientLog{d.config.Log.Handler()})), MetricsRegisterer: prometheus.NewRegistry(),
	})
}

// clientLog is a handler for what the client logs. The driver reports failures itself, so warnings
// and errors of the client are logged at debug level. Of their attributes only the error is kept;
// others may be headers of requests.
type clientLog struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h clientLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, slog.LevelDebug)
}

// Handle implements slog.Handler.
func (h clientLog) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h clientLog) WithAttrs(list []slog.Attr) slog.Handler {
	for _, a := range list {
		if a.Key == "error" {
			return clientLog{h.Handler.WithAttrs([]slog.Attr{a})}
		}
	}
	return h
}

// WithGroup implements slog.Handler.
func (h clientLog) WithGroup(string) slog.Handler { return h }
