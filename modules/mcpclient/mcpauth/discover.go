package mcpauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
)

// discovered is what a server says about its authorization, and its issuer about itself.
type discovered struct {
	resource string   // identifier of the server; its address, or the beginning of it
	scopes   []string // that the server names
	issuer   *oauthex.AuthServerMeta
}

// discover follows a challenge of the server to its issuer. It checks that the server may have this
// issuer.
func (s *Server) discover(ctx context.Context, client *http.Client, challenge []oauthex.Challenge, expected string) (discovered, error) {
	d, named, err := s.findResource(ctx, client, challenge)
	if err != nil {
		return d, s.errUnusable(err)
	}
	if expected != "" && !sameIssuer(named, expected) {
		return d, s.errOtherIssuer(named, expected)
	}
	if d.issuer, err = auth.GetAuthServerMetadata(ctx, named, client); err != nil {
		return d, s.errUnusable(fmt.Errorf("the metadata of its issuer: %w", err))
	}
	if d.issuer == nil || !isSecure(d.issuer.TokenEndpoint) {
		return d, s.errUnusable(errors.New("its issuer has no metadata with a token endpoint with https"))
	}
	return d, nil
}

// errOtherIssuer returns the error when a server names another issuer than the expected one. The error
// suggests a command only for an address that a shell does not read as anything else.
func (s *Server) errOtherIssuer(named, expected string) error {
	hint := "; the operator has to log in there first, if it is to be trusted"
	if isPlainAddress(named) {
		hint = fmt.Sprintf("; if the operator trusts the new one, \"rolecall mcp login %s --issuer %s\" logs in there", s.config.Server, named)
	}
	return errcode.New(errcode.AuthorizationRequired, "the MCP server %q names the issuer %.200q, and its logins are with %.200q%s", s.config.Server, named, expected, hint).
		With("server", s.config.Server).With("issuer", textutil.Truncate(named, 200))
}

// isPlainAddress reports whether a text is an address of at most 200 bytes that has no other characters
// than letters, digits and :/._~-.
func isPlainAddress(text string) bool {
	special := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(":/._~-", r))
	}
	return isSecure(text) && len(text) <= 200 && !strings.ContainsFunc(text, special)
}

// findResource returns the metadata of the server, and the issuer that it names. A server without
// metadata is its own issuer.
func (s *Server) findResource(ctx context.Context, client *http.Client, challenge []oauthex.Challenge) (discovered, string, error) {
	for _, at := range metadataURLs(challenge, s.config.URL) {
		found, err := oauthex.GetProtectedResourceMetadata(ctx, at.document, at.resource, client)
		switch {
		case ctx.Err() != nil:
			return discovered{}, "", context.Cause(ctx)
		case err != nil || found == nil:
			continue
		case len(found.AuthorizationServers) == 0:
			return discovered{}, "", errors.New("its metadata names no issuer")
		}
		return discovered{resource: found.Resource, scopes: found.ScopesSupported}, found.AuthorizationServers[0], nil
	}
	u, err := url.Parse(s.config.URL)
	if err != nil {
		return discovered{}, "", err
	}
	return discovered{resource: s.config.URL}, u.Scheme + "://" + u.Host, nil
}

// metadataURL is where the metadata of a resource may be.
type metadataURL struct{ document, resource string }

// metadataURLs returns where the metadata of a server may be, in the order that the protocol
// defines. That is where the challenge says, then at the path of the server, then at the
// root.
func metadataURLs(challenge []oauthex.Challenge, server string) (list []metadataURL) {
	for _, c := range challenge {
		if u := c.Params["resource_metadata"]; u != "" {
			list = append(list, metadataURL{u, server})
			break
		}
	}
	u, err := url.Parse(server)
	if err != nil {
		return list
	}
	at := *u
	at.Path = "/.well-known/oauth-protected-resource/" + strings.TrimLeft(u.Path, "/")
	list = append(list, metadataURL{at.String(), server})
	at.Path, u.Path = "/.well-known/oauth-protected-resource", ""
	return append(list, metadataURL{at.String(), u.String()})
}

// challengeScopes returns the scopes that a challenge names.
func challengeScopes(challenge []oauthex.Challenge) []string {
	for _, c := range challenge {
		if c.Scheme == "bearer" && c.Params["scope"] != "" {
			return strings.Fields(c.Params["scope"])
		}
	}
	return nil
}

// isStepUp reports whether a challenge says that the token lacks scopes.
func isStepUp(challenge []oauthex.Challenge) bool {
	for _, c := range challenge {
		if c.Scheme == "bearer" && c.Params["error"] != "" {
			return c.Params["error"] == "insufficient_scope"
		}
	}
	return false
}

// errUnusable returns the error when a server or its issuer does not say how to get a token. The
// cause is for the log.
func (s *Server) errUnusable(cause error) error {
	return errcode.Wrap(errcode.ToolUnavailable, cause, "the MCP server %q does not say in a usable way how to log in to it", s.config.Server)
}
