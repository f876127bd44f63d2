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

// TokenVerifier verifies tokens with auth services. It must be safe for concurrent use.
type TokenVerifier interface {
	// VerifyToken verifies a token with the named service and returns what it contains.
	// The error has the code unauthenticated for an invalid token and for an unknown
	// service. It has the code tool_unavailable if the service cannot be reached.
	VerifyToken(ctx context.Context, service, token string) (VerifiedToken, error)
}

// VerifiedToken is the content of a token that an auth service has verified.
type VerifiedToken struct {
	Claims json.RawMessage // a JSON object
	Scopes []string

	// StillValid reports whether the service that verified the token is still
	// configured. If it returns false when the call is about to start, the call is
	// decided again. A nil StillValid stands for a service that is never removed.
	StillValid func() bool
}

// authenticate rejects a caller without a valid token of an auth service that the
// tool requires. It verifies the tokens again whenever a call is decided again.
func (g *Gate) authenticate(ctx context.Context, a *Admission) error {
	need := a.handle.Definition.Auth
	if need == nil {
		return nil
	}
	sent := tool.CredentialsOf(ctx)
	v := tokenVerifier{authn: g.config.Authn, tokens: sent.Tokens, name: a.Request.Name, verified: map[string]*VerifiedToken{}}
	if err := v.check(ctx, need); err != nil {
		return err
	}
	a.claims, a.claimChecks = v.claims()
	if need.SecureArgs {
		a.secure = sent.Secure
	}
	return nil
}

// tokenVerifier verifies the tokens of one call, each at most once.
type tokenVerifier struct {
	authn       TokenVerifier             // nil rejects all tokens
	tokens      map[string]string         // sent by the caller, by service
	name        string                    // of the tool
	verified    map[string]*VerifiedToken // by service, of the services asked so far; nil if the token is not valid
	unreachable bool                      // at least one service could not be reached
}

// check returns an error for the first unmet requirement, nil if the caller meets
// all. It verifies the token of every service that the tool names. So the tool gets
// all claims of the caller.
func (v *tokenVerifier) check(ctx context.Context, need *tool.Auth) error {
	if len(need.AnyOf) > 0 && !v.verifyAny(ctx, need.AnyOf) {
		return v.denial("%s: the caller has no valid token for any of %s: send one %s", v.name, strings.Join(need.AnyOf, ", "), headersText(need.AnyOf))
	}
	if err := v.checkScopes(ctx, need); err != nil {
		return err
	}
	for _, parameter := range slices.Sorted(maps.Keys(need.Parameters)) {
		services := need.Parameters[parameter]
		if !v.verifyAny(ctx, services) {
			return v.denial("%s: error parsing authenticated parameter %q: missing or invalid authentication header: send a valid token %s", v.name, parameter, headersText(services)).With("parameter", parameter)
		}
	}
	return nil
}

// checkScopes checks that the token of the service need.ScopesOf has all scopes that the
// tool requires.
func (v *tokenVerifier) checkScopes(ctx context.Context, need *tool.Auth) error {
	if len(need.Scopes) == 0 {
		return nil
	}
	verified := v.verify(ctx, need.ScopesOf)
	if verified == nil {
		return v.denial("%s: the caller has no valid token with the scopes %s: send one %s", v.name, strings.Join(need.Scopes, ", "), headersText([]string{need.ScopesOf}))
	}
	for _, scope := range need.Scopes {
		if !slices.Contains(verified.Scopes, scope) {
			return errcode.New(errcode.InsufficientPermissions, "%s: the caller's token lacks the scope %s", v.name, scope)
		}
	}
	return nil
}

// headersText returns the part of an error text that names the request headers for the
// tokens of services.
func headersText(services []string) string {
	return "in the header " + strings.Join(services, "_token or ") + "_token"
}

// verifyAny verifies the tokens of all services. It reports whether one is valid.
func (v *tokenVerifier) verifyAny(ctx context.Context, services []string) bool {
	valid := false
	for _, service := range services {
		if v.verify(ctx, service) != nil {
			valid = true
		}
	}
	return valid
}

// verify verifies the token of a service, unless it has done so before. It returns
// nil if there is no valid token.
func (v *tokenVerifier) verify(ctx context.Context, service string) *VerifiedToken {
	if known, asked := v.verified[service]; asked {
		return known
	}
	v.verified[service] = nil
	token, sent := v.tokens[service]
	if !sent || service == "" || v.authn == nil {
		return nil
	}
	verified, err := v.authn.VerifyToken(ctx, service, token)
	if err != nil {
		v.unreachable = v.unreachable || errcode.CodeOf(err) == errcode.ToolUnavailable
		return nil
	}
	v.verified[service] = &verified
	return &verified
}

// denial returns the error of an unmet requirement. If a service was unreachable,
// the error says that a later call may succeed.
func (v *tokenVerifier) denial(format string, args ...any) *errcode.Error {
	code := errcode.Unauthenticated
	if v.unreachable {
		code, format = errcode.ToolUnavailable, format+" (an auth service is unreachable; try again later)"
	}
	return errcode.New(code, format, args...)
}

// claims returns the verified claims by service, and the functions that report
// whether these services are still configured.
func (v *tokenVerifier) claims() (claims map[string]json.RawMessage, checks []func() bool) {
	claims = map[string]json.RawMessage{}
	for service, verified := range v.verified {
		if verified == nil {
			continue
		}
		claims[service] = verified.Claims
		if verified.StillValid != nil {
			checks = append(checks, verified.StillValid)
		}
	}
	return claims, checks
}

// claimsCurrent reports whether all services that verified the caller's tokens are
// still configured.
func (a *Admission) claimsCurrent() bool {
	return !slices.ContainsFunc(a.claimChecks, func(valid func() bool) bool { return !valid() })
}
