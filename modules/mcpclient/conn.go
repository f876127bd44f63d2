//lint:file-ignore SA1019 the SDK marks sampling, roots and logging as deprecated; clients and servers have them

package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/internal/neterror"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
	"github.com/rolecall/rolecall/tool"
)

// How long a server may take.
const (
	probeTimeout = 5 * time.Second  // to answer whether it supports a newer protocol
	listTimeout  = 30 * time.Second // to connect, and to list
	closeTimeout = 3 * time.Second  // to close the session
)

// conn is one connection to a server.
type conn struct {
	session     *sdk.ClientSession
	secrets     *connSecrets
	kill        func()        // ends it at once
	protocolErr func() error  // how the server violated the protocol; nil if it did not
	stderr      func() string // the end of the server's stderr, for the log
	done        chan struct{} // closed when it has ended

	changes atomic.Uint64 // how often the server has notified that its tools have changed
	listed  atomic.Uint64 // the value of changes before the last successful list
	changed chan struct{} // buffered for one: changes has been increased

	calls     atomic.Uint64 // for progress tokens
	server    string        // its name, for people
	relay     Relay         // what it may ask for besides persons
	readsLogs bool          // a logReader relays log messages, not the library
	log       *slog.Logger
	mu        sync.Mutex                     // guards what follows
	progress  map[string]func(tool.Progress) // by token
	open      map[*openCall]bool             // the calls in progress
	abandoned bool                           // a call ended without an answer
	askedLate bool                           // the server asked after that
	retired   bool                           // no call begins any more
	owner     string                         // for whom the first call was made: the owner of tool.Call.FairKey
	shared    bool                           // calls were made for several owners
	since     time.Time                      // when it was made; does not change

	renewAfter time.Duration // Config.RenewAfter

	watcher atomic.Pointer[watcher] // counts changes of resources; nil if nothing is watched
}

// dial connects to the server of c within listTimeout. ctx bounds the dialing, not the connection.
// auth authorizes the connection; nil does not.
func dial(ctx context.Context, c Config, log *slog.Logger, auth mcpauth.Authorizer) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return dialWithoutTimeout(ctx, c, log, auth, probeTimeoutMiddleware)
}

// dialWithoutTimeout is dial with the time limit of ctx only. middleware sees the requests.
func dialWithoutTimeout(ctx context.Context, c Config, log *slog.Logger, auth mcpauth.Authorizer, middleware ...sdk.Middleware) (*conn, error) {
	n := &conn{since: time.Now(), renewAfter: c.RenewAfter, secrets: newConnSecrets(c, auth), done: make(chan struct{}), changed: make(chan struct{}, 1), progress: map[string]func(tool.Progress){}, open: map[*openCall]bool{}, server: c.Name, relay: c.Relay, log: log}
	transport, err := n.transport(ctx, c, auth)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, n.kill) // the library does not stop at once
	client := n.client(log)
	client.AddSendingMiddleware(middleware...)
	n.session, err = client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: c.Revision})
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		cause := n.protocolErr()
		n.kill()
		if cause != nil && ctx.Err() == nil { // the library's error says only that the connection is closed
			return nil, &ServerError{Err: n.secrets.current().RedactError(cause), Stderr: n.stderr()}
		}
		return nil, n.explain(connectCause(err))
	}
	go func() {
		_ = n.session.Wait()
		close(n.done)
	}()
	n.startLogging(ctx)
	return n, nil
}

// connectCause returns an error of Connect in plain words. The library wraps it in the
// names of its steps.
func connectCause(err error) error {
	if _, ok := errors.AsType[*url.Error](err); ok {
		return neterror.Explain(err)
	}
	return fmt.Errorf("connect: %w", err)
}

// transport returns the transport for Connect and sets kill, protocolErr and stderr. It
// starts the program of a server, if it is one.
func (n *conn) transport(ctx context.Context, c Config, auth mcpauth.Authorizer) (sdk.Transport, error) {
	if c.Command.Path != "" {
		p, err := startProcess(c.Command, c.secrets)
		if err != nil {
			return nil, &ServerError{Err: err}
		}
		n.readsLogs = true
		n.kill = func() { p.kill(); _ = p.transport.Close() }
		n.protocolErr, n.stderr = p.fault, p.lastStderr
		return &connectedTransport{logReader{p.transport, n}}, nil
	}
	address, err := url.Parse(c.URL)
	if err != nil {
		return nil, &ServerError{Err: err}
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	w := newHTTPTransport(life, address, c.Headers, n.secrets)
	n.kill = func() { end(errors.New("the connection was closed")); w.base.CloseIdleConnections() }
	n.protocolErr, n.stderr = w.Fault, func() string { return "" }
	transport := &sdk.StreamableClientTransport{Endpoint: c.URL, HTTPClient: w.client(), MaxEventSize: maxMessage, MaxRetries: 2}
	if auth != nil {
		transport.OAuthHandler = auth
	}
	return transport, nil
}

// connectedTransport is a transport whose connection exists already.
type connectedTransport struct{ sdk.Connection }

// Connect implements sdk.Transport.
func (r *connectedTransport) Connect(context.Context) (sdk.Connection, error) {
	return r.Connection, nil
}

// client returns the client of this connection. The server may ask persons, during calls. It is
// offered what relay allows besides.
func (n *conn) client(log *slog.Logger) *sdk.Client {
	toolsChanged := func() {
		n.changes.Add(1)
		select {
		case n.changed <- struct{}{}:
		default:
		}
	}
	var onLog func(context.Context, *sdk.LoggingMessageRequest)
	if !n.readsLogs {
		onLog = func(_ context.Context, r *sdk.LoggingMessageRequest) { n.relayLog(r.Params) }
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "rolecall", Version: "1"}, &sdk.ClientOptions{
		Capabilities:       n.relay.capabilities(),
		ElicitationHandler: n.elicit,

		CreateMessageWithToolsHandler: n.sampler(),

		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		Logger:         log,

		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { toolsChanged() },
		PromptListChangedHandler:    func(context.Context, *sdk.PromptListChangedRequest) { toolsChanged() },
		ResourceListChangedHandler:  func(context.Context, *sdk.ResourceListChangedRequest) { toolsChanged() },
		ResourceUpdatedHandler:      n.resourceUpdated,
		ProgressNotificationHandler: n.reportProgress,
		LoggingMessageHandler:       onLog,
	})
	client.AddReceivingMiddleware(n.elicitDirectly)
	client.AddSendingMiddleware(limitPages, keepLast)
	return client
}

// probeTimeoutMiddleware limits the time for server/discover, which older servers may not
// answer at all.
func probeTimeoutMiddleware(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method != "server/discover" {
			return next(ctx, method, req)
		}
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		return next(ctx, method, req)
	}
}

// resourceUpdated handles a notification that a resource has changed.
func (n *conn) resourceUpdated(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
	if w := n.watcher.Load(); w != nil {
		w.changed(r.Params.URI)
	}
}

// onProgress passes the progress of a call to fn until stop is called. The request of the
// call has to carry the token.
func (n *conn) onProgress(fn func(tool.Progress)) (token string, stop func()) {
	token = strconv.FormatUint(n.calls.Add(1), 10)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.progress[token] = fn
	return token, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.progress, token)
	}
}

// reportProgress handles a progress notification. It ignores unknown tokens.
func (n *conn) reportProgress(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
	token, ok := r.Params.ProgressToken.(string)
	if !ok {
		return
	}
	n.mu.Lock()
	fn := n.progress[token]
	n.mu.Unlock()
	if fn != nil {
		fn(tool.Progress{Done: r.Params.Progress, Total: r.Params.Total, Message: visibleLine(r.Params.Message, 1024)})
	}
}

// isAlive reports whether requests can be sent.
func (n *conn) isAlive() bool {
	select {
	case <-n.done:
		return false
	default:
		return n.protocolErr() == nil
	}
}

// close closes the session, within closeTimeout if it is alive, and ends the connection.
func (n *conn) close() {
	if n.isAlive() {
		timer := time.AfterFunc(closeTimeout, n.kill)
		defer timer.Stop()
	} else {
		n.kill()
	}
	_ = n.session.Close() // the connection ends in any case
	n.kill()
	<-n.done
}

// explain adds a protocol violation and the server's stderr to an error, and removes the
// secrets that the server was given.
func (n *conn) explain(err error) error {
	err = plainTypes(err)
	if cause := n.protocolErr(); cause != nil {
		err = fmt.Errorf("%w (%w)", cause, err)
	}
	return &ServerError{Err: n.secrets.current().RedactError(err), Stderr: n.stderr()}
}

// plainTypes says in plain words that an answer has a value of the wrong type. The library
// names the types of its code instead.
func plainTypes(err error) error {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	at := "the answer"
	if e.Field != "" {
		at = "the field " + strconv.Quote(e.Field) + " of the answer"
	}
	words := at + " has a value of the wrong type: " + e.Value
	return errors.New(strings.Replace(err.Error(), e.Error(), words, 1))
}

// ServerError is an error of a server with the details for the operator. They must not
// reach a model: the server is untrusted.
type ServerError struct {
	Err    error
	Stderr string // the end of the program's stderr
}

// Error implements error.
func (e *ServerError) Error() string {
	if e.Stderr == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + "; its stderr: " + e.Stderr
}

// Unwrap returns Err.
func (e *ServerError) Unwrap() error { return e.Err }
