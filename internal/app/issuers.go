package app

import (
	"context"
	"encoding/json"
	"net/netip"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// issuerServices returns the issuers of a gateway as auth services.
func issuerServices(cfg *config.Config) (list []toolboxfile.AuthService) {
	for _, i := range cfg.Gateway.Issuers {
		list = append(list, toolboxfile.AuthService{
			Name: i.Name, Issuer: i.URL, Audience: i.Audience, Scopes: i.Scopes, Introspection: i.Introspection, Fingerprint: i.Fingerprint, Pos: i.Pos,
		})
	}
	return list
}

// issuerVerifier implements auth.TokenVerifier.
type issuerVerifier struct {
	authService
	services *authServices
}

// VerifyToken implements auth.TokenVerifier.
func (v issuerVerifier) VerifyToken(ctx context.Context, token string) (json.RawMessage, error) {
	claims, err := v.Verify(ctx, token)
	v.services.logVerify(v.authService, err)
	return json.RawMessage(claims), err
}

// gatewayIssuers returns the issuers of an installed configuration. Like tokens, their rules are
// bound to the ids of the roles that the configuration created.
func (a *App) gatewayIssuers(ch *configChange) (list []auth.Issuer) {
	for _, i := range ch.cfg.Gateway.Issuers {
		service, ok := ch.issuers[i.Name]
		if !ok {
			continue
		}
		list = append(list, auth.Issuer{
			Name: i.Name, URL: i.URL, User: i.User, Scopes: i.Scopes, Opaque: i.Introspection != nil,
			Rules: a.claimRules(i.Roles), Verifier: issuerVerifier{service, &a.issuers},
		})
	}
	return list
}

// claimRules binds the rules of an issuer to roles.
func (a *App) claimRules(rules []config.ClaimRule) (list []auth.ClaimRule) {
	for _, r := range rules {
		rule := auth.ClaimRule{Claim: r.Claim, Value: r.Value, Scope: auth.ScopeOperator}
		if !r.Operator {
			role, _ := a.Runtime.Org().ConfiguredRole(r.Role)
			rule.Scope, rule.Role = auth.ScopeRole, role.ID
		}
		list = append(list, rule)
	}
	return list
}

// trustedProxies returns the proxies that say for whom they send.
func (a *App) trustedProxies() []netip.Prefix { return a.limits.connectionLimits().TrustedProxies }
