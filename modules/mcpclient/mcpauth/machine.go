package mcpauth

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/backoff"
)

// machine implements Authorizer with the client credentials of the configuration. Its token is in
// memory only.
type machine struct {
	server *Server

	mu      sync.Mutex // held during a request for a token; guards what follows
	token   *oauth2.Token
	scopes  []string // of token
	at      time.Time
	retryAt time.Time
	lastErr error // of the last attempt
	delays  backoff.Backoff
}

// TokenSource implements auth.OAuthHandler. Without a valid token the request has none, and the
// challenge of the server says where to get one.
func (m *machine) TokenSource(context.Context) (oauth2.TokenSource, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.valid() {
		return nil, nil
	}
	return oauth2.StaticTokenSource(m.token), nil
}

// valid reports whether there is a token that has not expired. It must be called with mu held.
func (m *machine) valid() bool {
	return m.token != nil && (m.token.Expiry.IsZero() || time.Until(m.token.Expiry) > expiryMargin)
}

// Authorize implements auth.OAuthHandler: it gets a token, or one with the further scopes that the
// server asks for.
func (m *machine) Authorize(ctx context.Context, request *http.Request, response *http.Response) error {
	challenge, err := readChallenge(response)
	if err != nil {
		return m.server.unusable(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.valid() && m.token.AccessToken != bearerOf(request) {
		return nil // another request has got it
	}
	if m.valid() && response.StatusCode == http.StatusUnauthorized && time.Since(m.at) < refreshPause {
		return errcode.New(errcode.ToolUnavailable, "the MCP server %q rejects the token that its issuer has just issued", m.server.config.Server)
	}
	scopes := unionScopes(m.scopes, m.server.config.Scopes, challengeScopes(challenge))
	if response.StatusCode == http.StatusForbidden && len(scopes) == len(m.scopes) {
		return errcode.New(errcode.ToolUnavailable, "the MCP server %q asks for scopes that its issuer does not grant", m.server.config.Server)
	}
	if wait := time.Until(m.retryAt); wait > 0 {
		return errcode.Wrap(errcode.ToolUnavailable, m.lastErr, "rolecall got no token for the MCP server %q; its log says why, and the next attempt is in %v", m.server.config.Server, wait.Round(100*time.Millisecond))
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client := remembering(m.server.httpClient())
	d, err := m.server.discover(ctx, client, challenge, m.server.config.Issuer)
	if err == nil {
		err = m.request(ctx, client, d, scopes)
	}
	if err != nil {
		m.token, m.lastErr, m.retryAt = nil, err, time.Now().Add(m.delays.Next())
		return errcode.Wrap(errcode.ToolUnavailable, err, "rolecall got no token for the MCP server %q; its log says why", m.server.config.Server)
	}
	m.delays.Reset()
	return nil
}

// request gets a token for the server. It must be called with mu held.
func (m *machine) request(ctx context.Context, client *http.Client, d discovered, scopes []string) error {
	if len(scopes) == 0 {
		scopes = d.scopes
	}
	c := clientcredentials.Config{
		ClientID: m.server.config.ClientID, ClientSecret: m.server.config.ClientSecret, TokenURL: d.issuer.TokenEndpoint,
		Scopes: scopes, AuthStyle: authStyle(d.issuer.TokenEndpointAuthMethodsSupported), EndpointParams: url.Values{"resource": {d.resource}},
	}
	token, err := c.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
	if err != nil {
		return plainError(err)
	}
	if err := m.server.checkToken(token, d.resource, d.issuer.Issuer); err != nil {
		return err
	}
	m.token, m.scopes, m.at = token, scopes, time.Now()
	return nil
}

// authStyle returns how the client authenticates at the token endpoint.
func authStyle(methods []string) oauth2.AuthStyle {
	if len(methods) == 0 || slices.Contains(methods, "client_secret_basic") {
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}

// Secrets implements Authorizer.
func (m *machine) Secrets() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	secrets := []string{m.server.config.ClientSecret}
	if m.token != nil {
		secrets = append(secrets, m.token.AccessToken, m.token.RefreshToken)
	}
	return secrets
}
