package mcpauth

import (
	"context"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// tokenEndpoint is where tokens for the server are requested without a browser.
type tokenEndpoint struct {
	url      string
	issuer   string
	resource string   // identifier of the server
	scopes   []string // that the server names
	methods  []string // with which clients authenticate; none is not known
}

// findTokenEndpoint returns the endpoint for a proof. It is the configured endpoint for an
// exchange, or the endpoint of the issuer. The server has to name this issuer.
func (s *Server) findTokenEndpoint(ctx context.Context, client *http.Client, challenge []oauthex.Challenge, p proof) (tokenEndpoint, error) {
	if x := s.config.Exchange; p.secret != "" && x.TokenURL != "" {
		return tokenEndpoint{url: x.TokenURL, issuer: s.config.Issuer, resource: s.config.URL}, nil
	}
	d, err := s.discover(ctx, client, challenge, s.config.Issuer)
	if err != nil {
		return tokenEndpoint{}, err
	}
	return tokenEndpoint{d.issuer.TokenEndpoint, d.issuer.Issuer, d.resource, d.scopes, d.issuer.TokenEndpointAuthMethodsSupported}, nil
}

// authStyle returns how a client with a secret authenticates at the endpoint.
func (e tokenEndpoint) authStyle() oauth2.AuthStyle {
	if len(e.methods) == 0 || slices.Contains(e.methods, "client_secret_basic") {
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}
