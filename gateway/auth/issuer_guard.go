package auth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/fair"
)

const (
	// verifyTimeout is how long a request waits for an issuer.
	verifyTimeout = 5 * time.Second

	maxVerifying = 32  // verifications of one issuer at once
	maxWaiting   = 256 // requests that wait for one of them
	maxOfAddress = 64  // requests of one address that wait

	// These limits are for an issuer that is asked about each token. An address may show it so many
	// tokens that are not valid, and then one more in failureInterval.
	failureBurst    = 20
	failureInterval = time.Second
	maxAddresses    = 4096 // that are remembered for that
)

// issuerGuard limits what an issuer is asked. Requests with the same token share one
// verification. The places for verifications are shared fairly among the addresses of senders.
type issuerGuard struct {
	issuer   Issuer
	places   *fair.Semaphore
	flights  singleflight.Group
	failures *fair.RateTable[string] // by address
}

func newIssuerGuard(i Issuer) *issuerGuard {
	g := &issuerGuard{issuer: i, places: fair.NewSemaphore(maxVerifying), failures: fair.NewRateTable[string](maxAddresses)}
	g.places.LimitQueue(maxWaiting, maxOfAddress, maxOfAddress)
	g.failures.SetRate(failureInterval, failureBurst)
	return g
}

// byIssuer returns the principal of a token of an issuer. A verification that a reload has
// overtaken begins again with the new issuers.
func (t *TokenStore) byIssuer(r *http.Request, token string, digest [sha256.Size]byte) (identity.Principal, error) {
	for {
		set := t.issuers.Load()
		p, err := t.verifyInSet(r, set, token, digest)
		if t.issuers.Load() == set {
			return p, err
		}
	}
}

// verifyInSet returns the principal of a token of one of the issuers of a set. It remembers a
// valid token. What is remembered is found before the token is parsed: equal tokens have the same
// issuer in the same set.
func (t *TokenStore) verifyInSet(r *http.Request, set *issuerSet, token string, digest [sha256.Size]byte) (identity.Principal, error) {
	if set != nil {
		if p, ok := t.remembered(set, digest); ok {
			return p, nil
		}
	}
	guard, err := set.chooseIssuer(token)
	if err != nil {
		return identity.Principal{}, errInvalidToken(err)
	}
	return t.verifyAndRemember(r, set, guard, token, digest)
}

// rememberedOrVerify returns the principal of a token that is remembered by its digest, or else of
// a token that an issuer of a set verifies.
func (t *TokenStore) rememberedOrVerify(r *http.Request, set *issuerSet, guard *issuerGuard, token string, digest [sha256.Size]byte) (identity.Principal, error) {
	if p, ok := t.remembered(set, digest); ok {
		return p, nil
	}
	return t.verifyAndRemember(r, set, guard, token, digest)
}

// remembered returns the principal of a token that need not be verified now. If tokens are kept,
// the token of a caller counts as remembered only while one is kept for that caller.
func (t *TokenStore) remembered(set *issuerSet, digest [sha256.Size]byte) (identity.Principal, bool) {
	p, ok := set.verified.find(digest, t.clock.Now())
	if ok && t.keeps(p) {
		_, ok = set.subjects.find(p, t.clock.Now())
	}
	return p, ok
}

// keeps reports whether the tokens of a principal are kept for SubjectToken.
func (t *TokenStore) keeps(p identity.Principal) bool {
	return p.Kind == identity.Caller && t.config.KeepTokens != nil && t.config.KeepTokens()
}

// verifyAndRemember returns the principal of a token that an issuer of a set verifies. It
// remembers a valid token by its digest.
func (t *TokenStore) verifyAndRemember(r *http.Request, set *issuerSet, guard *issuerGuard, token string, digest [sha256.Size]byte) (identity.Principal, error) {
	version := guard.issuer.Verifier.KeyVersion()
	claims, err := guard.verify(r.Context(), t.ClientAddress(r), token, digest)
	if err != nil {
		return identity.Principal{}, err
	}
	p, err := guard.issuer.principalOf(claims)
	if err != nil {
		return identity.Principal{}, err
	}
	longest := verifiedFor
	if guard.issuer.Verifier.Introspects(token) {
		longest = introspectedFor
	}
	now := t.clock.Now()
	if left := claims.remaining(now, longest); left > 0 {
		set.verified.add(digest, verifiedToken{holder: p, from: guard, version: version, until: now.Add(left)}, now)
		if t.keeps(p) {
			ends := now.Add(claims.remaining(now, maxSubjectTime))
			idToken := set.signIn[guard.issuer.Name] == guard
			set.subjects.add(p, keptToken{SubjectToken{token, guard.issuer.Name, guard.issuer.URL, idToken, ends}, guard, version}, now)
		}
	}
	return p, nil
}

// verify returns the claims of a valid token.
//
// Errors:
//
//   - Unauthenticated for a token that is not valid
//   - RateLimited for an address that has shown too many such tokens or has too many requests
//     that wait
//   - ToolUnavailable if the issuer does not answer
func (g *issuerGuard) verify(ctx context.Context, address, token string, digest [sha256.Size]byte) (claimSet, error) {
	if g.issuer.Verifier.Introspects(token) {
		if wait := g.failures.WaitTime(address); wait > 0 {
			return nil, wire.RateLimited(wait, "too many tokens of this address were not valid")
		}
	}
	found, err, _ := g.flights.Do(string(digest[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), verifyTimeout)
		defer cancel()
		return g.verifyOnce(ctx, address, token)
	})
	if err != nil {
		return nil, err
	}
	return found.(claimSet), nil
}

// verifyOnce waits for a place and asks the verifier.
func (g *issuerGuard) verifyOnce(ctx context.Context, address, token string) (claimSet, error) {
	release, err := g.places.Acquire(ctx, fair.Key{Owner: address, Member: address})
	switch {
	case errors.Is(err, fair.ErrQueueFull):
		return nil, wire.RateLimited(time.Second, "too many tokens wait to be verified")
	case err != nil:
		return nil, g.errUnavailable(err)
	}
	defer release()
	raw, err := g.issuer.Verifier.VerifyToken(ctx, token)
	if err != nil {
		return nil, g.verifyError(address, token, err)
	}
	return g.readClaims(raw)
}

// readClaims decodes the claims of a verified token.
func (g *issuerGuard) readClaims(raw json.RawMessage) (claimSet, error) {
	claims, err := parseClaims(raw)
	if err != nil {
		return nil, errInvalidToken(err)
	}
	return claims, nil
}

// verifyError returns the error for a token that was not verified, and counts it if the issuer was
// asked about it.
func (g *issuerGuard) verifyError(address, token string, err error) error {
	if errcode.CodeOf(err) != errcode.Unauthenticated {
		return g.errUnavailable(err)
	}
	if g.issuer.Verifier.Introspects(token) {
		g.failures.Take(address)
	}
	return errInvalidToken(err)
}

// errUnavailable returns the error for an issuer that did not answer. cause is not shown to the
// sender.
func (g *issuerGuard) errUnavailable(cause error) error {
	return errcode.Wrap(errcode.ToolUnavailable, cause, "the issuer %s of the token does not answer; try again later", g.issuer.Name)
}
