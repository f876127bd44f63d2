package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
)

// ServeMCP connects stdio of a client of the Model Context Protocol to the tools of
// a role. It sends the lines of in to the gateway and writes the answers to out. It
// returns when in has ended and calls in progress have been answered, when the
// gateway or the role ends, or when ctx ends. A goroutine reads in; it exits when
// in ends.
//
// workspace must be the default workspace of the process. It is the absolute path of a
// directory, with :ro if it is read-only; "" expects none. It is for the socket of a data
// directory.
//
// Errors:
//
//   - the errors of the gateway, such as RoleNotFound, and Conflict for another workspace
//   - ToolUnavailable if the gateway or the role ended first
//   - ErrNotServed if the client's gateway is in this process
func (c *Client) ServeMCP(ctx context.Context, role, workspace string, in io.Reader, out io.Writer) error {
	if c.base == inProcessBaseURL && isInProcess(c.http.Transport) {
		return ErrNotServed
	}
	path := "/roles/" + strings.ReplaceAll(url.PathEscape(role), ".", "%2E") + "/mcp"
	header := http.Header{"Connection": {"Upgrade"}, "Upgrade": {wire.MCPProtocol}}
	if workspace != "" {
		header.Set(wire.MCPWorkspaceHeader, url.QueryEscape(workspace))
	}
	answer, err := c.do(ctx, request{method: http.MethodGet, path: path, header: header})
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
