package natsbroker

import (
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// embedded is a NATS server in this process. It stores nothing and opens no port unless the
// configuration has an address.
type embedded struct {
	server   *server.Server
	password string // of the runtime's own connection
	config   broker.Config

	mu      sync.Mutex // guards clients
	clients map[uint64]account
}

// account is what a connected service has proved.
type account struct {
	service, password string
	queues            broker.Queues
}

// runtimeUser is the user of the runtime's own connection. A service cannot have this id.
const runtimeUser = "*runtime"

// startTimeout limits how long the embedded server takes to start.
const startTimeout = 10 * time.Second

// startEmbedded starts a server.
func startEmbedded(c broker.Config) (*embedded, error) {
	e := &embedded{config: c, password: rand.Text(), clients: map[uint64]account{}}
	o := &server.Options{
		ServerName: "rolecall", DontListen: c.Listen == "", NoSigs: true, NoLog: true, MaxPayload: maxPayload,
		MaxConn: maxConnections, MaxSubs: maxSubscriptions, MaxControlLine: 4096, CustomClientAuthentication: e,
		NoSystemAccount: true,
	}
	if err := e.setListener(o); err != nil {
		return nil, err
	}
	var err error
	if e.server, err = server.NewServer(o); err != nil {
		return nil, errcode.Wrap(errcode.InvalidConfig, err, "start the broker %s: %v", c.Name, err)
	}
	e.server.Start() // it has tried to listen when it returns
	if c.Listen != "" && e.server.Addr() == nil || !e.server.ReadyForConnections(startTimeout) {
		e.stop()
		return nil, errcode.New(errcode.InvalidConfig, "start the broker %s: it cannot listen on %s; is another process using the port?", c.Name, c.Listen)
	}
	return e, nil
}

// Limits of the embedded server.
const (
	maxPayload       = 4 << 20
	maxConnections   = 1024
	maxSubscriptions = 1024 // of one connection
)

// setListener sets the address and the certificate of a server that opens a port.
func (e *embedded) setListener(o *server.Options) error {
	if e.config.Listen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(e.config.Listen)
	if err != nil {
		return errcode.New(errcode.InvalidConfig, "start the broker %s: listen: write HOST:PORT", e.config.Name)
	}
	o.Host = host
	if o.Port, err = strconv.Atoi(port); err != nil {
		return errcode.New(errcode.InvalidConfig, "start the broker %s: listen: the port is no number", e.config.Name)
	}
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	if e.config.TLS.Cert == "" {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(e.config.TLS.Cert, e.config.TLS.Key)
	if err != nil {
		return errcode.Wrap(errcode.InvalidConfig, err, "start the broker %s: tls: %v", e.config.Name, err)
	}
	o.TLS, o.TLSTimeout = true, startTimeout.Seconds()
	o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	return nil
}

// clientOptions returns the options of the runtime's own connection, which needs no port.
func (e *embedded) clientOptions() []nats.Option {
	return []nats.Option{nats.InProcessServer(e.server), nats.UserInfo(runtimeUser, e.password)}
}

// stop stops the server and waits until it has.
func (e *embedded) stop() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// Check implements server.Authentication. A service may receive the requests of its own queue,
// in its own queue group, answer them, and announce itself. It may do nothing else.
func (e *embedded) Check(c server.ClientAuthentication) bool {
	name, password := c.GetOpts().Username, c.GetOpts().Password
	if name == runtimeUser {
		if subtle.ConstantTimeCompare([]byte(password), []byte(e.password)) != 1 {
			return false
		}
		c.RegisterUser(&server.User{Username: runtimeUser})
		return true
	}
	if e.config.Accounts == nil {
		return false
	}
	q, ok := e.config.Accounts.FindAccount(name, password)
	if !ok {
		return false
	}
	c.RegisterUser(&server.User{Username: name, Permissions: servicePermissions(q)})
	e.remember(c.GetID(), account{name, password, q})
	return true
}

// remember remembers the account of a client. It forgets the clients that have left when there are
// many.
func (e *embedded) remember(id uint64, a account) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.clients) >= 2*maxConnections {
		e.forgetGone()
	}
	e.clients[id] = a
}

// forgetGone forgets the clients that have left. It must be called with mu held.
func (e *embedded) forgetGone() {
	maps.DeleteFunc(e.clients, func(id uint64, _ account) bool { return e.server.GetClient(id) == nil })
}

// disconnectInvalid disconnects the services whose accounts are not valid any more, or have changed.
func (e *embedded) disconnectInvalid() {
	for _, id := range e.takeInvalid() {
		_ = e.server.DisconnectClientByID(id) // it may have left meanwhile
	}
}

// takeInvalid forgets the clients whose accounts are not valid any more, and returns them.
func (e *embedded) takeInvalid() (list []uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forgetGone()
	for id, a := range e.clients {
		if q, ok := e.config.Accounts.FindAccount(a.service, a.password); !ok || q != a.queues {
			delete(e.clients, id)
			list = append(list, id)
		}
	}
	return list
}

// connectedServices returns the ids of the services that are connected now, each once.
func (e *embedded) connectedServices() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forgetGone()
	ids := map[string]bool{}
	for _, a := range e.clients {
		ids[a.service] = true
	}
	return slices.Sorted(maps.Keys(ids))
}

// servicePermissions returns what the account of a service may do. It answers to the inboxes of
// its own service. The server's permission to respond would keep every request for as long as it
// may be answered.
func servicePermissions(q broker.Queues) *server.Permissions {
	subject := q.Request.Subject()
	return &server.Permissions{
		Subscribe: &server.SubjectPermission{Allow: []string{subject, subject + " " + q.Service}},
		Publish:   &server.SubjectPermission{Allow: []string{inboxes(q.Service) + ">", protocol.AnnounceSubject(q.Service)}},
	}
}
