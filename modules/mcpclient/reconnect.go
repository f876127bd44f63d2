package mcpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
)

// minRelistInterval is the shortest time between two lists in the background, after notifications of a server.
const minRelistInterval = 250 * time.Millisecond

// reconnector holds the connection to a server. It connects when a connection is needed,
// lists the tools, and lists them again when the server notifies that they have changed.
type reconnector struct {
	config     Config
	log        *slog.Logger
	onTools    func(context.Context, []modules.ToolPin) error // called with the definitions that the server offers
	ctx        context.Context                                // ends in close
	cancel     context.CancelFunc
	background sync.WaitGroup
	watcher    watcher

	lastConn atomic.Pointer[conn] // the last established connection, which may have ended; nil before the first

	sem      chan struct{} // holds a token while no goroutine uses what follows
	conn     *conn         // nil while there is none
	failures int           // since the last connection
	delays   backoff.Backoff
	retryAt  time.Time // no attempt before
	lastErr  error     // of the last attempt
}

func newReconnector(c Config, log *slog.Logger, onTools func(context.Context, []modules.ToolPin) error) *reconnector {
	r := &reconnector{config: c, log: log, onTools: onTools, sem: make(chan struct{}, 1), delays: backoff.Backoff{Jitter: true}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.sem <- struct{}{}
	return r
}

// connection returns a connection. Its tools are listed at least as of the last
// notification before the call. Errors have the code tool_unavailable, as no tool was
// called, or authorization_required, or are ctx's.
func (r *reconnector) connection(ctx context.Context) (*conn, error) {
	before, changes := r.lastConn.Load(), uint64(0)
	if before != nil {
		changes = before.changes.Load()
	}
	select {
	case <-r.sem:
		defer func() { r.sem <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if r.ctx.Err() != nil {
		return nil, errcode.New(errcode.ToolUnavailable, "MCP server %q is closed", r.config.Name)
	}
	switch {
	case r.conn == nil:
	case !r.conn.isAlive():
		r.drop()
	case r.conn.tryRetire():
		r.log.Debug("connection to MCP server renewed")
		r.closeConn()
	}
	if r.conn == nil {
		return r.connect(ctx)
	}
	if r.conn == before && before.listed.Load() < changes {
		return r.refreshTools(ctx)
	}
	return r.conn, nil
}

// connect must be called with sem held.
func (r *reconnector) connect(ctx context.Context) (*conn, error) {
	if wait := time.Until(r.retryAt); wait > 0 {
		return nil, r.unavailable(r.lastErr, wait)
	}
	ctx, cancel := untilEnd(ctx, r.ctx)
	defer cancel()
	n, err := dial(ctx, r.config, r.log, r.config.authorizer(mcpauth.Operator))
	if err == nil {
		if err = r.listTools(ctx, n); err != nil {
			n.close()
		}
	}
	if err != nil {
		return nil, r.recordFailure(ctx, err)
	}
	r.conn, r.failures, r.lastErr = n, 0, nil
	r.delays.Reset()
	n.watcher.Store(&r.watcher)
	r.lastConn.Store(n)
	r.log.Info("MCP server connected", "protocol", n.session.InitializeResult().ProtocolVersion)
	r.background.Go(func() { r.followChanges(n) })
	return n, nil
}

// untilEnd returns a context that ends with ctx, and with end.
func untilEnd(ctx, end context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(end, cancel)
	return ctx, func() { stop(); cancel() }
}

// refreshTools must be called with sem held. A server that fails to list its tools is
// disconnected, since its tools are unknown.
func (r *reconnector) refreshTools(ctx context.Context) (*conn, error) {
	ctx, cancel := untilEnd(ctx, r.ctx)
	defer cancel()
	n := r.conn
	if err := r.listTools(ctx, n); err != nil {
		if ctx.Err() == nil {
			r.drop()
		}
		return nil, r.recordFailure(ctx, err)
	}
	return n, nil
}

// listTools lists the tools and passes their definitions to onTools. If that fails, or ctx ends
// meanwhile, the changes that the server has notified are still to be listed.
func (r *reconnector) listTools(ctx context.Context, n *conn) error {
	changes := n.changes.Load()
	pins, err := n.listPins(ctx, *r.config.Prefix, r.log)
	if err = cmp.Or(err, ctx.Err()); err == nil { // a list that ctx has cut short is not all
		err = r.onTools(ctx, pins)
	}
	if err == nil {
		n.listed.Store(changes)
	}
	return err
}

// drop closes a connection that cannot be used. It must be called with sem held.
func (r *reconnector) drop() {
	r.log.Warn("MCP server disconnected", "reason", r.conn.explain(errors.New("the connection is not usable")))
	r.closeConn()
}

// closeConn closes the connection. It must be called with sem held.
func (r *reconnector) closeConn() {
	r.conn.close()
	r.conn = nil
}

// recordFailure returns the error of a failed attempt and sets when the next one is
// possible. An attempt that its caller cancelled does not count as a failure of the server;
// its error has what the server wrote meanwhile. The failure of the first connection is
// logged for debugging only: its caller reports it. It must be called with sem held.
func (r *reconnector) recordFailure(ctx context.Context, err error) error {
	if cancelled := ctx.Err(); cancelled != nil {
		if e, ok := errors.AsType[*ServerError](err); ok {
			return &ServerError{Err: fmt.Errorf("%w (%w)", cancelled, e.Err), Stderr: e.Stderr}
		}
		return cancelled
	}
	if errcode.CodeOf(err) == errcode.AuthorizationRequired { // no attempt helps before a person has logged in; then the next one need not wait
		r.log.Log(ctx, slog.LevelDebug, "MCP server needs a login", "error", err)
		return r.unavailable(err, 0)
	}
	delay := r.delays.Next()
	r.failures++
	r.retryAt, r.lastErr = time.Now().Add(delay), err
	level := slog.LevelError
	if r.lastConn.Load() == nil {
		level = slog.LevelDebug
	}
	r.log.Log(ctx, level, "MCP server unavailable", "attempts", r.failures, "error", err)
	return r.unavailable(err, delay)
}

// unavailable returns the error while no connection is possible for wait. Before the first
// connection it leaves wait out: modules.Loader has its own delays then.
func (r *reconnector) unavailable(cause error, wait time.Duration) error {
	if errcode.CodeOf(cause) == errcode.AuthorizationRequired {
		return errcode.Wrap(errcode.AuthorizationRequired, cause, "%s", errcode.Message(cause)).With("server", r.config.Name)
	}
	if r.lastConn.Load() == nil {
		return errcode.Wrap(errcode.ToolUnavailable, cause, "MCP server %q failed to start", r.config.Name)
	}
	return errcode.Wrap(errcode.ToolUnavailable, cause, "MCP server %q is unavailable; the next attempt is in %v", r.config.Name, wait.Round(100*time.Millisecond))
}

// followChanges lists the tools again after notifications of the server, at most once per
// minRelistInterval. It returns when the connection or the reconnector ends.
func (r *reconnector) followChanges(n *conn) {
	for {
		select {
		case <-n.changed:
		case <-n.done:
			return
		case <-r.ctx.Done():
			return
		}
		if _, err := r.connection(r.ctx); err != nil {
			r.log.Debug("changed tools of MCP server not listed", "error", err)
		}
		select {
		case <-time.After(minRelistInterval):
		case <-r.ctx.Done():
			return
		}
	}
}

// close ends the connection and waits for the goroutines.
func (r *reconnector) close() {
	r.cancel()
	<-r.sem
	if r.conn != nil {
		r.closeConn()
	}
	r.sem <- struct{}{}
	r.background.Wait()
}
