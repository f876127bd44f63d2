// Package wire defines the data that a gateway and its clients exchange. This data is
// JSON shapes of requests and responses, error bodies with their HTTP statuses, and
// pages of lists. It also has the names and limits that both sides must agree on.
//
//	wire.WriteError(w, errcode.New(errcode.RoleNotFound, "there is no role %q", name))
//
// writes a response with status 404 and the body
//
//	{"error":{"code":"role_not_found","message":"there is no role \"clerk\""}}
//
// The shapes only hold data. The package gateway fills them from its runtime and
// validates requests, and the package client decodes them. This package imports
// neither.
package wire

// SocketName is the file name of the socket in a data directory.
const SocketName = "rolecall.sock"

// MaxSocketPath is the longest path of a socket, in bytes: macOS allows 104
// with a zero at the end, Linux 108.
const MaxSocketPath = 103

// MaxRequestBytes limits every request body over TCP; most routes have a lower
// limit.
const MaxRequestBytes = 16 << 20

// MaxPageItems is the largest number of items on a page.
const MaxPageItems = 1000

// MCPProtocol is the name for HTTP upgrades (RFC 9110, section 7.8). The
// request is GET /roles/{role}/mcp with Upgrade: rolecall-mcp. The connection
// then carries the lines of MCP's stdio transport.
const MCPProtocol = "rolecall-mcp"

// MCPWorkspaceHeader is the header of such an upgrade with a workspace, query-escaped. The
// client expects that workspace to be the default of the process. It is an absolute path,
// with :ro if it is read-only. The roots of the client then count. Only the owner of the data
// directory may send it, on its socket.
const MCPWorkspaceHeader = "Rolecall-Workspace"

// MCPEndOfInput is a line on such a connection that ends the input while answers
// continue, because not every connection can close one direction. It is never a
// valid message.
const MCPEndOfInput = "\x04"

// Page is one page of a sorted list. Next is the cursor of the next page and is
// empty on the last one.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// Index is the answer of /. Routes lists the routes that the sender may use, as
// "GET /path".
type Index struct {
	Version string   `json:"version,omitempty"`
	Routes  []string `json:"routes"`
}

// Health is the answer of /healthz and /readyz.
type Health struct {
	Status  string `json:"status"`            // ok or ready
	Version string `json:"version,omitempty"` // only for authenticated senders
}

// Configuration is the answer of /api/v1/config. Digest identifies the contents of the
// configuration's files; it is "" without a configuration.
type Configuration struct {
	Digest string `json:"digest"`
}
