package mcpclient

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
)

// Limits of the connections of callers.
const (
	maxCallerConns = 64
	callerIdle     = 5 * time.Minute
)

// callerConns holds connections to a server, one for each subject that has made calls lately.
// A connection is used for calls of its subject only. It is safe for concurrent use.
type callerConns struct {
	config Config
	log    *slog.Logger
	ctx    context.Context // ends in close
	cancel context.CancelFunc

	mu    sync.Mutex // guards what follows
	conns map[mcpauth.Subject]*callerConn
}

// callerConn is the connection of one subject.
type callerConn struct {
	subject mcpauth.Subject
	auth    mcpauth.Authorizer // of all its connections, so that it knows what has failed

	sem     chan struct{} // holds a token while no goroutine uses what follows
	conn    *conn         // nil while there is none
	delays  backoff.Backoff
	retryAt time.Time // no attempt before
	lastErr error

	calls int         // in progress or waiting; guarded by callerConns.mu
	used  time.Time   // by the last call; guarded by callerConns.mu
	idle  *time.Timer // closes it; guarded by callerConns.mu
}

func newCallerConns(c Config, log *slog.Logger) *callerConns {
	p := &callerConns{config: c, log: log, conns: map[mcpauth.Subject]*callerConn{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// acquire returns a connection with the token of a subject, for one call, until release is called.
// Errors: AuthorizationRequired without a login, RateLimited if all connections are in use, and
// the errors of the connection.
func (p *callerConns) acquire(ctx context.Context, subject mcpauth.Subject) (*conn, func(), error) {
	c, err := p.enter(subject)
	if err != nil {
		return nil, nil, err
	}
	n, err := p.connection(ctx, c)
	if err != nil {
		p.leave(c)
		return nil, nil, err
	}
	return n, func() { p.leave(c) }, nil
}

// enter counts a call of a subject. When the table is full, the connection that is unused longest
// ends.
func (p *callerConns) enter(subject mcpauth.Subject) (*callerConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return nil, errcode.New(errcode.ToolUnavailable, "MCP server %q is closed", p.config.Name)
	}
	c := p.conns[subject]
	if c == nil {
		if len(p.conns) >= maxCallerConns && !p.evict() {
			return nil, errcode.New(errcode.RateLimited, "the MCP server %q serves %d people at once, the most there can be; try again later", p.config.Name, maxCallerConns)
		}
		c = &callerConn{subject: subject, auth: p.config.authorizer(subject), sem: make(chan struct{}, 1), delays: backoff.Backoff{Jitter: true}}
		c.sem <- struct{}{}
		c.idle = time.AfterFunc(callerIdle, func() { p.closeIdle(c) })
		p.conns[subject] = c
	}
	c.idle.Stop()
	c.calls++
	return c, nil
}

// leave ends a call.
func (p *callerConns) leave(c *callerConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.calls, c.used = c.calls-1, time.Now()
	if c.calls > 0 {
		return
	}
	if p.conns[c.subject] != c {
		go c.end() // it was forgotten during the call
		return
	}
	c.idle.Reset(callerIdle)
}

// evict removes the connection without calls that is unused longest. It reports false if there is
// none. It must be called with mu held.
func (p *callerConns) evict() bool {
	var victim *callerConn
	for _, c := range p.conns {
		if c.calls == 0 && (victim == nil || c.used.Before(victim.used)) {
			victim = c
		}
	}
	if victim == nil {
		return false
	}
	victim.idle.Stop()
	delete(p.conns, victim.subject)
	go victim.end()
	return true
}

// closeIdle removes a connection without calls.
func (p *callerConns) closeIdle(c *callerConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.calls == 0 && p.conns[c.subject] == c {
		delete(p.conns, c.subject)
		go c.end()
	}
}

// forget removes the connection of a subject, so that the next call makes another one, and ends it
// in the background. Calls in progress on it fail.
func (p *callerConns) forget(subject mcpauth.Subject) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.conns[subject]; c != nil {
		delete(p.conns, subject)
		c.idle.Stop()
		go c.end()
	}
}

// end closes the connection.
func (c *callerConn) end() {
	<-c.sem
	if c.conn != nil {
		c.conn.close()
		c.conn = nil
	}
	c.sem <- struct{}{}
}

// connection returns the connection of a subject, which it makes if there is none.
func (p *callerConns) connection(ctx context.Context, c *callerConn) (*conn, error) {
	select {
	case <-c.sem:
		defer func() { c.sem <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.conn != nil && c.conn.isAlive() {
		return c.conn, nil
	}
	if c.conn != nil {
		c.conn.close()
		c.conn = nil
	}
	if wait := time.Until(c.retryAt); wait > 0 {
		return nil, errcode.Wrap(errcode.ToolUnavailable, c.lastErr, "MCP server %q is unavailable; the next attempt is in %v", p.config.Name, wait.Round(100*time.Millisecond))
	}
	ctx, cancel := untilEnd(ctx, p.ctx)
	defer cancel()
	n, err := dial(ctx, p.config, p.log, c.auth)
	switch {
	case err == nil:
		c.conn = n
		c.delays.Reset()
		return n, nil
	case errcode.CodeOf(err) == errcode.AuthorizationRequired, ctx.Err() != nil:
		return nil, err
	}
	c.retryAt, c.lastErr = time.Now().Add(c.delays.Next()), err
	p.log.Error("MCP server unavailable to a caller", "caller", c.subject, "error", err)
	return nil, errcode.Wrap(errcode.ToolUnavailable, err, "MCP server %q is unavailable", p.config.Name)
}

// close ends all connections.
func (p *callerConns) close() {
	p.cancel()
	p.mu.Lock()
	all := p.conns
	p.conns = map[mcpauth.Subject]*callerConn{}
	p.mu.Unlock()
	for _, c := range all {
		c.idle.Stop()
		c.end()
	}
}
