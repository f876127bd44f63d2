// Package broker defines how the runtime reaches tool services. A Driver connects to one
// broker, and a Link carries the messages of one service.
//
// A driver moves messages and nothing else. Package toolservice matches responses to requests,
// joins pieces, bounds sizes and decides what a lost connection means, once for all brokers.
// A SessionLink opens a session again that was lost, for brokers whose clients do not.
// Package brokertest has the tests that every driver passes.
package broker

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"os"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// Queues are the queues of one tool service.
type Queues struct {
	Service  string         // id of the service, for logs and for names of subscriptions
	Request  protocol.Topic // where the service receives requests
	Response protocol.Topic // where it sends responses; brokers with an inbox for each caller do not use it
}

// Message is a request or a response. Drivers do not look into Body.
type Message struct {
	ID    string // the header protocol.HeaderID
	Token string // the header protocol.HeaderToken; "" in responses
	Body  []byte
}

// Delivery is what a Link receives.
type Delivery struct {
	Message
	// Err is ErrNoService if the broker reports that nothing receives the request with this
	// ID. It is ErrUnavailable, without an ID, if the connection was lost and responses to
	// requests sent before may be lost with it. There is no Body then.
	Err error
}

// Driver is a connection to one broker. Its methods are safe for concurrent use.
type Driver interface {
	// Open makes the link of a service. receive is called with each response; it is safe for
	// concurrent use and does not block. When Open returns, responses to requests that are sent
	// from then on are received. The error is ErrUnavailable if the broker cannot be reached.
	Open(ctx context.Context, q Queues, receive func(Delivery)) (Link, error)
	// MaxBytes returns the largest Body that can be sent.
	MaxBytes() int
	// Close closes the connection and all links. A closed driver opens no links.
	Close() error
}

// Link carries requests to one service and responses from it. It survives a lost connection:
// the driver connects again. Its methods are safe for concurrent use.
type Link interface {
	// Send sends a request. sent reports whether the service may receive it; without sent it
	// surely does not. Errors: ErrUnavailable, ErrBusy, ErrNoService, ErrTooLarge, and the errors
	// of ctx.
	Send(ctx context.Context, m Message) (sent bool, err error)
	Close() error
}

// ConnectedLink is a Link that knows whether it is connected now.
type ConnectedLink interface {
	IsConnected() bool
}

// Embedded is a Driver whose broker runs in this process.
type Embedded interface {
	// Address returns the address of its port, HOST:PORT; "" without a port.
	Address() string
	// ConnectedServices returns the ids of the services that are connected now.
	ConnectedServices() []string
	// DisconnectInvalid disconnects the services whose accounts are not valid any more, or have
	// other queues.
	DisconnectInvalid()
}

// Announcer is a Driver that receives the announcements of services
// (protocol.Announcement).
type Announcer interface {
	// OpenAnnouncements calls receive with each announcement until stop is called. service is the
	// id that the broker says; text is not verified. receive does not block and does not keep
	// text that it drops. The error is ErrUnavailable if the broker cannot be reached; after that
	// the driver connects again by itself.
	OpenAnnouncements(ctx context.Context, receive func(service, text string)) (stop func(), err error)
}

// Errors of drivers.
var (
	ErrNoService   = errors.New("no service receives requests on this queue")
	ErrUnavailable = errors.New("the broker cannot be reached")
	ErrBusy        = errors.New("the broker takes no messages for now")
	ErrTooLarge    = errors.New("the message is larger than the broker accepts")
)

// Config is the configuration of one broker. Fields that a kind does not use must be zero; its
// Check reports them.
type Config struct {
	Name     string // of the document
	URL      string // "" is an embedded broker, if the kind has one
	User     string
	Password string
	TLS      TLSFiles
	Listen   string          // address of an embedded broker, HOST:PORT; "" opens no port
	Settings json.RawMessage // a JSON object of what only this kind has; nil is empty
	Log      *slog.Logger    // nil discards

	// Accounts are the services that may connect to an embedded broker.
	Accounts Accounts
}

// ReadSettings decodes c.Settings into the struct that settings points to. Without Settings it
// changes nothing. The error of encoding/json is about a wrong type or an unknown field. The
// Check of a kind says what to write instead.
func (c Config) ReadSettings(settings any) error {
	if len(c.Settings) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(c.Settings))
	decoder.DisallowUnknownFields()
	return decoder.Decode(settings)
}

// ReadTLS reads the files of c.TLS, for a connection to a broker. Errors: InvalidConfig.
func (c Config) ReadTLS() (*tls.Config, error) {
	result := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.TLS.CA != "" {
		text, err := os.ReadFile(c.TLS.CA)
		result.RootCAs = x509.NewCertPool()
		if err != nil || !result.RootCAs.AppendCertsFromPEM(text) {
			return nil, errcode.New(errcode.InvalidConfig, "broker %s: tls: ca: %s cannot be read as certificates in PEM: %v", c.Name, c.TLS.CA, err)
		}
	}
	if c.TLS.Cert != "" {
		own, err := tls.LoadX509KeyPair(c.TLS.Cert, c.TLS.Key)
		if err != nil {
			return nil, errcode.Wrap(errcode.InvalidConfig, err, "broker %s: tls: %v", c.Name, err)
		}
		result.Certificates = []tls.Certificate{own}
	}
	return result, nil
}

// TLSFiles are the paths of PEM files; "" is not set.
type TLSFiles struct {
	CA        string // certificates of issuers that are trusted
	Cert, Key string // the own certificate and its key
}

// Accounts authenticates the services that connect to an embedded broker. Its methods are safe
// for concurrent use.
type Accounts interface {
	// FindAccount returns the queues of a service that presents a password. It reports false if
	// there is no such service or the password is wrong.
	FindAccount(service, password string) (Queues, bool)
}

// Kind is a kind of broker that a program can use.
type Kind struct {
	Name string // the type in a configuration file
	// Check returns an error if a configuration is invalid. It does not connect.
	Check func(c Config) error
	// Announces reports whether the drivers implement Announcer.
	Announces bool
	// Connect returns a driver. It does not wait for a broker that is not embedded.
	Connect func(c Config) (Driver, error)
}

// KindName returns the name of the kind.
func (k Kind) KindName() string { return k.Name }
