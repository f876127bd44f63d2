package mcpauth

import (
	"errors"
	"net/url"
	"slices"
	"time"

	"golang.org/x/oauth2"

	"github.com/rolecall/rolecall/errcode"
)

// Names of RFC 8693.
const (
	exchangeGrant   = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeAccessToken = "urn:ietf:params:oauth:token-type:access_token"
	typeIDToken     = "urn:ietf:params:oauth:token-type:id_token"
	typeJWT         = "urn:ietf:params:oauth:token-type:jwt"
)

// Exchange says how to get the token of a person for the server (RFC 8693). The endpoint exchanges
// the token with which that person has authenticated at this program. Nothing is stored.
type Exchange struct {
	TokenURL string // of the endpoint; "" is the token endpoint of Config.Issuer, which the server names
	// Proof returns the token with which a subject has authenticated, if it may be sent to the
	// endpoint. It reports false if there is none.
	Proof func(Subject) (SubjectToken, bool)
}

// SubjectToken is a token with which a person has authenticated at this program.
type SubjectToken struct {
	Token   string
	IDToken bool      // else it is an access token
	Expires time.Time // not zero
}

// checkExchange validates Config.Exchange.
func (c Config) checkExchange() error {
	x := c.Exchange
	switch {
	case x == nil:
		return nil
	case !c.PerCaller:
		return c.invalid("tokens are exchanged for each caller, so the credentials must be per caller")
	case c.ClientID == "" || c.Issuer == "" || c.ClientSecret == "" && c.ClientKey == "":
		return c.invalid("an exchange needs the issuer, and a client id with a secret or a key")
	case x.Proof == nil:
		return c.invalid("an exchange needs the tokens of callers")
	case x.TokenURL != "" && !isSecure(x.TokenURL):
		return c.invalid("the endpoint of an exchange must begin with https://; http is for one on this machine")
	}
	return nil
}

// exchanges reports whether the token of a subject is exchanged for one with which it has
// authenticated.
func (s *Server) exchanges(subject Subject) bool {
	return s.config.Exchange != nil && subject != Operator
}

// newExchange returns the Authorizer of a subject.
func (s *Server) newExchange(subject Subject) *issued {
	return &issued{server: s, proof: func() (proof, error) { return s.exchangeProof(subject) }}
}

// exchangeProof returns the proof of a subject. Errors: AuthorizationRequired.
func (s *Server) exchangeProof(subject Subject) (proof, error) {
	from, ok := s.config.Exchange.Proof(subject)
	if !ok || from.Token == "" || from.Expires.IsZero() || !s.endsLater(from.Expires) {
		return proof{}, s.errNoToken()
	}
	kind := typeAccessToken
	if from.IDToken {
		kind = typeIDToken
	}
	params := url.Values{
		"grant_type": {exchangeGrant}, "subject_token": {from.Token}, "subject_token_type": {kind}, "requested_token_type": {typeAccessToken},
	}
	if s.config.Audience != "" {
		params.Set("audience", s.config.Audience)
	}
	return proof{params: params, secret: from.Token, expires: from.Expires, check: func(t *oauth2.Token) error { return checkExchanged(t, from.Token) }}, nil
}

// checkExchanged returns an error unless a token is another one than it was exchanged for, and may be
// sent to the server.
func checkExchanged(t *oauth2.Token, from string) error {
	kind, _ := t.Extra("issued_token_type").(string)
	switch {
	case kind != typeAccessToken && kind != typeJWT:
		return errors.New("the issuer answered with a token of another type than the requested one")
	case t.AccessToken == from || t.RefreshToken == from:
		return errors.New("the issuer answered with the token that it was sent")
	}
	t.RefreshToken = "" // the token lives no longer than the one of the person
	return nil
}

// errNoToken returns the error for a person without a usable token.
func (s *Server) errNoToken() error {
	return errcode.New(errcode.AuthorizationRequired, "the MCP server %q needs the token with which the person for whom this is done signs in to rolecall, and there is none that is valid; a request to rolecall with a token of its issuer makes it known", s.config.Server).With("server", s.config.Server)
}

// errRefused returns the error when the issuer does not accept the token of a person. The cause is for
// the log.
func (s *Server) errRefused(cause error) error {
	return errcode.Wrap(errcode.AuthorizationRequired, cause, "the issuer of the MCP server %q does not exchange the token with which the person for whom this is done has signed in to rolecall; that person needs another token", s.config.Server).With("server", s.config.Server)
}

// isRefusal reports whether an issuer does not accept the token of a person. It reports false if
// the issuer only rejects the client, the target, or the moment.
func isRefusal(err error) bool {
	e, ok := errors.AsType[*oauth2.RetrieveError](err)
	ofClient := []string{"invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_target", "invalid_scope"}
	return isRejection(err) && ok && e.ErrorCode != "" && !slices.Contains(ofClient, e.ErrorCode)
}
