package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
)

// StdioClient says who is served by ServeStdio, and with which role.
type StdioClient struct {
	Sender identity.Principal
	Role   string // id or name
	Roots  bool   // its tools for files use the first of its roots that is in the workspace of the sender
}

// ServeStdio serves one client on the line transport of stdio with the tools of
// its role. Only protocol messages are written to out.
//
// It returns nil when ctx ends, when the role is deleted, or at the end of in.
// Calls in progress then get five seconds. It returns an error if the sender
// may not use the role or has too many sessions. A goroutine reads in; it
// exits when in ends.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, o StdioClient) error {
	sc, err := s.scopeFor(o.Sender, o.Role, "")
	if err != nil {
		return err
	}
	if o.Roots {
		sc.roots = newClientRoots()
	}
	defer sc.endpoint.release()
	return s.serveLines(ctx, sc, in, out, func() {})
}

// serveLines serves a client on the line transport. onClose is called when the
// connection closes.
func (s *Server) serveLines(ctx context.Context, sc *clientScope, in io.Reader, out io.Writer, onClose func()) error {
	reserve := func(n int) (*bodyReservation, error) { return s.limiter.bodies.reserve(sc.sender, n) }
	acquireCall := func() (func(), error) { return s.limiter.Acquire(sc.sender) }
	acquireList := func(ctx context.Context) (func(), error) { return s.limiter.AcquireList(ctx, sc.sender) }
	l := newLineTransport(in, out, reserve, acquireCall, acquireList, s.config.MaxCalls, s.ids, onClose)
	defer l.Close()
	sc.lines, sc.disconnect = true, func() { l.Close() }
	sc.isConnected = func() bool { return l.isOpen() && ctx.Err() == nil }
	session, err := sc.endpoint.server.Connect(sc.attach(ctx), l, nil)
	if err != nil {
		return fmt.Errorf("serve MCP on a line connection: %w", err)
	}
	id := "lines " + identity.NewID()
	if !s.beginSession(sc, session, id) {
		return errors.Join(errcode.New(errcode.RateLimited, "serve MCP on a line connection: too many sessions, or rolecall is shutting down"), session.Close())
	}
	defer s.forgetSession(id)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	err = session.Wait()
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// isUpgrade reports whether a request asks for an upgrade to wire.MCPProtocol.
func isUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), wire.MCPProtocol)
}

// serveUpgrade upgrades a connection to wire.MCPProtocol and serves it.
func (s *Server) serveUpgrade(w http.ResponseWriter, r *http.Request, sc *clientScope) error {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return errcode.Wrap(errcode.InvalidArguments, err, "upgrade the connection to %s", wire.MCPProtocol)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Time{}) // clears the deadlines that the HTTP server has set
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+wire.MCPProtocol+"\r\n\r\n"); err != nil {
		return nil // the client has disconnected
	}
	if r.Context().Value(rootsKey{}) != nil {
		sc.roots = newClientRoots()
	}
	ctx, cancel := s.config.Streaming(context.WithoutCancel(r.Context()))
	defer cancel()
	if err := s.serveLines(ctx, sc, rw, timeoutConn{conn, s.config.WriteTimeout}, func() { conn.Close() }); err != nil {
		s.log.Warn("MCP connection ended", "error", err)
	}
	return nil
}

// timeoutConn is a connection whose writes fail if the client does not read
// within the timeout.
type timeoutConn struct {
	net.Conn
	timeout time.Duration
}

// Write implements net.Conn.
func (c timeoutConn) Write(b []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(c.timeout)) // on a closed connection Write reports the error
	return c.Conn.Write(b)
}
