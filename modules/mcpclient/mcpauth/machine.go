package mcpauth

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/backoff"
)

// issued implements Authorizer with tokens that an issuer issues without a browser. The issuer does
// so for the client credentials of the configuration, or in exchange for a token of a person. They
// are in memory only.
type issued struct {
	server *Server
	proof  func() (proof, error) // what a token is requested with

	mu     sync.Mutex // held during a request for a token; guards what follows
	token  *oauth2.Token
	ends   time.Time // of the proof of token; zero if it does not end
	scopes []string  // of token
	at     time.Time
	failed failedRequest
	delays backoff.Backoff
}

// proof is what a token is requested with, besides the credentials of the client.
type proof struct {
	params  url.Values // of the request
	secret  string     // in params; "" for none
	expires time.Time  // zero if it does not end
	check   func(*oauth2.Token) error
}

// failedRequest is the last request for a token, if it has failed.
type failedRequest struct {
	secret string // of its proof
	until  time.Time
	err    error
}

// clientProof is the proof of client credentials.
func clientProof() (proof, error) {
	return proof{params: url.Values{"grant_type": {"client_credentials"}}, check: func(*oauth2.Token) error { return nil }}, nil
}

// TokenSource implements auth.OAuthHandler. Without a valid token the request has no token. The
// challenge of the server says where to get a token. Without a proof there is no request.
func (i *issued) TokenSource(context.Context) (oauth2.TokenSource, error) {
	if _, err := i.proof(); err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.valid() {
		return nil, nil
	}
	return oauth2.StaticTokenSource(i.token), nil
}

// valid reports whether there is a token that has not expired, and whose proof has not. It must be
// called with mu held.
func (i *issued) valid() bool {
	return i.token != nil && i.server.endsLater(i.token.Expiry) && i.server.endsLater(i.ends)
}

// endsLater reports whether a time is not near. The zero time never is.
func (s *Server) endsLater(end time.Time) bool {
	return end.IsZero() || end.Sub(s.now()) > expiryMargin
}

// Authorize implements auth.OAuthHandler: it gets a token, or one with the further scopes that the
// server asks for.
func (i *issued) Authorize(ctx context.Context, request *http.Request, response *http.Response) error {
	challenge, err := readChallenge(response)
	if err != nil {
		return i.server.errUnusable(err)
	}
	p, err := i.proof()
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.valid() && i.token.AccessToken != bearerOf(request) {
		return nil // another request has got it
	}
	scopes := unionScopes(i.scopes, i.server.config.Scopes, challengeScopes(challenge))
	if err := i.mayRequest(p, response.StatusCode, len(scopes) > len(i.scopes)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client := withCache(i.server.httpClient())
	at, err := i.server.findTokenEndpoint(ctx, client, challenge, p)
	if err == nil {
		err = i.request(ctx, client, at, p, scopes)
	}
	if err != nil {
		return i.recordFailure(p, err)
	}
	i.delays.Reset()
	return nil
}

// mayRequest returns an error if a token must not be requested now. more reports whether the server
// asks for further scopes. It must be called with mu held.
func (i *issued) mayRequest(p proof, status int, more bool) error {
	name := i.server.config.Server
	if i.valid() && status == http.StatusUnauthorized && time.Since(i.at) < refreshPause {
		return errcode.New(errcode.ToolUnavailable, "the MCP server %q rejects the token that its issuer has just issued", name)
	}
	if status == http.StatusForbidden && !more {
		return errcode.New(errcode.ToolUnavailable, "the MCP server %q asks for scopes that its issuer does not grant", name)
	}
	wait := time.Until(i.failed.until)
	switch {
	case wait <= 0 || i.failed.secret != p.secret:
		return nil
	case errcode.CodeOf(i.failed.err) == errcode.AuthorizationRequired:
		return i.failed.err
	}
	return errcode.Wrap(errcode.ToolUnavailable, i.failed.err, "rolecall got no token for the MCP server %q; its log says why, and the next attempt is in %v", name, wait.Round(100*time.Millisecond))
}

// recordFailure records a request that failed, and returns its error. It must be called with mu held.
func (i *issued) recordFailure(p proof, err error) error {
	if p.secret != "" && isRefusal(err) {
		err = i.server.errRefused(plainError(err))
	} else {
		err = errcode.Wrap(errcode.ToolUnavailable, plainError(err), "rolecall got no token for the MCP server %q; its log says why", i.server.config.Server)
	}
	i.token, i.failed = nil, failedRequest{p.secret, time.Now().Add(i.delays.Next()), err}
	return err
}

// request gets a token for the server. It must be called with mu held.
func (i *issued) request(ctx context.Context, client *http.Client, at tokenEndpoint, p proof, scopes []string) error {
	if len(scopes) == 0 {
		scopes = at.scopes
	}
	c, err := i.server.clientCredentials(at)
	if err != nil {
		return err
	}
	c.Scopes = scopes
	c.EndpointParams.Set("resource", at.resource)
	for name, values := range p.params {
		c.EndpointParams[name] = slices.Clone(values)
	}
	token, err := c.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
	if err != nil {
		return err
	}
	if err := p.check(token); err != nil {
		return err
	}
	if err := i.server.checkToken(token, at.resource, at.issuer); err != nil {
		return err
	}
	i.token, i.ends, i.scopes, i.at = token, p.expires, scopes, time.Now()
	return nil
}

// Secrets implements Authorizer.
func (i *issued) Secrets() []string {
	secrets := []string{i.server.config.ClientSecret}
	if p, err := i.proof(); err == nil {
		secrets = append(secrets, p.secret)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.token != nil {
		secrets = append(secrets, i.token.AccessToken, i.token.RefreshToken)
	}
	return secrets
}
