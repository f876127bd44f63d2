package client

import (
	"context"
	"iter"
	"net/http"
)

// ListMCPServers lists the MCP servers with OAuth that the sender sees, sorted by name.
func (c *Client) ListMCPServers(ctx context.Context) iter.Seq2[MCPServer, error] {
	return listAll[MCPServer](ctx, c, apiPath("mcp-servers"), nil)
}

// BeginLogin begins a login of the sender at an MCP server. A browser that opens the URL of the
// offer is sent back to q.Redirect.
func (c *Client) BeginLogin(ctx context.Context, server string, q MCPLoginRequest) (MCPLoginOffer, error) {
	return doJSON[MCPLoginOffer](ctx, c, request{method: http.MethodPost, path: apiPath("mcp-servers", server, "login"), body: q})
}

// FinishLogin completes a login with the answer of the issuer. It returns when the login is stored.
func (c *Client) FinishLogin(ctx context.Context, server, id string, q MCPLoginAnswer) (MCPLogin, error) {
	return doJSON[MCPLogin](ctx, c, request{method: http.MethodPost, path: apiPath("mcp-servers", server, "login", id), body: q})
}

// Logout forgets the login of the sender at an MCP server and returns it.
func (c *Client) Logout(ctx context.Context, server string) (MCPLogin, error) {
	return doJSON[MCPLogin](ctx, c, request{method: http.MethodDelete, path: apiPath("mcp-servers", server, "login")})
}
