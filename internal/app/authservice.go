package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/internal/clock"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// authServices holds the active auth services by name. The zero value accepts no
// token. It is safe for concurrent use.
type authServices struct {
	active atomic.Pointer[map[string]authService]
	kind   string         // what the log calls a service
	log    *slog.Logger   // nil discards
	expiry *clock.Forward // of all services, also after a reload; nil is one of each
}

// authService is an auth service with the fingerprint of its declaration.
type authService struct {
	*oidc.Service
	fingerprint string
	unreachable *atomic.Bool // whether the last request to its issuer failed
}

// VerifyToken implements gate.TokenVerifier. The verification stays valid as long as the same
// service is active.
func (s *authServices) VerifyToken(ctx context.Context, name, token string) (gate.VerifiedToken, error) {
	found, ok := s.byName()[name]
	if !ok {
		return gate.VerifiedToken{}, errcode.New(errcode.Unauthenticated, "verify a token: there is no auth service %q", name)
	}
	claims, err := found.Service.Verify(ctx, token)
	s.logVerify(found, err)
	if err != nil {
		return gate.VerifiedToken{}, err
	}
	active := func() bool { return s.byName()[name].Service == found.Service }
	return gate.VerifiedToken{Claims: json.RawMessage(claims), Scopes: claims.Scopes(), StillValid: active}, nil
}

// logVerify logs why a token was rejected, which its bearer is not told, and once that
// an issuer is unreachable. The errors of oidc contain no part of a token.
func (s *authServices) logVerify(of authService, err error) {
	log := s.log
	if log == nil {
		return
	}
	log = log.With(s.kind, of.Name())
	switch {
	case err == nil:
		if of.unreachable.Swap(false) {
			log.Info("issuer reachable again")
		}
	case errcode.CodeOf(err) == errcode.Unauthenticated:
		log.Debug("token rejected", "reason", errcode.Message(err))
	case errcode.CodeOf(err) == errcode.ToolUnavailable && !of.unreachable.Swap(true):
		log.Warn("issuer unreachable; its tokens cannot be verified", "error", errorReason(err))
	}
}

func (s *authServices) byName() map[string]authService {
	if now := s.active.Load(); now != nil {
		return *now
	}
	return nil
}

// prepare constructs services that a configuration declares, without activating them. clients
// has those with which users sign in, by the name of the service. A
// service whose declaration has not changed is reused, with its cached keys.
func (s *authServices) prepare(cfg *config.Config, declared []toolboxfile.AuthService, clients map[string]*oidc.SignInClient) (next map[string]authService, faults []*yamldoc.Error) {
	next, now := map[string]authService{}, s.byName()
	for _, a := range declared {
		if old, ok := now[a.Name]; ok && old.fingerprint == a.Fingerprint {
			next[a.Name] = old
			continue
		}
		if a.Issuer == "" || len(a.Audience) == 0 || slices.Contains(a.Audience, "") {
			continue // loading has reported it
		}
		made, err := oidc.New(oidc.Config{
			Name: a.Name, Issuer: a.Issuer, Audience: a.Audience, Scopes: a.Scopes,
			Introspection: introspection(a.Introspection), Expiry: s.expiry, SignIn: clients[a.Name],
		})
		if err != nil {
			faults = append(faults, cfg.ErrorAt(a.Pos, s.kind, faultText(err), ""))
			continue
		}
		next[a.Name] = authService{made, a.Fingerprint, new(atomic.Bool)}
	}
	return next, faults
}

func introspection(i *toolboxfile.Introspection) *oidc.Introspection {
	if i == nil {
		return nil
	}
	return &oidc.Introspection{Endpoint: i.Endpoint, Method: i.Method, Parameter: i.Parameter, Always: i.Always}
}

// intersect deactivates the services that next does not contain unchanged.
func (s *authServices) intersect(next map[string]authService) {
	both := map[string]authService{}
	for name, one := range s.byName() {
		if next[name].Service == one.Service {
			both[name] = one
		}
	}
	s.active.Store(&both)
}

// replace activates next and deactivates all other services.
func (s *authServices) replace(next map[string]authService) { s.active.Store(&next) }

// scopeService returns the name of the auth service whose tokens carry OAuth scopes;
// "" if there is none.
func scopeService(cfg *config.Config) string {
	for _, a := range cfg.AuthServices {
		if a.MCPEnabled {
			return a.Name
		}
	}
	return ""
}
