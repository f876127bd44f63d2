package gate

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// Authn asks auth services about tokens. Safe for concurrent use.
type Authn interface {
	// Verify gives what the token says that the service vouches for. The error
	// is unauthenticated for any other token and for a service there is not,
	// tool_unavailable when the service could not be asked.
	Verify(ctx context.Context, service, token string) (Verified, error)
}

// Verified is what a token says.
type Verified struct {
	Claims json.RawMessage // a JSON object
	Scopes []string

	// StillValid says whether the service is still there that verified the token. A
	// call for which it does not say so when it starts is decided anew. nil: it
	// never goes.
	StillValid func() bool
}

// authenticate refuses a caller for whom nobody vouches whom the tool asks. It
// goes by what the caller showed now: every try of a call is asked about anew.
func (g *Gate) authenticate(ctx context.Context, a *Admission) error {
	need := a.handle.Definition.Auth
	if need == nil {
		return nil
	}
	shown := tool.CredentialsOf(ctx)
	w := tokenVerifier{authn: g.config.Authn, tokens: shown.Tokens, name: a.Request.Name, verified: map[string]*Verified{}}
	if err := w.check(ctx, need); err != nil {
		return err
	}
	a.claims, a.claimChecks = w.claims()
	if need.SecureArgs {
		a.secure = shown.Secure
	}
	return nil
}

// tokenVerifier are the services that vouch for the caller of one call.
type tokenVerifier struct {
	authn       Authn
	tokens      map[string]string
	name        string               // of the tool
	verified    map[string]*Verified // of those that were asked; nil if they do not vouch
	unreachable bool                 // one could not be asked
}

// check says what is lacking; nil if nothing is. It asks every service that the
// tool names.
func (w *tokenVerifier) check(ctx context.Context, need *tool.Auth) error {
	if len(need.AnyOf) > 0 && !w.anyOf(ctx, need.AnyOf) {
		return w.denial("%s: no auth service of %s vouches for the caller: send a valid token of one of them %s", w.name, strings.Join(need.AnyOf, ", "), headers(need.AnyOf))
	}
	if err := w.scopes(ctx, need); err != nil {
		return err
	}
	for _, parameter := range slices.Sorted(maps.Keys(need.Parameters)) {
		services := need.Parameters[parameter]
		if !w.anyOf(ctx, services) {
			return w.denial("%s: error parsing authenticated parameter %q: missing or invalid authentication header: send a valid token %s", w.name, parameter, headers(services)).With("parameter", parameter)
		}
	}
	return nil
}

func (w *tokenVerifier) scopes(ctx context.Context, need *tool.Auth) error {
	if len(need.Scopes) == 0 {
		return nil
	}
	v := w.verify(ctx, need.ScopesOf)
	if v == nil {
		return w.denial("%s: the caller's token has to carry the scopes %s, and there is no valid one: send it %s", w.name, strings.Join(need.Scopes, ", "), headers([]string{need.ScopesOf}))
	}
	for _, scope := range need.Scopes {
		if !slices.Contains(v.Scopes, scope) {
			return errcode.New(errcode.InsufficientPermissions, "%s: the caller's token lacks the scope %s", w.name, scope)
		}
	}
	return nil
}

// headers says in which header of a request a token of a service goes.
func headers(services []string) string {
	return "in the header " + strings.Join(services, "_token or ") + "_token"
}

// anyOf asks all of several services whether they vouch.
func (w *tokenVerifier) anyOf(ctx context.Context, services []string) (yes bool) {
	for _, service := range services {
		if w.verify(ctx, service) != nil {
			yes = true
		}
	}
	return yes
}

// verify asks a service, once; nil if it does not vouch.
func (w *tokenVerifier) verify(ctx context.Context, service string) *Verified {
	if v, asked := w.verified[service]; asked {
		return v
	}
	w.verified[service] = nil
	token, shown := w.tokens[service]
	if !shown || service == "" || w.authn == nil {
		return nil
	}
	v, err := w.authn.Verify(ctx, service, token)
	if err != nil {
		w.unreachable = w.unreachable || errcode.Of(err) == errcode.ToolUnavailable
		return nil
	}
	w.verified[service] = &v
	return &v
}

// denial words a refusal; where a service could not be asked, a later call may
// go better.
func (w *tokenVerifier) denial(format string, args ...any) *errcode.Error {
	code := errcode.Unauthenticated
	if w.unreachable {
		code, format = errcode.ToolUnavailable, format+" (a service could not be asked now; try again later)"
	}
	return errcode.New(code, format, args...)
}

// claims gives what was verified, by service, and who says whether it still is.
func (w *tokenVerifier) claims() (all map[string]json.RawMessage, vouchers []func() bool) {
	all = map[string]json.RawMessage{}
	for service, v := range w.verified {
		if v == nil {
			continue
		}
		all[service] = v.Claims
		if v.StillValid != nil {
			vouchers = append(vouchers, v.StillValid)
		}
	}
	return all, vouchers
}

// claimsCurrent says whether every service that vouched for the caller is still in
// force.
func (a *Admission) claimsCurrent() bool {
	return !slices.ContainsFunc(a.claimChecks, func(inForce func() bool) bool { return !inForce() })
}
