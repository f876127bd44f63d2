package gateway

import (
	"net/http"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/mcpserver"
)

// mcpRoutes are the routes of the Model Context Protocol: the caller's own
// role, one group of it, a role that the operator names, and one group of that.
func (a *api) mcpRoutes() []route {
	var list []route
	for _, path := range []string{"/mcp", "/mcp/{toolset...}", "/roles/{role}/mcp", "/roles/{role}/mcp/{toolset...}"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			list = append(list, route{method, path, "", auth.AccessCaller, a.serveMCP})
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
		r = r.WithContext(mcpserver.WithRevalidation(r.Context(), func() bool { return a.authenticate.Revalidate(r) == nil }))
	}
	return a.mcp.Serve(w, r, auth.SenderOf(r))
}
