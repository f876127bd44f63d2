package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/tool"
)

// How long a server may take.
const (
	probeTimeout = 5 * time.Second  // to say that it does not know a newer protocol
	listTimeout  = 30 * time.Second // to connect, and to list
	closeTimeout = 3 * time.Second  // to say goodbye
)

// conn is one connection to a server, from its first message to its last.
type conn struct {
	session     *sdk.ClientSession
	kill        func()        // ends it at once
	protocolErr func() error  // what the server did wrong
	stderr      func() string // what the server said last, for the log
	done        chan struct{} // closed when it has ended

	changes atomic.Uint64 // how often the server said that its list is another
	listed  atomic.Uint64 // what told was before the list that is known
	changed chan struct{} // has room for one: told has moved

	calls    atomic.Uint64
	mu       sync.Mutex // guards progress
	progress map[string]func(tool.Progress)
}

// dial connects to the server of c. ctx bounds that, not the connection.
func dial(ctx context.Context, c Config, log *slog.Logger) (*conn, error) {
	n := &conn{done: make(chan struct{}), changed: make(chan struct{}, 1), progress: map[string]func(tool.Progress){}}
	transport, err := n.transport(ctx, c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, n.kill) // the library waits longer than it may
	n.session, err = n.client(log).Connect(ctx, transport, nil)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		n.kill()
		return nil, n.explain(fmt.Errorf("connect: %w", err))
	}
	go func() {
		_ = n.session.Wait()
		close(n.done)
	}()
	return n, nil
}

// transport prepares the way to the server, and how to end it.
func (n *conn) transport(ctx context.Context, c Config) (sdk.Transport, error) {
	if c.Command.Path != "" {
		p, err := start(c.Command)
		if err != nil {
			return nil, &ServerError{Err: err}
		}
		n.kill = func() { p.kill(); _ = p.pipe.Close() }
		n.protocolErr, n.stderr = p.fault, p.lastStderr
		return &connectedTransport{p.pipe}, nil
	}
	address, err := url.Parse(c.URL)
	if err != nil {
		return nil, &ServerError{Err: err}
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	w := newWeb(life, address, c.Headers)
	n.kill = func() { end(errors.New("the connection was closed")); w.base.CloseIdleConnections() }
	n.protocolErr, n.stderr = w.Fault, func() string { return "" }
	return &sdk.StreamableClientTransport{Endpoint: c.URL, HTTPClient: w.client(), MaxEventSize: maxMessage, MaxRetries: 2}, nil
}

// connectedTransport is a transport whose connection is there already.
type connectedTransport struct{ sdk.Connection }

// Connect implements sdk.Transport.
func (r *connectedTransport) Connect(context.Context) (sdk.Connection, error) {
	return r.Connection, nil
}

// client makes the client of this connection. It offers the server nothing:
// no file, no model, no person.
func (n *conn) client(log *slog.Logger) *sdk.Client {
	told := func() {
		n.changes.Add(1)
		select {
		case n.changed <- struct{}{}:
		default:
		}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "rolecall", Version: "1"}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		Logger:         log,

		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { told() },
		ProgressNotificationHandler: n.report,
	})
	client.AddSendingMiddleware(probeTimeoutMiddleware)
	return client
}

// probeTimeoutMiddleware gives a server less time for the question which older ones may not
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

// onProgress has progress of a call go to fn until the function it gives is
// called. The token goes with the request.
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

// report hands on how far a call has come.
func (n *conn) report(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
	token, ok := r.Params.ProgressToken.(string)
	if !ok {
		return
	}
	n.mu.Lock()
	fn := n.progress[token]
	n.mu.Unlock()
	if fn != nil {
		fn(tool.Progress{Done: r.Params.Progress, Total: r.Params.Total, Message: oneLine(r.Params.Message, 1024)})
	}
}

// alive says whether requests may be sent.
func (n *conn) alive() bool {
	select {
	case <-n.done:
		return false
	default:
		return n.protocolErr() == nil
	}
}

// close ends the connection: politely, then at once.
func (n *conn) close() {
	if n.alive() {
		late := time.AfterFunc(closeTimeout, n.kill)
		defer late.Stop()
	} else {
		n.kill()
	}
	_ = n.session.Close() // what it says of the end helps nobody
	n.kill()
	<-n.done
}

// explain adds to an error what the server did wrong and said last.
func (n *conn) explain(err error) error {
	fault := n.protocolErr()
	if fault != nil {
		err = fmt.Errorf("%w (%w)", fault, err)
	}
	return &ServerError{Err: err, Stderr: n.stderr()}
}

// ServerError is what went wrong with a server, for the operator. A model is
// told less.
type ServerError struct {
	Err    error
	Stderr string // the end of what the program wrote there
}

// Error implements error.
func (e *ServerError) Error() string {
	if e.Stderr == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + "; its stderr: " + e.Stderr
}

// Unwrap gives the cause.
func (e *ServerError) Unwrap() error { return e.Err }
