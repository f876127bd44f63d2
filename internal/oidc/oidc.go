// Package oidc verifies bearer tokens against OpenID Connect issuers.
//
//	s, err := oidc.New(oidc.Config{Name: "my-auth", Issuer: "https://id.example.com", Audience: []string{"orders"}})
//	claims, err := s.Verify(ctx, token)
//
// A Service finds its issuer by the discovery document when the first token comes,
// and again every few minutes together with the issuer's keys. JWTs are verified
// with those keys, opaque tokens by introspection (RFC 7662) if it is configured.
// A token is rejected unless it can be verified: an issuer that is unreachable
// verifies nothing.
//
// The package grants no permissions and issues no tokens; its callers decide what
// the claims of a verified token allow.
package oidc

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/internal/clock"
	"github.com/rolecall/rolecall/internal/strictjson"
)

// Config describes a service. Name, Issuer and Audience are required.
type Config struct {
	Name     string
	Issuer   string   // its URL, which the claim iss has to equal
	Audience []string // the claim aud has to contain one of them
	Scopes   []string // the claim scope has to contain all of them

	Introspection *Introspection // nil: only JWTs are accepted
	SignIn        *SignInClient  // nil: no user can sign in with a browser

	Client *http.Client     // nil is one with a timeout of 10 s
	Now    func() time.Time // nil is time.Now
	Expiry *clock.Forward   // decides whether tokens have expired; nil is one of this service, which follows Now
}

// Introspection configures how the issuer is asked about opaque tokens (RFC 7662).
type Introspection struct {
	Endpoint  string // "" is the one in the discovery document
	Method    string // POST or GET; "" is POST
	Parameter string // the parameter that carries the token; "" is token
	Always    bool   // introspect JWTs too
}

// Claims are the claims of a verified token: a JSON object, with its numbers as
// they were written.
type Claims json.RawMessage

// Field returns the claim of exactly this name, and whether there is one.
func (c Claims) Field(name string) (json.RawMessage, bool) {
	var found json.RawMessage
	gjson.ParseBytes(c).ForEach(func(key, value gjson.Result) bool {
		if key.Str == name {
			found = json.RawMessage(value.Raw)
		}
		return found == nil
	})
	return found, found != nil
}

// Scopes returns the words of the claim scope, or of scp if there is no scope.
// Some issuers write them as a list.
func (c Claims) Scopes() []string {
	for _, name := range []string{"scope", "scp"} {
		raw, ok := c.Field(name)
		if !ok {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) == nil {
			return strings.Fields(text)
		}
		var list []string
		if json.Unmarshal(raw, &list) == nil {
			return list
		}
	}
	return nil
}

const (
	maxToken       = 16 << 10         // bytes of a token
	clockSkew      = 30 * time.Second // how far the issuer's clock may be off
	requestTimeout = 10 * time.Second // for one request to the issuer
)

// Service verifies the tokens of one issuer. It is safe for concurrent use.
type Service struct {
	config  Config
	client  *http.Client
	changes atomic.Uint64 // of the issuer's documents

	sem     chan struct{} // holds a token while one goroutine uses what follows
	known   *issuer       // nil until the first discovery succeeds
	lastErr error         // of the last discovery, while known is nil
	delays  backoff.Backoff
	retryAt time.Time // no discovery before
}

// New returns a service. It sends no request: the issuer may be unreachable now.
// Errors: InvalidConfig.
func New(c Config) (*Service, error) {
	switch {
	case c.Name == "" || c.Issuer == "":
		return nil, errcode.New(errcode.InvalidConfig, "auth service %q needs a name and the URL of its issuer", c.Name)
	case len(c.Audience) == 0 || slices.Contains(c.Audience, ""):
		return nil, errcode.New(errcode.InvalidConfig, "auth service %q needs an audience: without one it would accept tokens issued for others", c.Name)
	}
	if err := c.Introspection.check(c.Name); err != nil {
		return nil, err
	}
	if c.Client == nil {
		c.Client = &http.Client{Timeout: requestTimeout}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Expiry == nil {
		c.Expiry = clock.NewForward(c.Now)
	}
	s := &Service{config: c, sem: make(chan struct{}, 1)}
	s.client = newCachingClient(c.Client, c.Now, func() { s.changes.Add(1) })
	return s, nil
}

// Name returns the service's name.
func (s *Service) Name() string { return s.config.Name }

// Verify returns the claims of a valid token. A key of the issuer has signed
// the token, or introspection says that it is active. It is from this issuer,
// for one of the audiences, and has all scopes. It is valid already and not
// expired, with a tolerance of 30 seconds.
//
// Errors: Unauthenticated for any other token, ToolUnavailable when the issuer
// could not be asked, and ctx's cause. No error contains a part of the token.
func (s *Service) Verify(ctx context.Context, token string) (Claims, error) {
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7F }) {
		return nil, s.reject("it is malformed")
	}
	claims, err := s.verify(ctx, token)
	if err != nil {
		return nil, err
	}
	if err := strictjson.CheckObject(claims, nil); err != nil {
		return nil, s.reject(reasonClaims)
	}
	have := claims.Scopes()
	for _, scope := range s.config.Scopes {
		if !slices.Contains(have, scope) {
			return nil, s.reject("it lacks the scope " + scope)
		}
	}
	return claims, nil
}

// Introspects reports whether the issuer is asked about this very token. Others are verified
// with its keys.
func (s *Service) Introspects(token string) bool {
	in := s.config.Introspection
	return in != nil && (in.Always || !isJWT(token))
}

// KeyVersion changes when the issuer was found to have another discovery document or other keys.
// A token that was verified before may not be valid any more.
func (s *Service) KeyVersion() uint64 { return s.changes.Load() }

// isJWT reports whether a token has the form of a JWT.
func isJWT(token string) bool { return strings.Count(token, ".") == 2 }

// verify verifies everything but the scopes.
func (s *Service) verify(ctx context.Context, token string) (Claims, error) {
	from, err := s.discover(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case s.Introspects(token):
		return s.introspect(ctx, from, token)
	case !isJWT(token):
		return nil, s.reject("it is not a JWT")
	}
	return s.verifyJWT(ctx, from, token)
}

// Why a token is rejected, where several checks find the same.
const (
	reasonClaims   = "its claims are malformed or ambiguous JSON"
	reasonIssuer   = "it is from another issuer"
	reasonAudience = "it is for another audience"
	reasonExpired  = "it has expired or has no expiry"
)

// reject returns the error for a token that is not valid.
func (s *Service) reject(reason string) error {
	return errcode.New(errcode.Unauthenticated, "verify a token with auth service %s: %s; get a new one from its issuer", s.config.Name, reason)
}

// audiences returns the claim aud, which is a string or a list of strings.
func audiences(c Claims) []string {
	raw, _ := c.Field("aud")
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

func (s *Service) matchesAudience(audience string) bool {
	return slices.Contains(s.config.Audience, audience)
}

// checkTimes checks exp, which is required, and nbf against the clock.
func (s *Service) checkTimes(c Claims) error {
	exp, ok := c.Field("exp")
	now, latest := float64(s.config.Now().Unix()), float64(s.config.Expiry.Now().Unix())
	if !ok || gjson.ParseBytes(exp).Type != gjson.Number || gjson.ParseBytes(exp).Num+clockSkew.Seconds() <= latest {
		return s.reject(reasonExpired)
	}
	if nbf, ok := c.Field("nbf"); ok && (gjson.ParseBytes(nbf).Type != gjson.Number || gjson.ParseBytes(nbf).Num-clockSkew.Seconds() > now) {
		return s.reject("it is not valid yet")
	}
	return nil
}
