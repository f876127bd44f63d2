// Package mcpauth authorizes connections to MCP servers with OAuth 2.1, as the Model Context
// Protocol defines it. A person logs in with a browser, or this program has credentials of its own.
// Or this program exchanges the token with which a person has authenticated here.
//
//	logins := mcpauth.NewStore(values, keys)
//	server, err := mcpauth.New(mcpauth.Config{Server: "web", URL: "https://mcp.example.com/mcp", Logins: logins})
//	offer, err := server.BeginLogin(ctx, mcpauth.Operator, mcpauth.LoginRequest{Redirect: redirect}, connect)
//	login, err := server.FinishLogin(ctx, mcpauth.Operator, offer.ID, answer)
//	transport.OAuthHandler = server.Authorizer(mcpauth.Operator)
//
// Tokens of logins are stored sealed, and refreshed when they expire. A token belongs to one
// server, one subject, one issuer and one address; nothing else can use it. Servers and issuers are
// untrusted. Redirects are errors, and addresses that are not public are refused. The issuer of a
// server is the issuer that the operator configured or logged in with first.
package mcpauth

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/org/hosts"
)

// Subject is for whom a token is: Operator, or identity.Principal.String of an external caller.
type Subject string

// Operator is the subject of the connection that lists the tools of a server. Without PerCaller it
// makes all calls, too.
const Operator Subject = "operator"

// Grant is how a token is obtained.
type Grant string

// The grants.
const (
	AuthorizationCode Grant = "authorizationCode" // a person logs in with a browser
	ClientCredentials Grant = "clientCredentials" // with the credentials of the configuration, without a person
)

// Config says how connections to one server are authorized.
type Config struct {
	Server string // its name
	URL    string // its address: https, or http on this machine

	Grant             Grant     // "" is AuthorizationCode
	ClientID          string    // registered with the issuer; "" registers a client with each login
	ClientSecret      string    // of ClientID; it requires Issuer
	ClientKey         string    // of ClientID, in place of ClientSecret: a private key in PEM; it requires ClientCredentials
	ClientKeyID       string    // by which the issuer knows the key; "" for none
	ClientMetadataURL string    // of a client id metadata document, https; used if the issuer supports it
	Scopes            []string  // to request; none requests those that the server names
	Issuer            string    // the only issuer; "" is the issuer of the operator's first login
	Audience          string    // that a token which is a JWT may have in place of the server's address; "" for none
	PerCaller         bool      // each call has the token of the person for whom it is made
	Exchange          *Exchange // how persons get tokens without a login; nil is not

	// Private returns the addresses that are not public and may be connected to. nil returns none.
	Private func() []netip.Prefix
	Logins  *Store
}

// Server authorizes connections to one server. It is safe for concurrent use.
type Server struct {
	config  Config
	machine issued      // for ClientCredentials
	signer  jose.Signer // with Config.ClientKey; nil without
	now     func() time.Time
}

// New returns a Server. It connects to nothing. Errors have the code invalid_config.
func New(c Config) (*Server, error) {
	if c.Grant == "" {
		c.Grant = AuthorizationCode
	}
	s := &Server{config: c, now: time.Now}
	s.machine.server, s.machine.proof = s, clientProof
	if c.ClientKey != "" {
		var err error
		if s.signer, err = newSigner(c.ClientKey, c.ClientKeyID); err != nil {
			return nil, c.invalid(err.Error())
		}
	}
	return s, c.check()
}

// check validates a configuration.
func (c Config) check() error {
	machine := c.Grant == ClientCredentials
	switch {
	case c.Logins == nil || c.Server == "":
		return c.invalid("the server has no name, or there is no store of logins")
	case !isSecure(c.URL):
		return c.invalid("its url must begin with https://, because tokens are sent there; http is for addresses on this machine")
	case c.Grant != AuthorizationCode && !machine:
		return c.invalid("the grant is unknown")
	case c.Issuer != "" && !isSecure(c.Issuer):
		return c.invalid("the issuer must begin with https://; http is for an issuer on this machine")
	case c.ClientSecret != "" && (c.ClientID == "" || c.Issuer == ""):
		return c.invalid("a client secret needs the client id and the issuer that it is for")
	case c.ClientKey != "" && (c.ClientID == "" || c.Issuer == "" || c.ClientSecret != "" || !machine):
		return c.invalid("a client key is for client credentials, in place of a client secret, and needs the client id and the issuer")
	case machine && c.ClientSecret == "" && c.ClientKey == "":
		return c.invalid("client credentials need a client id, a client secret or key, and the issuer that they are for")
	case machine && c.PerCaller && c.Exchange == nil:
		return c.invalid("client credentials are of this program, so they cannot be those of each caller")
	}
	return c.checkExchange()
}

// invalid returns the error of a configuration.
func (c Config) invalid(reason string) error {
	return errcode.New(errcode.InvalidConfig, "MCP server %q: oauth: %s", c.Server, reason)
}

// isSecure reports whether secrets may be sent to an address: it is an URL with https, or with http
// on this machine.
func isSecure(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http" && hosts.IsLoopback(u.Hostname()))
}

// WatchLogins calls fn after each login and logout at the server, until stop is called. fn must not
// block.
func (s *Server) WatchLogins(fn func(Subject)) (stop func()) {
	return s.config.Logins.watch(func(server string, subject Subject) {
		if server == s.config.Server {
			fn(subject)
		}
	})
}

// PerCaller reports whether each call needs the token of the person for whom it is made.
func (s *Server) PerCaller() bool { return s.config.PerCaller }

// NeedsLogin reports whether connections of a subject fail until a person logs in.
func (s *Server) NeedsLogin(ctx context.Context, subject Subject) bool {
	if s.exchanges(subject) {
		_, err := s.exchangeProof(subject)
		return err != nil
	}
	if s.config.Grant == ClientCredentials {
		return false
	}
	_, err := s.usableGrant(ctx, subject)
	return err != nil
}

// Authorizer authorizes the requests of one connection.
type Authorizer interface {
	auth.OAuthHandler
	// Secrets returns what must be hidden: tokens and client secrets.
	Secrets() []string
}

// Authorizer returns what authorizes connections of a subject. It never asks a person: without a
// valid token its errors have the code authorization_required. Connections of a subject share one, so
// that a token is requested once.
func (s *Server) Authorizer(subject Subject) Authorizer {
	if s.exchanges(subject) {
		return s.newExchange(subject)
	}
	if s.config.Grant == ClientCredentials {
		return &s.machine
	}
	return &authorizer{s, subject}
}

// errRequired returns the error for a subject without a usable login, and the reason.
func (s *Server) errRequired(subject Subject, why string) error {
	if subject == Operator {
		return errcode.New(errcode.AuthorizationRequired, "the MCP server %q needs a login of the operator: %s; \"rolecall mcp login %s\" logs in", s.config.Server, why, s.config.Server).With("server", s.config.Server)
	}
	return errcode.New(errcode.AuthorizationRequired, "the MCP server %q needs a login of the person for whom this is done: %s; \"rolecall mcp login %s\" with that person's token of rolecall logs in", s.config.Server, why, s.config.Server).With("server", s.config.Server)
}

// unionScopes returns the scopes of all lists, each once, in order.
func unionScopes(lists ...[]string) (all []string) {
	for _, scope := range slices.Concat(lists...) {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// sameIssuer reports whether two texts are the same issuer, with or without a slash at the end.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }
