package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/strictjson"
)

// verifyJWT verifies a JWT: go-oidc checks signature, issuer and expiry, checkClaims
// the rest.
func (s *Service) verifyJWT(ctx context.Context, from issuer, token string) (Claims, error) {
	keys := &observedKeys{KeySet: from.keys}
	verifier := gooidc.NewVerifier(from.Issuer, keys, &gooidc.Config{
		SkipClientIDCheck:    true, // there may be several audiences: checkClaims
		SupportedSigningAlgs: from.algorithms(),
		Now:                  func() time.Time { return s.config.Expiry.Now().Add(-clockSkew) },
	})
	verified, err := verifier.Verify(ctx, token)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case keys.fetchErr != nil:
		return nil, errcode.Wrap(errcode.ToolUnavailable, keys.fetchErr, "auth service %s: the keys of its issuer cannot be fetched; try again later", s.config.Name)
	default:
		return nil, s.rejectJWT(from, keys, token, err)
	}
	var claims json.RawMessage
	if err := verified.Claims(&claims); err != nil {
		return nil, s.reject(reasonClaims)
	}
	return s.checkClaims(verified.Issuer, Claims(claims))
}

// observedKeys is the key set of one verification. It keeps what the key set
// returned: the error of the verifier carries that as text only.
type observedKeys struct {
	gooidc.KeySet
	asked    bool   // the verifier got as far as the signature
	payload  []byte // the claims, once a key verified the signature
	fetchErr error  // why the keys could not be fetched
}

// VerifySignature implements gooidc.KeySet. An error of the remote key set has a
// cause when the keys could not be fetched. It has no cause when no key verifies
// the signature.
func (k *observedKeys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, token)
	k.asked, k.payload = true, payload
	if errors.Unwrap(err) != nil {
		k.fetchErr = err
	}
	return payload, err
}

// rejectJWT returns the error for a token that go-oidc rejected with err. It finds
// the reason by its own checks, since the text of err may repeat a part of the token.
func (s *Service) rejectJWT(from issuer, keys *observedKeys, token string, err error) error {
	switch alg := headerAlgorithm(token); {
	case !keys.asked && alg != "" && !slices.Contains(from.algorithms(), alg):
		return s.reject("its issuer does not sign with this algorithm")
	case !keys.asked:
		return s.reject("it is not a readable JWT")
	case keys.payload == nil:
		return s.reject("no key of its issuer verifies its signature")
	}
	if _, expired := errors.AsType[*gooidc.TokenExpiredError](err); expired {
		return s.reject(reasonExpired)
	}
	if strictjson.CheckObject(keys.payload, nil) == nil {
		if _, err := s.checkClaims(from.Issuer, Claims(keys.payload)); err != nil {
			return err
		}
	}
	return s.reject(reasonClaims)
}

// headerAlgorithm returns the algorithm that the header of a JWT names, or "".
func headerAlgorithm(token string) string {
	encoded, _, _ := strings.Cut(token, ".")
	var header struct {
		Algorithm string `json:"alg"`
	}
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || json.Unmarshal(text, &header) != nil {
		return ""
	}
	return header.Algorithm
}

// checkClaims checks claims against the configuration by their exact names:
// go-oidc accepts Aud and AUD for aud, and with some issuers users choose claims.
func (s *Service) checkClaims(issuer string, c Claims) (Claims, error) {
	if iss, _ := c.Field("iss"); gjson.ParseBytes(iss).Str != issuer {
		return nil, s.reject(reasonIssuer)
	}
	if !slices.ContainsFunc(audiences(c), s.matchesAudience) {
		return nil, s.reject(reasonAudience)
	}
	return c, s.checkTimes(c)
}
