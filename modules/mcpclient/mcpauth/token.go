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

// maxToken is the largest number of bytes of a token.
const maxToken = 16 << 10

// checkToken returns an error unless a token that an issuer has answered can be used for a resource
// of the server, and for nothing else. Opaque tokens say nothing about themselves; the server
// checks them. No error contains a part of the token.
func (s *Server) checkToken(t *oauth2.Token, resource, issuer string) error {
	switch {
	case !isTokenText(t.AccessToken) || t.RefreshToken != "" && !isTokenText(t.RefreshToken):
		return errors.New("the issuer answered with a token that is not one")
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
		return fmt.Errorf("the token is for %.200q and not for the server; if its issuer names the server so, set audience to that", c.Audience)
	}
	return nil
}

// isTokenText reports whether a text can be a token: printable ASCII without blanks.
func isTokenText(text string) bool {
	return text != "" && len(text) <= maxToken && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// claims are the claims of a JWT, which are not verified. They can only make a token be rejected.
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

// claimsOf returns the claims of a token. It reports false for a token that is not a JWT. Claims
// that cannot be read are those of no issuer and of an audience that no server has.
func claimsOf(token string) (c claims, isJWT bool) {
	head, rest, _ := strings.Cut(token, ".")
	body, _, signed := strings.Cut(rest, ".")
	header, err := base64.RawURLEncoding.DecodeString(head)
	if !signed || err != nil || !strings.HasPrefix(strings.TrimSpace(string(header)), "{") {
		return c, false
	}
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(text, &c) != nil {
		return claims{Audience: audiences{"an unreadable token"}}, true
	}
	return c, true
}
