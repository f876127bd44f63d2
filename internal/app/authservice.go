package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/internal/oidc"
)

// services are the auth services in force, by name. The zero services vouch
// for nobody. Safe for concurrent use.
type services struct {
	now atomic.Pointer[map[string]service]
	log *slog.Logger // nil: nothing is told
}

// service is an auth service, and what it was made of.
type service struct {
	*oidc.Service
	print       string
	unreachable *atomic.Bool // its issuer could not be asked last
}

// Verify implements gate.Authn.
func (s *services) Verify(ctx context.Context, name, token string) (gate.Verified, error) {
	found, ok := s.all()[name]
	if !ok {
		return gate.Verified{}, errcode.New(errcode.Unauthenticated, "verify a token: there is no auth service %q", name)
	}
	claims, err := found.Service.Verify(ctx, token)
	s.logVerify(found, err)
	if err != nil {
		return gate.Verified{}, err
	}
	inForce := func() bool { return s.all()[name].Service == found.Service }
	return gate.Verified{Claims: json.RawMessage(claims), Scopes: claims.Scopes(), StillValid: inForce}, nil
}

// logVerify logs why a token is refused, which its bearer is not told, and once that
// an issuer is away. What authn says of a token holds nothing of it.
func (s *services) logVerify(of service, err error) {
	log := s.log
	if log == nil {
		return
	}
	log = log.With("authService", of.Name())
	switch {
	case err == nil:
		if of.unreachable.Swap(false) {
			log.Info("an issuer can be asked again")
		}
	case errcode.Of(err) == errcode.Unauthenticated:
		log.Debug("a token is refused", "reason", errcode.Message(err))
	case errcode.Of(err) == errcode.ToolUnavailable && !of.unreachable.Swap(true):
		log.Warn("an issuer cannot be asked; calls with its tokens try again", "error", reasonOf(err))
	}
}

func (s *services) all() map[string]service {
	if now := s.now.Load(); now != nil {
		return *now
	}
	return nil
}

// prepare makes the services of a configuration. Those that are declared as
// they are now stay the same, with their issuers' keys.
func (s *services) prepare(cfg *config.Config) (next map[string]service, faults []*config.Error) {
	next, now := map[string]service{}, s.all()
	for _, a := range cfg.AuthServices {
		if old, ok := now[a.Name]; ok && old.print == a.Fingerprint {
			next[a.Name] = old
			continue
		}
		if a.Issuer == "" || len(a.Audience) == 0 || slices.Contains(a.Audience, "") {
			continue // it was refused where it was read, and vouches for nobody
		}
		made, err := oidc.New(oidc.Config{
			Name: a.Name, Issuer: a.Issuer, Audience: a.Audience, Scopes: a.Scopes,
			Introspection: introspection(a.Introspection),
		})
		if err != nil {
			faults = append(faults, cfg.Fault(a.Pos, "authService", errcode.Message(err), ""))
			continue
		}
		next[a.Name] = service{made, a.Fingerprint, new(atomic.Bool)}
	}
	return next, faults
}

func introspection(i *config.Introspection) *oidc.Introspection {
	if i == nil {
		return nil
	}
	return &oidc.Introspection{Endpoint: i.Endpoint, Method: i.Method, Parameter: i.Parameter, Always: i.Always}
}

// narrow leaves those services in force that are next's too.
func (s *services) narrow(next map[string]service) {
	both := map[string]service{}
	for name, one := range s.all() {
		if next[name].Service == one.Service {
			both[name] = one
		}
	}
	s.now.Store(&both)
}

// replace puts next in force.
func (s *services) replace(next map[string]service) { s.now.Store(&next) }

// scopesOf names the auth service whose tokens carry scopes; "" is none.
func scopesOf(cfg *config.Config) string {
	for _, a := range cfg.AuthServices {
		if a.MCPEnabled {
			return a.Name
		}
	}
	return ""
}
