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
	"github.com/rolecall/rolecall/gateway/wire"
)

// mcpRoutes are the routes of the Model Context Protocol: the caller's own
// role, one group of it, a role that the operator names, and one group of that.
func (a *api) mcpRoutes() []route {
	var list []route
	for _, path := range []string{"/mcp", "/mcp/{toolset...}", "/roles/{role}/mcp", "/roles/{role}/mcp/{toolset...}"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			list = append(list, route{method, path, "", accessCaller, a.serveMCP})
		}
	}
	return list
}

// serveMCP answers an MCP request.
func (a *api) serveMCP(w http.ResponseWriter, r *http.Request) error {
	if a.mcp == nil {
		return routeNotFound(w, r)
	}
	if r.Header.Get("Upgrade") != "" { // the connection may outlive the sender's token
		r = r.WithContext(mcpserver.WithRevalidation(r.Context(), func() bool { return a.reauthenticate(r) == nil }))
	}
	return a.mcp.Serve(w, r, sender(r))
}

// MCP connects stdio of a client of the Model Context Protocol to the tools of
// a role: it sends the lines of in to the gateway and writes the answers to
// out. It returns when in has ended and calls in progress have been answered,
// when the gateway or the role ends, or when ctx ends. A goroutine reads in; it
// exits when in ends.
//
// Errors: those of the gateway, such as RoleNotFound; ToolUnavailable if the
// gateway or the role ended first; ErrNotServed if the client's gateway is in
// this process.
func (c *Client) MCP(ctx context.Context, role string, in io.Reader, out io.Writer) error {
	if c.base == inProcessBaseURL && isInProcess(c.http.Transport) {
		return ErrNotServed
	}
	path := "/roles/" + strings.ReplaceAll(url.PathEscape(role), ".", "%2E") + "/mcp"
	header := http.Header{"Connection": {"Upgrade"}, "Upgrade": {wire.MCPProtocol}}
	answer, err := c.do(ctx, clientRequest{method: http.MethodGet, path: path, header: header})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	conn, ok := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode != http.StatusSwitchingProtocols || !ok {
		return fmt.Errorf("%s: unexpected response with status %d; the server does not relay MCP", path, answer.StatusCode)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	return bridge(ctx, conn, in, out)
}

// bridge copies lines in both directions until conn has no more to read.
func bridge(ctx context.Context, conn io.ReadWriter, in io.Reader, out io.Writer) error {
	var inputSent atomic.Bool
	go func() {
		_, err := io.Copy(conn, in)
		inputSent.Store(err == nil)
		_, _ = io.WriteString(conn, "\n"+wire.MCPEndOfInput+"\n") // after a disconnect, reading reports the error
	}()
	_, err := io.Copy(out, conn)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("relay MCP: %w", err)
	case !inputSent.Load():
		return errcode.New(errcode.ToolUnavailable, "relay MCP: the gateway stopped or the role was deleted; connect again when it is available")
	}
	return nil
}

// isInProcess reports whether a transport calls a handler in this process.
func isInProcess(transport http.RoundTripper) bool {
	_, ok := transport.(inProcessTransport)
	return ok
}
