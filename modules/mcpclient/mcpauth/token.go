package mcpauth

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// maxTokenBytes is the length of the longest token that is accepted.
const maxTokenBytes = 16 << 10

// checkToken returns an error unless a token that an issuer has answered is a bearer token that may
// be sent to the server. A JWT must come from the issuer and have the resource, the server's URL or
// the configured audience as its audience, if it names them. An opaque token names nothing, so only
// the server can check it. No error contains a part of the token but its audience.
func (s *Server) checkToken(t *oauth2.Token, resource, issuer string) error {
	switch {
	case !isTokenText(t.AccessToken) || t.RefreshToken != "" && !isTokenText(t.RefreshToken):
		return errors.New("the issuer answered with a token that is empty, longer than 16 KiB or not printable ASCII")
	case !strings.EqualFold(t.Type(), "bearer"):
		return errors.New("the issuer answered with a token that is not a bearer token")
	}
	c, isJWT := claimsOf(t.AccessToken)
	if !isJWT {
		return nil
	}
	if c.Issuer != "" && !sameIssuer(c.Issuer, issuer) {
		return errors.New("the token says that another issuer has issued it")
	}
	allowed := oauthex.MatchesResource(c.Audience, resource) || oauthex.MatchesResource(c.Audience, s.config.URL) ||
		s.config.Audience != "" && oauthex.MatchesResource(c.Audience, s.config.Audience)
	if len(c.Audience) > 0 && !allowed {
		return fmt.Errorf("the token is for the audience %.200q and not for the server; if that is what the issuer calls the server, set audience to it", c.Audience)
	}
	return nil
}

// isTokenText reports whether a text can be a token: printable ASCII without blanks.
func isTokenText(text string) bool {
	return text != "" && len(text) <= maxTokenBytes && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// claims are the claims of a JWT. Nothing verifies them, so checkToken uses them only to reject a
// token.
type claims struct {
	Issuer   string    `json:"iss"`
	Audience audiences `json:"aud"`
}

// audiences is a text or a list of texts.
type audiences []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audiences) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*a = audiences{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// claimsOf returns the claims of a token: a JWT is HEADER.CLAIMS.SIGNATURE. It reports false for a
// token that is not a JWT. For a JWT whose claims cannot be read it returns an audience that no
// server has, so that checkToken rejects it.
func claimsOf(token string) (c claims, isJWT bool) {
	head, rest, _ := strings.Cut(token, ".")
	body, _, hasSignature := strings.Cut(rest, ".")
	header, err := base64.RawURLEncoding.DecodeString(head)
	if !hasSignature || err != nil || !strings.HasPrefix(strings.TrimSpace(string(header)), "{") {
		return c, false
	}
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(text, &c) != nil {
		return claims{Audience: audiences{"an unreadable token"}}, true
	}
	return c, true
}
