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
	"github.com/rolecall/rolecall/identity"
)

// Protocol is what a connection is upgraded to (RFC 9110 §7.8) that carries the
// lines of stdio: GET /roles/{role}/mcp with Upgrade: rolecall-mcp.
const Protocol = "rolecall-mcp"

// ServeStdio serves one client on lines, as stdio has them: the tools of a role, named
// by id or name. It returns when in has ended and what was under way is
// answered, or a few seconds later; when ctx or the role ends; or with the error
// that keeps the sender from the role. out carries the protocol alone. in is
// read by a goroutine that ends with it.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, sender identity.Principal, role string) error {
	d, err := s.scopeFor(sender, role, "")
	if err != nil {
		return err
	}
	defer d.endpoint.leave()
	return s.serveLines(ctx, d, in, out, func() {})
}

// serveLines serves a client on lines; hangUp is called when its session ends.
func (s *Server) serveLines(ctx context.Context, d *clientScope, in io.Reader, out io.Writer, hangUp func()) error {
	l := newLines(in, out, s.config.Calls, s.ids, hangUp)
	defer l.Close()
	d.stdio, d.disconnect = true, func() { l.Close() }
	session, err := d.endpoint.server.Connect(d.with(ctx), l, nil)
	if err != nil {
		return fmt.Errorf("serve MCP on lines: %w", err)
	}
	id := "lines " + identity.NewID()
	if !s.begin(d, session, id) {
		return errors.Join(errcode.New(errcode.RateLimited, "serve MCP on lines: there are too many sessions, or rolecall is closing"), session.Close())
	}
	defer s.forget(id)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	err = session.Wait()
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// isUpgrade says whether a request asks for the lines of stdio.
func isUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), Protocol)
}

// serveUpgrade serves a client that carries lines for another.
func (s *Server) serveUpgrade(w http.ResponseWriter, r *http.Request, d *clientScope) error {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return errcode.Wrap(errcode.InvalidArguments, err, "the connection cannot be upgraded to %s", Protocol)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Time{}) // those of the listener are over
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+Protocol+"\r\n\r\n"); err != nil {
		return nil // the peer has gone
	}
	d.still, _ = r.Context().Value(stillKey{}).(func() bool)
	ctx, cancel := s.config.Streaming(context.WithoutCancel(r.Context()))
	defer cancel()
	if err := s.serveLines(ctx, d, rw, timeoutConn{conn, s.config.WriteTimeout}, func() { conn.Close() }); err != nil {
		s.log.Warn("MCP connection ended", "error", err)
	}
	return nil
}

// timeoutConn gives up on a peer who does not read.
type timeoutConn struct {
	net.Conn
	within time.Duration
}

func (h timeoutConn) Write(b []byte) (int, error) {
	_ = h.SetWriteDeadline(time.Now().Add(h.within)) // if it has gone, Write says so
	return h.Conn.Write(b)
}
