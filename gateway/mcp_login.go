package gateway

import (
	"context"
	"net/http"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/toolgroups"
)

// LoginKeeper keeps the logins at MCP servers. A login belongs to the principal that has begun it:
// the operator or an external caller. It is safe for concurrent use.
type LoginKeeper interface {
	// ListServers lists the servers with OAuth, sorted by name, with all logins.
	ListServers(context.Context) ([]wire.MCPServer, error)
	// BeginLogin begins a login. Errors: ItemNotFound for another server, and the errors of a
	// login.
	BeginLogin(ctx context.Context, server string, by identity.Principal, q wire.MCPLoginRequest) (wire.MCPLoginOffer, error)
	// FinishLogin returns when the login is stored. Errors: ItemNotFound for an attempt of others.
	FinishLogin(ctx context.Context, server string, by identity.Principal, id string, q wire.MCPLoginAnswer) (wire.MCPLogin, error)
	// Logout removes the login of a principal and returns it. Errors: ItemNotFound if there is no
	// login.
	Logout(ctx context.Context, server string, by identity.Principal) (wire.MCPLogin, error)
}

// noLogins is the LoginKeeper of a process without one.
type noLogins struct{}

func (noLogins) ListServers(context.Context) ([]wire.MCPServer, error) { return nil, nil }

func (noLogins) BeginLogin(_ context.Context, server string, _ identity.Principal, _ wire.MCPLoginRequest) (wire.MCPLoginOffer, error) {
	return wire.MCPLoginOffer{}, errNoLoginAt(server)
}

func (noLogins) FinishLogin(_ context.Context, server string, _ identity.Principal, _ string, _ wire.MCPLoginAnswer) (wire.MCPLogin, error) {
	return wire.MCPLogin{}, errNoLoginAt(server)
}

func (noLogins) Logout(_ context.Context, server string, _ identity.Principal) (wire.MCPLogin, error) {
	return wire.MCPLogin{}, errNoLoginAt(server)
}

// errNoLoginAt returns the error for a server that does not exist, has no login, or is not visible.
func errNoLoginAt(server string) error {
	return errcode.New(errcode.ItemNotFound, "there is no MCP server %.100q with a login", server)
}

// loginPath is the path of the login of the sender at a server.
const loginPath = "/api/v1/mcp-servers/{name}/login"

// loginRoutes are about logins at MCP servers. A caller logs in for itself, at servers of which its
// role has a tool.
func (a *api) loginRoutes() []route {
	failures := []errcode.Code{errcode.ItemNotFound, errcode.AuthorizationRequired, errcode.Conflict, errcode.ToolUnavailable, errcode.LimitExceeded}
	return []route{
		{
			method: "GET", path: "/api/v1/mcp-servers", id: "listMCPServers", summary: "List the MCP servers with OAuth, and the logins of the sender; all logins for the operator",
			params: paged(), scopes: toolUsers, answer: wire.Page[wire.MCPServer]{}, serve: a.listEndpoint(a.listServers),
		}, {
			method: "POST", path: loginPath, id: "beginLogin", summary: "Begin a login of the sender at an MCP server",
			scopes: toolUsers, body: wire.MCPLoginRequest{}, answer: wire.MCPLoginOffer{}, errors: failures, serve: a.countedEndpoint(a.beginLogin),
		}, {
			method: "POST", path: loginPath + "/{id}", id: "finishLogin", summary: "Complete a login of the sender with the answer of the issuer",
			scopes: toolUsers, body: wire.MCPLoginAnswer{}, answer: wire.MCPLogin{}, errors: failures, serve: a.countedEndpoint(a.finishLogin),
		}, {
			method: "DELETE", path: loginPath, id: "logout", summary: "Forget the login of the sender at an MCP server",
			scopes: toolUsers, answer: wire.MCPLogin{}, errors: []errcode.Code{errcode.ItemNotFound}, serve: jsonEndpoint(a.logout),
		},
	}
}

// listServers lists the visible servers.
func (a *api) listServers(r *http.Request) (any, error) {
	all, err := a.logins.ListServers(r.Context())
	if err != nil {
		return nil, err
	}
	v, sender := a.visibilityFor(r), auth.SenderOf(r)
	all = slices.DeleteFunc(all, func(s wire.MCPServer) bool { return !v.hasServer(s.Name) })
	return paginate(r, all, func(s wire.MCPServer) string { return s.Name }, func(s wire.MCPServer) wire.MCPServer {
		s.Logins = slices.DeleteFunc(slices.Clone(s.Logins), func(l wire.MCPLogin) bool { return !v.all && l.Subject != sender.String() })
		return s
	})
}

// hasServer reports whether the sender sees a tool of an MCP server.
func (v visibility) hasServer(name string) bool {
	owner := modules.OwnerOf(name)
	return v.all || slices.ContainsFunc(v.tools(), func(h *toolgroups.ToolHandle) bool { return h.Owner == owner })
}

// visibleServer returns the name of the server in the path, if the sender sees it.
func (a *api) visibleServer(r *http.Request) (string, error) {
	name := r.PathValue("name")
	if !a.visibilityFor(r).hasServer(name) {
		return "", errNoLoginAt(name)
	}
	return name, nil
}

// beginLogin answers with what the person needs to log in.
func (a *api) beginLogin(r *http.Request) (any, error) {
	q, err := decode[wire.MCPLoginRequest](r)
	if err != nil {
		return nil, err
	}
	server, err := a.visibleServer(r)
	if err != nil {
		return nil, err
	}
	return a.logins.BeginLogin(r.Context(), server, auth.SenderOf(r), q)
}

// finishLogin completes a login of the sender.
func (a *api) finishLogin(r *http.Request) (any, error) {
	q, err := decode[wire.MCPLoginAnswer](r)
	if err != nil {
		return nil, err
	}
	server, err := a.visibleServer(r)
	if err != nil {
		return nil, err
	}
	login, err := a.logins.FinishLogin(r.Context(), server, auth.SenderOf(r), r.PathValue("id"), q)
	if err != nil {
		return nil, err
	}
	a.log.Info("login at MCP server", "server", server, "subject", login.Subject, "issuer", login.Issuer)
	return login, nil
}

// logout forgets the login of the sender and answers with it.
func (a *api) logout(r *http.Request) (any, error) {
	server, err := a.visibleServer(r)
	if err != nil {
		return nil, err
	}
	login, err := a.logins.Logout(r.Context(), server, auth.SenderOf(r))
	if err != nil {
		return nil, err
	}
	a.log.Info("logout at MCP server", "server", server, "subject", login.Subject)
	return login, nil
}
