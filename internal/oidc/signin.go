package oidc

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/org/hosts"
)

// SignInClient is the registration of this program with the issuer, for users who sign in with a
// browser. They use the authorization code flow with PKCE (RFC 7636).
type SignInClient struct {
	ID     string // client_id, which must be the audience of the service
	Secret string // "" for a public client
}

// Authorization is one attempt to sign in. All fields are required.
type Authorization struct {
	Redirect string // URL to which the issuer sends the browser back
	State    string // random, returned with the code
	Nonce    string // random, in the ID token
	Verifier string // random, 43 to 128 letters and digits; only its hash is shown before the code comes
}

// AuthorizationURL returns the URL of the issuer to which a browser is sent.
//
// Errors: ToolUnavailable if the issuer cannot be asked or has no usable endpoint, and ctx's
// cause.
func (s *Service) AuthorizationURL(ctx context.Context, a Authorization) (string, error) {
	from, err := s.discover(ctx)
	if err != nil {
		return "", err
	}
	u, err := s.endpoint(from.Authorize)
	if err != nil {
		return "", err
	}
	challenge := sha256.Sum256([]byte(a.Verifier))
	q := u.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": s.config.SignIn.ID, "redirect_uri": a.Redirect, "scope": "openid",
		"state": a.State, "nonce": a.Nonce, "code_challenge_method": "S256",
		"code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:]),
	} {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// endpoint parses an endpoint of the discovery document. Codes and secrets are sent there, so
// it must have TLS, unless it is on this machine.
func (s *Service) endpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if s.config.SignIn == nil || err != nil || u.Host == "" || u.User != nil || u.Fragment != "" ||
		u.Scheme != "https" && (u.Scheme != "http" || !hosts.IsLoopback(u.Hostname())) {
		return nil, errcode.New(errcode.ToolUnavailable, "auth service %s: its issuer has no endpoint with https to sign in", s.config.Name)
	}
	return u, nil
}

// ExchangeCode exchanges the code of an authorization for an ID token and verifies it: for this
// client, with the nonce. answered is the parameter iss of the answer (RFC 9207), "" for none.
//
// Errors:
//
//   - Unauthenticated if the issuer or this program rejects the code, if the answer is of
//     another issuer, or if the token is not valid
//   - ToolUnavailable when the issuer could not be asked
//   - the cause of ctx
//
// No error contains a part of a code or a token.
func (s *Service) ExchangeCode(ctx context.Context, a Authorization, code, answered string) (string, error) {
	from, err := s.discover(ctx)
	if err != nil {
		return "", err
	}
	if answered != from.Issuer && (answered != "" || from.NamesIssuer) {
		return "", s.errSignInRejected("the answer is of another issuer")
	}
	token, err := s.exchange(ctx, from, a, code)
	if err != nil {
		return "", err
	}
	claims, err := s.Verify(ctx, token)
	if err != nil {
		return "", err
	}
	return token, s.checkSignedIn(claims, a)
}

// checkSignedIn checks the claims of an ID token that only this attempt can check.
func (s *Service) checkSignedIn(claims Claims, a Authorization) error {
	nonce, _ := claims.Field("nonce")
	azp, named := claims.Field("azp")
	switch {
	case a.Nonce == "" || subtle.ConstantTimeCompare([]byte(gjson.ParseBytes(nonce).Str), []byte(a.Nonce)) != 1:
		return s.errSignInRejected("the token is of another attempt")
	case named && gjson.ParseBytes(azp).Str != s.config.SignIn.ID, !named && len(audiences(claims)) > 1:
		return s.errSignInRejected("the token was issued to another client")
	}
	return nil
}

// exchange sends a code to the token endpoint and returns the ID token, which is not verified.
func (s *Service) exchange(ctx context.Context, from issuer, a Authorization, code string) (string, error) {
	r, err := s.tokenRequest(ctx, from, a, code)
	if err != nil {
		return "", err
	}
	client := *s.client
	client.CheckRedirect = noRedirect
	response, err := client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", s.errExchangeFailed()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil || response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests:
		return "", s.errExchangeFailed()
	case response.StatusCode != http.StatusOK || strictjson.CheckObject(body, nil) != nil:
		return "", s.errSignInRejected("the issuer does not accept the code")
	}
	raw, _ := Claims(body).Field("id_token")
	var token string
	if json.Unmarshal(raw, &token) != nil || !isJWT(token) {
		return "", s.errSignInRejected("the issuer sent no ID token")
	}
	return token, nil
}

// tokenRequest returns the request that exchanges a code (RFC 6749, section 4.1.3).
func (s *Service) tokenRequest(ctx context.Context, from issuer, a Authorization, code string) (*http.Request, error) {
	u, err := s.endpoint(from.Token)
	if err != nil {
		return nil, err
	}
	id, secret := s.config.SignIn.ID, s.config.SignIn.Secret
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {a.Redirect}, "code_verifier": {a.Verifier}, "client_id": {id}}
	inBody := slices.Contains(from.TokenAuth, "client_secret_post") && !slices.Contains(from.TokenAuth, "client_secret_basic")
	if secret != "" && inBody {
		form.Set("client_secret", secret)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, s.errExchangeFailed()
	}
	if secret != "" && !inBody {
		r.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret))
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	return r, nil
}

// errExchangeFailed leaves out the cause, which may repeat what was sent.
func (s *Service) errExchangeFailed() error {
	return errcode.New(errcode.ToolUnavailable, "auth service %s: its issuer did not answer to the code; try again later", s.config.Name)
}

// errSignInRejected returns the error for an attempt that failed.
func (s *Service) errSignInRejected(reason string) error {
	return errcode.New(errcode.Unauthenticated, "sign in with auth service %s: %s; begin again", s.config.Name, reason)
}
