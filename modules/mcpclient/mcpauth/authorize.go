package mcpauth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/backoff"
)

const (
	expiryMargin = 10 * time.Second // how long before its end a token is refreshed
	refreshPause = 30 * time.Second // how long a refreshed token that the server rejects is kept
)

// expiresSoon reports whether the token has expired, or does so in a moment.
func (g grant) expiresSoon() bool { return !g.Expiry.IsZero() && time.Until(g.Expiry) <= expiryMargin }

// authorizer implements Authorizer with the login of a subject.
type authorizer struct {
	server  *Server
	subject Subject
}

// TokenSource implements auth.OAuthHandler.
func (a *authorizer) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	return tokenFunc(func() (*oauth2.Token, error) { return a.server.token(ctx, a.subject) }), nil
}

// tokenFunc is a function that implements oauth2.TokenSource.
type tokenFunc func() (*oauth2.Token, error)

// Token implements oauth2.TokenSource.
func (f tokenFunc) Token() (*oauth2.Token, error) { return f() }

// Authorize implements auth.OAuthHandler. A token that the server rejects is refreshed once.
func (a *authorizer) Authorize(ctx context.Context, request *http.Request, response *http.Response) error {
	challenge, err := readChallenge(response)
	if err != nil {
		return a.server.errRequired(a.subject, "it rejects the request")
	}
	if response.StatusCode == http.StatusForbidden {
		a.server.rememberScopes(a.subject, challengeScopes(challenge))
		return a.server.errRequired(a.subject, "the call needs more scopes than the login has")
	}
	_, err = a.server.renew(ctx, a.subject, bearerOf(request))
	return err
}

// Secrets implements Authorizer.
func (a *authorizer) Secrets() []string {
	g, _, _ := a.server.config.Logins.open(context.Background(), a.server.config.Server, a.subject)
	return []string{g.Token, g.Refresh, g.ClientSecret, a.server.config.ClientSecret}
}

// readChallenge closes a response and returns what it says about authorization.
func readChallenge(response *http.Response) ([]oauthex.Challenge, error) {
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10) // so that the connection can be used again
	_ = response.Body.Close()
	return oauthex.ParseWWWAuthenticate(response.Header["Www-Authenticate"])
}

// bearerOf returns the token of a request.
func bearerOf(r *http.Request) string {
	const scheme = "Bearer "
	text := r.Header.Get("Authorization")
	return text[min(len(text), len(scheme)):]
}

// rememberScopes remembers scopes for the next login of a subject.
func (s *Server) rememberScopes(subject Subject, scopes []string) {
	const most = 64
	owner, l := loginOwner(s.config.Server, subject), s.config.Logins
	l.mu.Lock()
	defer l.mu.Unlock()
	all := unionScopes(l.wanted[owner], scopes)
	l.wanted[owner] = all[:min(len(all), most)]
}

// usableGrant returns the login of a subject if it is for this server as it is configured now. Errors:
// AuthorizationRequired.
func (s *Server) usableGrant(ctx context.Context, subject Subject) (grant, error) {
	g, found, err := s.config.Logins.open(ctx, s.config.Server, subject)
	switch {
	case err != nil:
		return g, err
	case !found:
		return g, s.errRequired(subject, "there is none")
	}
	return g, s.checkRecord(ctx, g.record)
}

// checkRecord checks that a login is for this server as it is configured now. Errors:
// AuthorizationRequired.
func (s *Server) checkRecord(ctx context.Context, r record) error {
	expected, err := s.issuer(ctx)
	switch {
	case err != nil:
		return err
	case r.Ended:
		return s.errRequired(r.Subject, "the last one has ended")
	case r.URL != s.config.URL:
		return s.errRequired(r.Subject, "the last one was for another address")
	case !sameIssuer(r.Issuer, expected):
		return s.errRequired(r.Subject, "the last one was with another issuer")
	}
	return nil
}

// issuer returns the issuer that logins are with; "" before the operator's first login.
func (s *Server) issuer(ctx context.Context) (string, error) {
	if s.config.Issuer != "" {
		return s.config.Issuer, nil
	}
	return s.config.Logins.readIssuer(ctx, s.config.Server, s.config.URL)
}

// token returns a token of a subject that has not expired.
func (s *Server) token(ctx context.Context, subject Subject) (*oauth2.Token, error) {
	g, err := s.usableGrant(ctx, subject)
	if err != nil {
		return nil, err
	}
	if !g.expiresSoon() {
		return &oauth2.Token{AccessToken: g.Token}, nil
	}
	return s.renew(ctx, subject, g.Token)
}

// renew returns a newer token than used, which has expired or was rejected. Callers of one subject
// wait for the same refresh. It is not cancelled with ctx: its token would be lost.
func (s *Server) renew(ctx context.Context, subject Subject, used string) (*oauth2.Token, error) {
	done := s.config.Logins.refreshes.DoChan(string(loginOwner(s.config.Server, subject)), func() (any, error) {
		return s.refreshAlone(context.WithoutCancel(ctx), subject, used)
	})
	select {
	case r := <-done:
		token, _ := r.Val.(string)
		if r.Err == nil && token == used { // the refresh was begun by the holder of an older token
			token, r.Err = s.refreshAlone(context.WithoutCancel(ctx), subject, used)
		}
		return &oauth2.Token{AccessToken: token}, r.Err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// refreshAlone is refresh with a time limit, one after the other for each Store that closes.
func (s *Server) refreshAlone(ctx context.Context, subject Subject, used string) (string, error) {
	l := s.config.Logins
	if !l.begin() {
		return "", errcode.New(errcode.ToolUnavailable, "the MCP server %q: rolecall is closing", s.config.Server)
	}
	defer l.running.Done()
	unlock := l.lock(loginOwner(s.config.Server, subject))
	defer unlock()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return s.refresh(ctx, subject, used)
}

// refresh returns the token of a subject if it is newer than used. Otherwise it refreshes the token
// and stores it before it is used.
func (s *Server) refresh(ctx context.Context, subject Subject, used string) (string, error) {
	g, err := s.usableGrant(ctx, subject)
	switch {
	case err != nil:
		return "", err
	case g.Token != used:
		return g.Token, nil
	case g.Refresh == "":
		return "", s.endLogin(ctx, g, "its token has expired")
	case !g.expiresSoon() && time.Since(g.refreshed) < refreshPause:
		return "", errcode.New(errcode.ToolUnavailable, "the MCP server %q rejects the token that its issuer has just refreshed", s.config.Server)
	}
	if err := s.config.Logins.mayRetry(g); err != nil {
		return "", err
	}
	token, err := s.requestRefresh(ctx, g)
	switch {
	case isRejection(err):
		return "", s.endLogin(ctx, g, "its issuer does not refresh it")
	case err != nil:
		return "", s.config.Logins.recordFailure(g)
	case s.checkToken(token, g.Resource, g.Issuer) != nil:
		return "", s.endLogin(ctx, g, "its issuer answered with an unusable token")
	}
	g.Token, g.Refresh, g.Expiry, g.refreshed = token.AccessToken, token.RefreshToken, token.Expiry, time.Now()
	if err := s.config.Logins.write(ctx, g); err != nil {
		return "", errcode.Wrap(errcode.ToolUnavailable, err, "the MCP server %q: its refreshed token could not be stored", s.config.Server)
	}
	return g.Token, nil
}

// requestRefresh asks the issuer of a login for another token. The endpoint is the endpoint that
// the issuer had when the person logged in.
func (s *Server) requestRefresh(ctx context.Context, g grant) (*oauth2.Token, error) {
	secret := g.ClientSecret
	if g.ClientID == s.config.ClientID {
		secret = s.config.ClientSecret
	}
	c := oauth2.Config{ClientID: g.ClientID, ClientSecret: secret, Endpoint: oauth2.Endpoint{TokenURL: g.TokenURL, AuthStyle: g.AuthStyle}}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, s.httpClient())
	return c.TokenSource(ctx, &oauth2.Token{RefreshToken: g.Refresh}).Token()
}

// isRejection reports whether an issuer has said that it will not refresh a token. It reports false
// if the issuer only cannot do so now, or does not know the client.
func isRejection(err error) bool {
	e, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || e.Response == nil || e.ErrorCode == "invalid_client" {
		return false
	}
	status := e.Response.StatusCode
	return status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout
}

// endLogin records that a login cannot be used any more, and returns the error for its subject.
func (s *Server) endLogin(ctx context.Context, g grant, why string) error {
	g.Ended, g.sealedGrant = true, sealedGrant{}
	return errors.Join(s.errRequired(g.Subject, why), s.config.Logins.write(ctx, g))
}

// retry is when a refresh that failed may be tried again.
type retry struct {
	at     time.Time
	delays *backoff.Backoff
}

// mayRetry returns an error while the last refresh of a login has failed a moment ago.
func (s *Store) mayRetry(g grant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if wait := time.Until(s.retries[loginOwner(g.Server, g.Subject)].at); wait > 0 {
		return errUnreachable(g, wait)
	}
	return nil
}

// recordFailure records a refresh that failed, and returns its error.
func (s *Store) recordFailure(g grant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner := loginOwner(g.Server, g.Subject)
	r := s.retries[owner]
	if r.delays == nil {
		r.delays = &backoff.Backoff{Jitter: true}
	}
	wait := r.delays.Next()
	r.at = time.Now().Add(wait)
	s.retries[owner] = r
	return errUnreachable(g, wait)
}

// errUnreachable returns the error while an issuer cannot be asked.
func errUnreachable(g grant, wait time.Duration) error {
	return errcode.New(errcode.ToolUnavailable, "the issuer of the MCP server %q did not refresh its token; the next attempt is in %v", g.Server, wait.Round(100*time.Millisecond))
}
