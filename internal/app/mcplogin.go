package app

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
	"github.com/rolecall/rolecall/tool"
)

// serverAuth returns how connections to a server are authorized; nil for a server without OAuth.
func (a *App) serverAuth(s config.MCPServer) (*mcpauth.Server, error) {
	o := s.OAuth
	if o == nil {
		return nil, nil
	}
	c := mcpauth.Config{
		Server: s.Name, URL: s.URL, PerCaller: s.PerCaller, Logins: a.logins, Private: a.privateAddresses,
		Grant: mcpauth.Grant(o.Grant), ClientID: o.ClientID, ClientSecret: string(o.ClientSecret), ClientMetadataURL: o.ClientMetadataURL,
		ClientKey: string(o.ClientKey), ClientKeyID: o.ClientKeyID, Scopes: o.Scopes, Issuer: o.Issuer, Audience: o.Audience,
	}
	if s.Exchange != nil {
		c.Exchange = &mcpauth.Exchange{TokenURL: s.Exchange.TokenURL, Proof: func(subject mcpauth.Subject) (mcpauth.SubjectToken, bool) {
			return a.subjectToken(s, subject)
		}}
	}
	return mcpauth.New(c)
}

// subjectToken returns the token with which a subject has authenticated at the gateway. The token
// must be of the issuer whose tokens are exchanged for tokens of a server.
func (a *App) subjectToken(s config.MCPServer, subject mcpauth.Subject) (mcpauth.SubjectToken, bool) {
	active := a.active.Load()
	caller, external := identity.ParseCaller(string(subject))
	if active == nil || !external {
		return mcpauth.SubjectToken{}, false
	}
	from := active.config.Gateway.FindExchanged(s)
	token, ok := a.Tokens.SubjectToken(caller)
	if from == nil || !ok || token.Issuer != from.Name || token.URL != from.URL {
		return mcpauth.SubjectToken{}, false
	}
	return mcpauth.SubjectToken{Token: token.Token, IDToken: token.IDToken, Expires: token.Expires}, true
}

// exchangesTokens reports whether an MCP server of the active configuration needs the tokens of
// callers.
func (a *App) exchangesTokens() bool {
	active := a.active.Load()
	return active != nil && slices.ContainsFunc(active.config.MCPServers, func(s config.MCPServer) bool { return s.Exchange != nil })
}

// clientSecrets returns the client secret and the client key of a server; "" for none.
func clientSecrets(s config.MCPServer) (secret, key string) {
	if s.OAuth == nil {
		return "", ""
	}
	return string(s.OAuth.ClientSecret), string(s.OAuth.ClientKey)
}

// privateAddresses returns the private addresses that the active configuration allows.
func (a *App) privateAddresses() []netip.Prefix { return a.limits.requests().Private }

// subjectOf returns for whom a call is made: its caller, or the caller of the task whose agent makes
// it. That is the operator or an external caller. It reports false if that is not on record.
func (a *App) subjectOf(c tool.Call) (mcpauth.Subject, bool) {
	switch c.By.Kind {
	case identity.Operator:
		return mcpauth.Operator, true
	case identity.Caller:
		return callerSubject(c.By)
	case identity.Agent:
		agent, known := a.Runtime.Org().AgentByID(c.By.Agent)
		task, started := a.Runtime.Org().TaskByID(agent.Task)
		if !known || !started {
			return "", false
		}
		if task.Caller == identity.ByOperator("").String() {
			return mcpauth.Operator, true
		}
		p, external := identity.ParseCaller(task.Caller)
		if !external {
			return "", false
		}
		return callerSubject(p)
	}
	return "", false
}

// callerSubject returns the subject of an external caller.
func callerSubject(p identity.Principal) (mcpauth.Subject, bool) {
	if p.Kind != identity.Caller || p.User == "" || p.Role == "" || strings.Contains(string(p.Role), "@") {
		return "", false
	}
	return mcpauth.Subject(p.Holder().String()), true
}

// senderSubject returns the subject of the sender of a request.
func senderSubject(p identity.Principal) (mcpauth.Subject, error) {
	if p.Kind == identity.Operator {
		return mcpauth.Operator, nil
	}
	if subject, ok := callerSubject(p); ok {
		return subject, nil
	}
	return "", errcode.New(errcode.InsufficientPermissions, "only the operator and external callers have logins at MCP servers")
}

// ownLogin is the login of one sender at one MCP server, whether it has logged in or not.
type ownLogin struct {
	server  *mcpauth.Server
	subject mcpauth.Subject
	connect mcpauth.Connect // connects to the server
}

// loginOf returns the login of the sender of a request at a server of the active configuration.
// Errors: ItemNotFound for a server that has no OAuth or does not exist, InsufficientPermissions
// for a sender without logins.
func (a *App) loginOf(by identity.Principal, name string) (l ownLogin, err error) {
	s, err := a.loginServer(name)
	if err != nil {
		return ownLogin{}, err
	}
	if l.server, err = a.serverAuth(s); err != nil {
		return ownLogin{}, err
	}
	if l.subject, err = senderSubject(by); err != nil {
		return ownLogin{}, err
	}
	l.connect = func(ctx context.Context, by mcpauth.Authorizer) error {
		return mcpclient.Connect(ctx, mcpclient.Config{Name: s.Name, URL: s.URL, Headers: revealSecrets(s.Headers), Auth: l.server}, by)
	}
	return l, nil
}

// loginServer returns a server of the active configuration that has OAuth.
func (a *App) loginServer(name string) (config.MCPServer, error) {
	active := a.active.Load()
	if active == nil {
		return config.MCPServer{}, errcode.New(errcode.ItemNotFound, "there is no MCP server %.100q with a login: no configuration is active", name)
	}
	at := slices.IndexFunc(active.config.MCPServers, func(s config.MCPServer) bool { return s.Name == name && s.OAuth != nil })
	if at < 0 {
		return config.MCPServer{}, errcode.New(errcode.ItemNotFound, "there is no MCP server %.100q with a login", name)
	}
	return active.config.MCPServers[at], nil
}

// ListServers implements gateway.LoginKeeper.
func (a *App) ListServers(ctx context.Context) (list []wire.MCPServer, err error) {
	active := a.active.Load()
	if active == nil {
		return nil, nil
	}
	for _, s := range active.config.MCPServers {
		if s.OAuth == nil {
			continue
		}
		out := wire.MCPServer{Name: s.Name, Grant: s.OAuth.Grant, PerCaller: s.PerCaller, Logins: []wire.MCPLogin{}}
		auth, err := a.serverAuth(s)
		if err != nil {
			return nil, err
		}
		logins, err := auth.ListLogins(ctx)
		if err != nil {
			return nil, err
		}
		for _, l := range logins {
			out.Logins = append(out.Logins, wireLogin(l))
		}
		list = append(list, out)
	}
	slices.SortFunc(list, func(x, y wire.MCPServer) int { return strings.Compare(x.Name, y.Name) })
	return list, nil
}

// wireLogin converts a login.
func wireLogin(l mcpauth.Login) wire.MCPLogin {
	return wire.MCPLogin{Subject: string(l.Subject), Issuer: l.Issuer, Scopes: l.Scopes, At: l.At, Ended: l.Ended}
}

// BeginLogin implements gateway.LoginKeeper.
func (a *App) BeginLogin(ctx context.Context, server string, by identity.Principal, q wire.MCPLoginRequest) (wire.MCPLoginOffer, error) {
	l, err := a.loginOf(by, server)
	if err != nil {
		return wire.MCPLoginOffer{}, err
	}
	offer, err := l.server.BeginLogin(ctx, l.subject, mcpauth.LoginRequest(q), l.connect)
	return wire.MCPLoginOffer(offer), err
}

// FinishLogin implements gateway.LoginKeeper.
func (a *App) FinishLogin(ctx context.Context, server string, by identity.Principal, id string, q wire.MCPLoginAnswer) (wire.MCPLogin, error) {
	l, err := a.loginOf(by, server)
	if err != nil {
		return wire.MCPLogin{}, err
	}
	login, err := l.server.FinishLogin(ctx, l.subject, id, mcpauth.Answer(q))
	return wireLogin(login), err
}

// Logout implements gateway.LoginKeeper.
func (a *App) Logout(ctx context.Context, server string, by identity.Principal) (wire.MCPLogin, error) {
	l, err := a.loginOf(by, server)
	if err != nil {
		return wire.MCPLogin{}, err
	}
	login, found, err := l.server.FindLogin(ctx, l.subject)
	if err == nil && found {
		found, err = l.server.Logout(ctx, l.subject)
	}
	if err == nil && !found {
		err = errcode.New(errcode.ItemNotFound, "log out of the MCP server %q: you are not logged in", server)
	}
	return wireLogin(login), err
}
