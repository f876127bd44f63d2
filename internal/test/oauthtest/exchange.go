package oauthtest

import (
	"net/url"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"

// exchange returns what an exchanged token is for (RFC 8693).
func (i *Issuer) exchange(form url.Values) (issued, bool) {
	i.Exchanges = append(i.Exchanges, form)
	user, known := i.Subjects[form.Get("subject_token")]
	return issued{user: user, resource: form.Get("resource"), scope: form.Get("scope"), exchanged: true}, known
}

// acceptsAssertion reports whether a client authenticates with a JWT (RFC 7523): it is signed with
// the client's key, is for this issuer, ends soon, and has not been used.
func (i *Issuer) acceptsAssertion(form url.Values) bool {
	token, err := jwt.ParseSigned(form.Get("client_assertion"), []jose.SignatureAlgorithm{jose.ES256, jose.RS256})
	if err != nil || form.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" {
		return false
	}
	client := form.Get("client_id")
	var claims jwt.Claims
	if i.Keys[client] == nil || token.Claims(i.Keys[client], &claims) != nil {
		return false
	}
	expected := jwt.Expected{Issuer: client, Subject: client, AnyAudience: jwt.Audience{i.URL()}, Time: time.Now()}
	soon := claims.Expiry != nil && time.Until(claims.Expiry.Time()) <= 5*time.Minute
	fresh := claims.ID != "" && !i.assertions[claims.ID]
	i.assertions[claims.ID] = true
	return claims.Validate(expected) == nil && soon && fresh
}
