package mcpauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/rolecall/rolecall/errcode"
)

// Limits of attempts in progress.
const (
	maxAttempts          = 256
	maxAttemptsOfSubject = 4
)

// attempt is a login in progress.
type attempt struct {
	id      string
	server  *Server
	subject Subject
	handler *loginHandler
	began   time.Time

	ctx     context.Context
	cancel  context.CancelCauseFunc
	offered chan LoginOffer // buffered for one
	answers chan Answer     // buffered for one
	done    chan struct{}   // closed after login and err are set
	login   Login
	err     error
}

// newAttempt returns an attempt that has not begun.
func (s *Server) newAttempt(subject Subject, q LoginRequest, expected string) (*attempt, error) {
	a := &attempt{
		id: rand.Text(), server: s, subject: subject, began: time.Now(),
		offered: make(chan LoginOffer, 1), answers: make(chan Answer, 1), done: make(chan struct{}),
	}
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	a.handler = &loginHandler{attempt: a, expected: expected, client: withCache(s.httpClient())}
	var err error
	if a.handler.flow, err = auth.NewAuthorizationCodeHandler(a.flowConfig(q.Redirect)); err != nil {
		return nil, s.config.invalid(err.Error())
	}
	return a, nil
}

// flowConfig returns the configuration of the authorization code flow. It uses the registered
// client. Without such a client it uses a metadata document or a client that is registered now.
func (a *attempt) flowConfig(redirect string) *auth.AuthorizationCodeHandlerConfig {
	c := a.server.config
	flow := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect, AuthorizationCodeFetcher: a.fetch, Client: a.handler.client,
		RequestRefreshToken: true, ScopeFilter: a.scopes, NewTokenSource: a.handler.accept,
	}
	if c.ClientMetadataURL != "" {
		flow.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: c.ClientMetadataURL}
	}
	if c.ClientID == "" {
		flow.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{redirect}, ClientName: "rolecall",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}}
		return flow
	}
	flow.PreregisteredClient = &oauthex.ClientCredentials{ClientID: c.ClientID, Issuer: c.Issuer}
	if c.ClientSecret != "" {
		flow.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: c.ClientSecret}
	}
	return flow
}

// scopes returns the scopes to request. These are the configured scopes, or else the scopes that
// the server names. The scopes that were granted before are added, and the scopes for which a call
// has failed since.
func (a *attempt) scopes(named []string) []string {
	c := a.server.config
	if len(c.Scopes) > 0 {
		named = c.Scopes
	}
	before, err := a.server.usableGrant(a.ctx, a.subject)
	if err != nil {
		before = grant{}
	}
	c.Logins.mu.Lock()
	defer c.Logins.mu.Unlock()
	return unionScopes(before.Scopes, named, c.Logins.wanted[loginOwner(c.Server, a.subject)])
}

// fetch implements auth.AuthorizationCodeFetcher: it offers the URL and waits for the answer.
func (a *attempt) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	a.offered <- LoginOffer{ID: a.id, URL: args.URL, Issuer: a.handler.found.issuer.Issuer, Scopes: scopesOf(args.URL)}
	select {
	case answer := <-a.answers:
		if answer.Error != "" || answer.Code == "" {
			return nil, errcode.New(errcode.Unauthenticated, "log in to the MCP server %q: its issuer has not logged you in%s", a.server.config.Server, codeText(answer.Error))
		}
		return &auth.AuthorizationResult{Code: answer.Code, State: answer.State, Iss: answer.Issuer}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// run connects, and stores the login if that succeeds.
func (a *attempt) run(connect Connect) {
	ctx, cancel := context.WithTimeout(a.ctx, maxLoginTime)
	defer cancel()
	defer a.cancel(nil)
	err := connect(ctx, a.handler)
	switch {
	case a.handler.failed != nil:
		err = a.handler.failed
	case err == nil && !a.handler.answered():
		err = errcode.New(errcode.Conflict, "log in to the MCP server %q: it asks for no login", a.server.config.Server)
	}
	if err == nil {
		a.login, err = a.server.storeLogin(ctx, a, a.handler)
	}
	if err != nil {
		a.err = a.server.loginError(err)
	}
}

// attempts are the logins in progress, by id. They are safe for concurrent use.
type attempts struct {
	mu     sync.Mutex // guards what follows
	closed bool
	list   map[string]*attempt
}

// startAttempt runs an attempt in the background. A subject with too many loses the oldest.
func (s *Store) startAttempt(a *attempt, connect Connect) error {
	if err := s.attempts.add(a); err != nil {
		return err
	}
	if !s.begin() {
		s.attempts.remove(a)
		return errcode.New(errcode.ToolUnavailable, "log in to the MCP server %q: rolecall is closing", a.server.config.Server)
	}
	go func() {
		defer s.running.Done()
		a.run(connect)
		s.attempts.remove(a) // before done is closed, so that an attempt is finished once
		close(a.done)
	}()
	return nil
}

// add adds an attempt. Errors: RateLimited.
func (l *attempts) add(a *attempt) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.ofSubject(a.server.config.Server, a.subject)
	if len(own) >= maxAttemptsOfSubject {
		oldest := slices.MinFunc(own, func(x, y *attempt) int { return x.began.Compare(y.began) })
		oldest.cancel(errors.New("another login was begun"))
		delete(l.list, oldest.id)
	}
	if l.closed || len(l.list) >= maxAttempts {
		return errcode.New(errcode.RateLimited, "log in to the MCP server %q: too many logins are in progress; try again later", a.server.config.Server)
	}
	l.list[a.id] = a
	return nil
}

// ofSubject returns the attempts of a subject at a server. It must be called with mu held.
func (l *attempts) ofSubject(server string, subject Subject) (own []*attempt) {
	for _, a := range l.list {
		if a.subject == subject && a.server.config.Server == server {
			own = append(own, a)
		}
	}
	return own
}

// find returns the attempt of a subject with an id; nil if there is none.
func (l *attempts) find(server string, subject Subject, id string) *attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.ofSubject(server, subject) {
		if subtle.ConstantTimeCompare([]byte(a.id), []byte(id)) == 1 {
			return a
		}
	}
	return nil
}

// remove removes an attempt.
func (l *attempts) remove(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.list, a.id)
}

// cancel ends the attempts of a subject.
func (l *attempts) cancel(server string, subject Subject) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.ofSubject(server, subject) {
		a.cancel(errors.New("the person has logged out"))
	}
}

// close ends all attempts, and rejects further attempts.
func (l *attempts) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, a := range l.list {
		a.cancel(errors.New("rolecall is closing"))
	}
}

// loginHandler implements Authorizer with the authorization code flow of one attempt. The server is
// asked for a challenge once. Requests of one connection call it one after the other.
type loginHandler struct {
	attempt  *attempt
	expected string // the only issuer; "" is any
	client   *http.Client
	flow     *auth.AuthorizationCodeHandler

	found  discovered
	failed error // of Authorize

	mu    sync.Mutex // guards what follows
	oauth *oauth2.Config
	token *oauth2.Token // nil until the issuer has answered
}

// TokenSource implements auth.OAuthHandler.
func (h *loginHandler) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	return h.flow.TokenSource(ctx)
}

// Authorize implements auth.OAuthHandler. The issuer is checked before anything is sent to it but
// requests for its metadata, which are answered from memory afterwards.
func (h *loginHandler) Authorize(ctx context.Context, request *http.Request, response *http.Response) error {
	err := h.authorize(ctx, request, response)
	if h.failed == nil {
		h.failed = err
	}
	return err
}

// authorize is Authorize.
func (h *loginHandler) authorize(ctx context.Context, request *http.Request, response *http.Response) error {
	s, subject := h.attempt.server, h.attempt.subject
	challenge, err := oauthex.ParseWWWAuthenticate(response.Header["Www-Authenticate"])
	switch {
	case h.failed != nil || h.answered():
		if isStepUp(challenge) {
			s.rememberScopes(subject, challengeScopes(challenge))
			return errors.Join(h.failed, s.errRequired(subject, "the server asks for more scopes"))
		}
		return errors.Join(h.failed, errors.New("the server rejects the new token"))
	case err != nil:
		return s.errUnusable(err)
	}
	if h.found, err = s.discover(ctx, h.client, challenge, h.expected); err != nil {
		return err
	}
	return h.flow.Authorize(ctx, request, response)
}

// accept is called with a new token. It rejects a token that cannot be used for this server.
func (h *loginHandler) accept(_ context.Context, c *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
	if err := h.attempt.server.checkToken(token, h.found.resource, h.found.issuer.Issuer); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.oauth, h.token = c, token
	return oauth2.StaticTokenSource(token), nil
}

// answered reports whether the issuer has answered with a token.
func (h *loginHandler) answered() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.token != nil
}

// Secrets implements Authorizer.
func (h *loginHandler) Secrets() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	secrets := []string{h.attempt.server.config.ClientSecret}
	if h.token != nil {
		secrets = append(secrets, h.token.AccessToken, h.token.RefreshToken, h.oauth.ClientSecret)
	}
	return secrets
}

// grant returns the login of the attempt.
func (h *loginHandler) grant() grant {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.attempt.server.config
	scopes := h.oauth.Scopes
	if granted, ok := h.token.Extra("scope").(string); ok && granted != "" {
		scopes = strings.Fields(granted)
	}
	return grant{
		record: record{
			Server: c.Server, Subject: h.attempt.subject, Issuer: h.found.issuer.Issuer, Resource: h.found.resource, URL: c.URL,
			Scopes: scopes[:min(len(scopes), 64)], At: time.Now().UTC().Truncate(time.Second),
		},
		sealedGrant: sealedGrant{
			Token: h.token.AccessToken, Expiry: h.token.Expiry, Refresh: h.token.RefreshToken,
			TokenURL: h.oauth.Endpoint.TokenURL, AuthStyle: h.oauth.Endpoint.AuthStyle, ClientID: h.oauth.ClientID, ClientSecret: h.oauth.ClientSecret,
		},
	}
}
