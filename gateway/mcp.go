package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
)

// mcpRoutes are the routes of the Model Context Protocol. They serve the caller's own role or a
// role that the operator names, and one group of either role.
func (a *api) mcpRoutes() (list []route) {
	for _, at := range mcpPaths {
		for _, m := range []struct{ method, id, summary string }{
			{http.MethodGet, "openMCP", "Open a stream of messages, or upgrade to a connection with lines"},
			{http.MethodPost, "sendMCP", "Send messages of JSON-RPC"},
			{http.MethodDelete, "closeMCP", "End a session"},
		} {
			list = append(list, route{
				method: m.method, path: at.path, id: m.id + at.suffix, summary: m.summary,
				scopes: toolUsers, protocol: mcpProtocol, errors: []errcode.Code{errcode.RoleNotFound, errcode.GroupNotFound, wire.RouteNotFound, errcode.Conflict}, serve: a.serveMCP,
			})
		}
	}
	return list
}

// mcpPaths are the endpoints of MCP, with what ends the names of their routes.
var mcpPaths = []struct{ path, suffix string }{
	{"/mcp", ""}, {"/mcp/{toolset...}", "Toolset"}, {"/roles/{role}/mcp", "OfRole"}, {"/roles/{role}/mcp/{toolset...}", "ToolsetOfRole"},
}

// isMCP reports whether a request is for an endpoint of MCP.
func isMCP(r *http.Request) bool {
	return slices.ContainsFunc(mcpPaths, func(at struct{ path, suffix string }) bool {
		return strings.TrimPrefix(r.Pattern, r.Method+" ") == at.path
	})
}

// serveMCP answers an MCP request.
func (a *api) serveMCP(w http.ResponseWriter, r *http.Request) error {
	if a.mcp == nil {
		return routeNotFound(w, r)
	}
	admitted := r
	r = r.WithContext(mcpserver.WithRevalidation(r.Context(), func() bool { return a.authenticate.Revalidate(admitted) == nil }))
	r = r.WithContext(mcpserver.WithRequestCount(r.Context(), func() error { return a.rates.count(admitted) }))
	if text := r.Header.Get(wire.MCPWorkspaceHeader); text != "" {
		if err := a.checkMCPWorkspace(r, text); err != nil {
			return err
		}
		r = r.WithContext(mcpserver.WithRoots(r.Context()))
	}
	return a.mcp.Serve(w, r, auth.SenderOf(r))
}

// checkMCPWorkspace checks that the workspace that a client expects is the default one.
func (a *api) checkMCPWorkspace(r *http.Request, text string) error {
	if !auth.IsLocalOwner(r) || auth.SenderOf(r).Kind != identity.Operator {
		return errcode.New(errcode.InsufficientPermissions, "a directory can be named only on this machine, through the socket of the data directory")
	}
	text, err := url.QueryUnescape(text)
	dir, readOnly := strings.CutSuffix(text, ":ro")
	if err != nil || !a.rt.IsDefaultWorkspace(dir, readOnly) {
		return errcode.New(errcode.Conflict, "the process that serves the data directory has another default workspace than %.200q; leave --workspace out, set it for that process, or use another data directory", text)
	}
	return nil
}
