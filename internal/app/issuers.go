package app

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// issuerServices returns the issuers of a gateway as auth services. An issuer with which users sign
// in has a second service for its ID tokens. These tokens are for this program and no other
// audience.
func issuerServices(cfg *config.Config) (list []toolboxfile.AuthService) {
	for _, i := range cfg.Gateway.Issuers {
		list = append(list, toolboxfile.AuthService{
			Name: i.Name, Issuer: i.URL, Audience: i.Audience, Scopes: i.Scopes, Introspection: i.Introspection, Fingerprint: i.Fingerprint, Pos: i.Pos,
		})
		if i.ClientID != "" {
			secret := sha256.Sum256([]byte(i.ClientSecret))
			list = append(list, toolboxfile.AuthService{
				Name: signInName(i.Name), Issuer: i.URL, Audience: []string{i.ClientID}, Fingerprint: fmt.Sprintf("%q %q %x", i.URL, i.ClientID, secret), Pos: i.Pos,
			})
		}
	}
	return list
}

// signInName returns the name of the service for the ID tokens of an issuer. No issuer has a
// name with a blank.
func signInName(issuer string) string { return issuer + " sign-in" }

// signInClients returns the clients of the services with which users sign in, by name.
func signInClients(cfg *config.Config) map[string]*oidc.SignInClient {
	clients := map[string]*oidc.SignInClient{}
	for _, i := range cfg.Gateway.Issuers {
		clients[signInName(i.Name)] = &oidc.SignInClient{ID: i.ClientID, Secret: string(i.ClientSecret)}
	}
	return clients
}

// AuthorizationURL implements auth.BrowserSignIn.
func (v issuerVerifier) AuthorizationURL(ctx context.Context, a auth.SignInAttempt) (string, error) {
	target, err := v.Service.AuthorizationURL(ctx, oidc.Authorization(a))
	v.services.logVerify(v.authService, err)
	return target, err
}

// ExchangeCode implements auth.BrowserSignIn.
func (v issuerVerifier) ExchangeCode(ctx context.Context, a auth.SignInAttempt, code, answered string) (string, error) {
	token, err := v.Service.ExchangeCode(ctx, oidc.Authorization(a), code, answered)
	v.services.logVerify(v.authService, err)
	return token, err
}

// browserSignIn returns how users sign in with an issuer, nil if they cannot.
func (a *App) browserSignIn(ch *configChange, issuer string) auth.BrowserSignIn {
	service, ok := ch.issuers[signInName(issuer)]
	if !ok {
		return nil
	}
	return issuerVerifier{service, &a.issuers}
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
			Rules: a.claimRules(i.Roles), Verifier: issuerVerifier{service, &a.issuers}, SignIn: a.browserSignIn(ch, i.Name),
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
