// Package oidc owns who vouches for a token: services that say which claims a
// token carries and whether to believe them.
//
//	s, err := authn.New(authn.Config{Name: "my-auth", Issuer: "https://id.example.com", Audience: []string{"orders"}})
//	claims, err := s.Verify(ctx, token)
//
// A Service is an OpenID Connect issuer, found by its discovery document at the
// first token, and again every few minutes, with its keys; and, for tokens that
// are no JWTs, its introspection endpoint (RFC 7662). What cannot be verified is
// refused: an issuer that does not answer verifies nothing. The package gives no
// permission: what claims are good for others decide.
package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/internal/strictjson"
)

// Config describes a service. Name, Issuer and Audience are needed.
type Config struct {
	Name     string
	Issuer   string   // its URL, which the claim iss has to be
	Audience []string // the claim aud has to hold one of them
	Scopes   []string // the claim scope has to hold all of them

	Introspection *Introspection // nil: only JWTs are taken

	Client *http.Client     // nil is one with a time limit of 10 s
	Now    func() time.Time // nil is time.Now
}

// Introspection says how to ask the issuer about tokens that are no JWTs.
type Introspection struct {
	Endpoint  string // "" is the one that discovery names
	Method    string // POST or GET; "" is POST
	Parameter string // that carries the token; "" is token
	Always    bool   // JWTs are asked about too
}

// Claims is what a verified token says: a JSON object, numbers as they were
// written.
type Claims json.RawMessage

// Field gives one claim; false when the token has none of this name.
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

// Scopes gives the words of the claim scope, or the entries of scp or scope
// where an issuer lists them.
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

// limits of what is taken from outside, and of patience.
const (
	maxToken = 16 << 10 // bytes
	skew     = 30 * time.Second
	patience = 10 * time.Second // for one answer of the issuer
)

// Service verifies the tokens of one issuer. Safe for concurrent use.
type Service struct {
	config Config
	client *http.Client

	sem     chan struct{} // holds a token while discovery is under way, or somebody looks; guards what follows
	found   *issuer       // nil until it was
	failed  error         // the last discovery, while found is nil
	pause   backoff.Backoff
	retryAt time.Time // no discovery before
}

// New makes a service. It asks nobody: an issuer that cannot be reached now may
// be later. Errors: InvalidConfig.
func New(c Config) (*Service, error) {
	switch {
	case c.Name == "" || c.Issuer == "":
		return nil, errcode.New(errcode.InvalidConfig, "auth service %q needs a name and the URL of its issuer", c.Name)
	case len(c.Audience) == 0 || slices.Contains(c.Audience, ""):
		return nil, errcode.New(errcode.InvalidConfig, "auth service %q needs an audience: tokens for others would pass without", c.Name)
	}
	if err := c.Introspection.check(c.Name); err != nil {
		return nil, err
	}
	if c.Client == nil {
		c.Client = &http.Client{Timeout: patience}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Service{config: c, client: bounded(c.Client, c.Now), sem: make(chan struct{}, 1)}, nil
}

// Name gives the service's name.
func (s *Service) Name() string { return s.config.Name }

// Verify gives the claims of a token that the service vouches for: signed by
// one of the issuer's keys, or active by its introspection; of this issuer, for
// one of the audiences, not expired, and valid already, within half a minute.
//
// Errors: Unauthenticated for any other token, and ToolUnavailable when the
// issuer could not be asked, ctx's. None holds any of the token.
func (s *Service) Verify(ctx context.Context, token string) (Claims, error) {
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7F }) {
		return nil, s.refuse("it is no token")
	}
	claims, err := s.read(ctx, token)
	if err != nil {
		return nil, err
	}
	if err := strictjson.Object(claims, nil); err != nil {
		return nil, s.refuse("its claims are no JSON object that is safe to read")
	}
	have := claims.Scopes()
	for _, scope := range s.config.Scopes {
		if !slices.Contains(have, scope) {
			return nil, s.refuse("it lacks the scope " + scope)
		}
	}
	return claims, nil
}

func (s *Service) read(ctx context.Context, token string) (Claims, error) {
	found, err := s.discover(ctx)
	if err != nil {
		return nil, err
	}
	isJWT := strings.Count(token, ".") == 2
	switch in := s.config.Introspection; {
	case in != nil && (in.Always || !isJWT):
		return s.introspect(ctx, found, token)
	case !isJWT:
		return nil, s.refuse("it is no JWT")
	}
	return s.verifyJWT(ctx, found, token)
}

// oidcFetchKeysPrefix is how package oidc says that it has not got the keys to verify with.
const oidcFetchKeysPrefix = "failed to verify signature: fetching keys"

// verifyJWT verifies a JWT.
func (s *Service) verifyJWT(ctx context.Context, by issuer, token string) (Claims, error) {
	verifier := gooidc.NewVerifier(by.Issuer, by.keys, &gooidc.Config{
		SkipClientIDCheck:    true, // there may be several, see below
		SupportedSigningAlgs: by.algorithms(),
		Now:                  func() time.Time { return s.config.Now().Add(-skew) },
	})
	verified, err := verifier.Verify(ctx, token)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if strings.HasPrefix(err.Error(), oidcFetchKeysPrefix) {
			return nil, errcode.Wrap(errcode.ToolUnavailable, err, "auth service %s: its issuer's keys cannot be had now; try again later", s.config.Name)
		}
		return nil, s.refuse(describeOIDCError(err))
	}
	var claims json.RawMessage
	if err := verified.Claims(&claims); err != nil {
		return nil, s.refuse("its claims cannot be read")
	}
	return s.checkClaims(verified.Issuer, Claims(claims))
}

// describeOIDCError words why package oidc refuses a JWT: its own words may repeat a part of
// it. Nothing is decided by them.
func describeOIDCError(err error) string {
	if _, expired := errors.AsType[*gooidc.TokenExpiredError](err); expired {
		return "it has expired, or does not say when"
	}
	for _, is := range []struct{ said, word string }{
		{"issued by a different provider", "it is of another issuer"},
		{"(not before) time", "it is not valid yet"},
		{"failed to verify signature", "no key of its issuer's verifies its signature"},
		{"unexpected signature algorithm", "its issuer does not sign so"},
	} {
		if strings.Contains(err.Error(), is.said) {
			return is.word
		}
	}
	return "it is no JWT that can be read"
}

// checkClaims holds claims against the configuration by their exact names: package
// oidc takes Aud and AUD for aud, and users of some issuers choose claims.
func (s *Service) checkClaims(issuer string, c Claims) (Claims, error) {
	if iss, _ := c.Field("iss"); gjson.ParseBytes(iss).Str != issuer {
		return nil, s.refuse("it is of another issuer")
	}
	if !slices.ContainsFunc(audiences(c), s.matchesAudience) {
		return nil, s.refuse("it is for another audience")
	}
	return c, s.checkTimes(c)
}

func (s *Service) matchesAudience(audience string) bool {
	return slices.Contains(s.config.Audience, audience)
}

// checkTimes holds exp and nbf against the clock: exp has to be there.
func (s *Service) checkTimes(c Claims) error {
	exp, ok := c.Field("exp")
	now := float64(s.config.Now().Unix())
	if !ok || gjson.ParseBytes(exp).Type != gjson.Number || gjson.ParseBytes(exp).Num+skew.Seconds() <= now {
		return s.refuse("it has expired, or does not say when")
	}
	if nbf, ok := c.Field("nbf"); ok && (gjson.ParseBytes(nbf).Type != gjson.Number || gjson.ParseBytes(nbf).Num-skew.Seconds() > now) {
		return s.refuse("it is not valid yet")
	}
	return nil
}

func (s *Service) refuse(why string) error {
	return errcode.New(errcode.Unauthenticated, "verify a token with auth service %s: %s; get a new one from its issuer", s.config.Name, why)
}
