package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/mcpserver"
)

// mcpRoutes are where clients of the Model Context Protocol connect: at the
// caller's role, at one group of it, and at a role that the operator names, or a
// group of that.
func (a *api) mcpRoutes() []route {
	var list []route
	for _, path := range []string{"/mcp", "/mcp/{toolset...}", "/roles/{role}/mcp", "/roles/{role}/mcp/{toolset...}"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			list = append(list, route{method, path, "", accessCaller, a.serveMCP})
		}
	}
	return list
}

func (a *api) serveMCP(w http.ResponseWriter, r *http.Request) error {
	if a.mcp == nil {
		return noRoute(w, r)
	}
	if r.Header.Get("Upgrade") != "" { // what lets the sender in may end before the connection does
		r = r.WithContext(mcpserver.WithRevalidation(r.Context(), func() bool { return a.reauthenticate(r) == nil }))
	}
	return a.mcp.Serve(w, r, sender(r))
}

// UntilShutdown gives a context for an answer that may take for ever: it ends
// with ctx, that of a request, and when Serve begins to shut down. It is for
// mcp.Config.Streaming.
func UntilShutdown(ctx context.Context) (context.Context, context.CancelFunc) {
	return untilShutdown(ctx)
}

// MCP carries the lines of a client of the Model Context Protocol, as stdio has
// them, to the tools of a role, and the answers to out. It returns when in has
// ended and what was under way is answered, when the gateway or the role ends,
// or when ctx does. in is read by a goroutine that ends with it.
//
// Errors: those of the gateway, as RoleNotFound; ErrNotServed when the client's
// gateway is in this process.
func (c *Client) MCP(ctx context.Context, role string, in io.Reader, out io.Writer) error {
	if c.base == inProcessBaseURL && isLocal(c.http.Transport) {
		return ErrNotServed
	}
	path := "/roles/" + strings.ReplaceAll(url.PathEscape(role), ".", "%2E") + "/mcp"
	header := http.Header{"Connection": {"Upgrade"}, "Upgrade": {mcpserver.Protocol}}
	answer, err := c.do(ctx, call{method: http.MethodGet, path: path, header: header})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	conn, ok := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode != http.StatusSwitchingProtocols || !ok {
		return fmt.Errorf("%s was answered %d, by something that does not carry MCP", path, answer.StatusCode)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	return bridge(ctx, conn, in, out)
}

// bridge carries lines to and fro until the other side has no more to say.
func bridge(ctx context.Context, conn io.ReadWriter, in io.Reader, out io.Writer) error {
	var ended atomic.Bool
	go func() {
		_, err := io.Copy(conn, in)
		ended.Store(err == nil)
		_, _ = io.WriteString(conn, "\n"+mcpserver.EndOfInput+"\n") // when the gateway has gone, reading tells
	}()
	_, err := io.Copy(out, conn)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("carry MCP: %w", err)
	case !ended.Load():
		return errcode.New(errcode.ToolUnavailable, "carry MCP: the gateway, or the role, has ended; connect again when it is back")
	}
	return nil
}

// isLocal says whether requests stay in this process.
func isLocal(transport http.RoundTripper) bool {
	_, ok := transport.(inProcessTransport)
	return ok
}
