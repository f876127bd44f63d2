package config

import (
	"net/url"
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/org/hosts"
)

// The grants of a ServerOAuth.
const (
	GrantAuthorizationCode = "authorizationCode" // a person logs in
	GrantClientCredentials = "clientCredentials" // without a person
)

// ServerOAuth is how connections to an MCP server are authorized with OAuth.
type ServerOAuth struct {
	Grant             string // GrantAuthorizationCode by default
	ClientID          string // "" is a client that is registered with each login
	ClientSecret      yamldoc.Secret
	ClientKey         yamldoc.Secret `json:",omitzero"` // in place of ClientSecret: a private key in PEM
	ClientKeyID       string         `json:",omitzero"`
	ClientMetadataURL string         // https
	Scopes            []string
	Issuer            string // "" is the issuer of the operator's first login
	Audience          string
}

// oauthField reads how connections to a server are authorized.
func oauthField(to **ServerOAuth) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		o := &ServerOAuth{Grant: GrantAuthorizationCode}
		before := v.ErrorCount()
		yamldoc.MappingField(yamldoc.Fields{
			"grant":             yamldoc.OneOfField(&o.Grant, GrantAuthorizationCode, GrantClientCredentials),
			"clientId":          yamldoc.NonEmptyField(&o.ClientID),
			"clientSecret":      yamldoc.RequiredSecret(&o.ClientSecret),
			"clientKey":         yamldoc.SecretText(&o.ClientKey),
			"clientKeyId":       yamldoc.NonEmptyField(&o.ClientKeyID),
			"clientMetadataUrl": clientMetadataField(&o.ClientMetadataURL),
			"scopes":            yamldoc.NameList(&o.Scopes, "scopes"),
			"issuer":            issuerURLField(&o.Issuer),
			"audience":          yamldoc.NonEmptyField(&o.Audience),
		})(v)
		if v.ErrorCount() == before {
			o.check(v)
		}
		*to = o
	}
}

// check rejects credentials that could be sent to any issuer that a server names.
func (o *ServerOAuth) check(v yamldoc.Value) {
	machine := o.Grant == GrantClientCredentials
	switch {
	case o.ClientKey != "" && (!machine || o.ClientSecret != ""):
		v.AddRedactedError("can have clientKey with the grant clientCredentials only, in place of clientSecret", "")
	case machine && (o.ClientID == "" || o.ClientSecret == "" && o.ClientKey == ""):
		v.AddRedactedError("needs clientId and one of clientSecret and clientKey for the grant clientCredentials", "")
	case o.ClientKey != "" && o.Issuer == "":
		v.AddRedactedError("needs the issuer that its clientKey is for", "")
	case o.ClientSecret != "" && o.ClientID == "":
		v.AddRedactedError("needs clientId for its clientSecret", "")
	case o.ClientSecret != "" && o.Issuer == "":
		v.AddRedactedError("needs the issuer that its clientSecret is for", "without it, the secret could be sent to any issuer that the server names")
	case machine && o.ClientMetadataURL != "":
		v.AddRedactedError("cannot have clientMetadataUrl with the grant clientCredentials", "")
	}
}

// clientMetadataField reads the URL of a client id metadata document.
func clientMetadataField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		before := v.ErrorCount()
		yamldoc.ServerURL(to)(v)
		if v.ErrorCount() > before {
			return
		}
		if u, err := url.Parse(*to); err != nil || u.Scheme != "https" || u.Path == "" || u.Path == "/" {
			v.AddError("must begin with https:// and have a path", "for example https://example.com/rolecall.json")
		}
	}
}

// TokenExchange says how persons get tokens without a login: the token with which each has
// authenticated at the gateway is exchanged.
type TokenExchange struct {
	Issuer   string // name of the gateway's issuer whose tokens are exchanged; "" is the one with the URL of ServerOAuth.Issuer
	TokenURL string // of the endpoint; "" is the endpoint that the issuer of ServerOAuth names
}

// exchangeField reads how the tokens of persons are exchanged.
func exchangeField(to **TokenExchange) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		*to = new(TokenExchange)
		yamldoc.MappingField(yamldoc.Fields{
			"issuer":   yamldoc.NonEmptyField(&(*to).Issuer),
			"tokenUrl": tokenURLField(&(*to).TokenURL),
		})(v)
	}
}

// tokenURLField reads the URL of an endpoint to which secrets are sent.
func tokenURLField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		before := v.ErrorCount()
		yamldoc.ServerURL(to)(v)
		if u, err := url.Parse(*to); v.ErrorCount() == before && (err != nil || u.Scheme != "https" && !hosts.IsLoopback(u.Hostname())) {
			v.AddError("must begin with https://", "http is accepted for an endpoint on this machine only")
		}
	}
}

// checkExchange rejects an exchange that cannot succeed.
func (s *MCPServer) checkExchange(it item) {
	if s.Exchange == nil {
		return
	}
	credentials, _ := it.FindField("credentials")
	switch {
	case s.OAuth == nil || !s.PerCaller:
		credentials.AddError("needs per: caller and auth.oauth for its exchange", "")
		return
	case s.OAuth.Issuer == "" || s.OAuth.ClientID == "" || s.OAuth.ClientSecret == "" && s.OAuth.ClientKey == "":
		credentials.AddError("needs auth.oauth with issuer, clientId and one of clientSecret and clientKey for its exchange", "the issuer exchanges tokens for a client that it knows")
		return
	}
	it.r.deferCheck(func(models) {
		if it.r.config.Gateway.FindExchanged(*s) == nil {
			credentials.AddError("has an exchange of the tokens of an issuer that the gateway does not have", "name an issuer of the gateway's auth in exchange.issuer")
		}
	})
}

// FindExchanged returns the issuer of the gateway whose tokens are exchanged for tokens of a server;
// nil if there is none.
func (g Gateway) FindExchanged(s MCPServer) *Issuer {
	if s.Exchange == nil || s.OAuth == nil {
		return nil
	}
	for i, issuer := range g.Issuers {
		same := strings.TrimSuffix(issuer.URL, "/") == strings.TrimSuffix(s.OAuth.Issuer, "/")
		if s.Exchange.Issuer == issuer.Name || s.Exchange.Issuer == "" && same {
			return &g.Issuers[i]
		}
	}
	return nil
}

// perCallerField reads that each caller has credentials of its own.
func perCallerField(to *bool) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		per := ""
		yamldoc.OneOfField(&per, "caller")(v)
		*to = per != ""
	}
}

// checkOAuth rejects what cannot be combined with the login of a server.
func (s *MCPServer) checkOAuth(it item) {
	auth, _ := it.FindField("auth")
	credentials, _ := it.FindField("credentials")
	u, err := url.Parse(s.URL)
	insecure := err != nil || u.Scheme != "https" && !hosts.IsLoopback(u.Hostname())
	_, header := s.Headers["Authorization"]
	switch {
	case s.OAuth == nil && s.PerCaller:
		credentials.AddError("needs auth.oauth", "each person logs in to the server")
	case s.OAuth == nil:
	case it.hasInner("auth", "bearer"):
		auth.AddRedactedError("cannot have both bearer and oauth", "leave one out")
	case header:
		auth.AddRedactedError("cannot be combined with the header Authorization", "leave one out")
	case insecure && s.URL != "":
		auth.AddRedactedError("needs an url with https, because oauth sends tokens there", "http is accepted for a server on this machine only")
	case s.PerCaller && s.Exchange == nil && s.OAuth.Grant == GrantClientCredentials:
		credentials.AddError("cannot be per caller with the grant clientCredentials", "these credentials are of this program; with exchange, each caller's token is exchanged")
	}
	s.checkExchange(it)
}

// hasInner reports whether the mapping in a field has another field.
func (it item) hasInner(field, inner string) bool {
	v, ok := it.FindField(field)
	if !ok || !v.IsMapping() {
		return false
	}
	_, ok = v.FindField(inner)
	return ok
}
