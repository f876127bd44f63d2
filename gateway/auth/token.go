package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/clock"
	"github.com/rolecall/rolecall/org"
)

// MaxTokens is the largest number of tokens that Replace accepts.
const MaxTokens = 1000

// Token describes a bearer token. It contains a digest and never the token
// itself. The scope and the role determine the principal of the token's holder.
type Token struct {
	Name     string            // the holder's user name, for records
	Digest   [sha256.Size]byte // SHA-256 of the token's bytes
	Scope    Scope             // what the holder may do; ReplaceTokens rejects ScopeNone
	Role     identity.RoleID   // the holder's role with ScopeRole, else "". It is an id, because another role may get the name later
	Audience string            // the URL for which the token is valid, with all paths below it; "" is every URL
	Expires  time.Time         // from then on the token is not valid; zero never expires
}

// TokenStoreConfig configures a TokenStore. Role is required.
type TokenStoreConfig struct {
	Role func(id identity.RoleID) (org.Role, bool) // looks up a role; called with each request of a caller
	Now  func() time.Time                          // nil is time.Now

	// Sessions keeps the sessions of browsers across restarts; nil keeps them in memory. It is read
	// once, and a failure leaves no session.
	Sessions SessionStore

	// KeepTokens reports whether the tokens of issuers are kept for SubjectToken. Nil keeps none.
	KeepTokens func() bool

	// TrustedProxies lists the proxies whose headers name the address of the client. Nil lists none.
	TrustedProxies func() []netip.Prefix
}

// TokenStore authenticates requests by bearer token. It checks, in this order:
//
//  1. the token in an Authorization header (RFC 6750): first among its own tokens, then as
//     a token of an issuer,
//  2. the mark of TrustLocalOwner, which authenticates the operator,
//  3. the cookie of a session, which authenticates the holder of the token that began the session,
//  4. the cookie that was issued for the startup token.
//
// A request with an invalid token is rejected, even if it is marked or has a
// cookie. A TokenStore is safe for concurrent use.
type TokenStore struct {
	config TokenStoreConfig
	clock  *clock.Forward // an expired token stays expired when the wall clock is set back
	tokens atomic.Pointer[[]storedToken]
	startupToken
	sessions sessionTable
	sealer   sealer                    // of attempts to sign in
	issuers  atomic.Pointer[issuerSet] // nil before the first ReplaceIssuers
	networks atomic.Pointer[[]Network] // the longest prefix first; nil before the first ReplaceNetworks
}

// storedToken is a token with its parsed audience.
type storedToken struct {
	Token
	audience audience
}

// NewTokenStore returns a TokenStore without any tokens. The error names the field of
// TokenStoreConfig that is missing.
func NewTokenStore(config TokenStoreConfig) (*TokenStore, error) {
	if config.Role == nil {
		return nil, errors.New("auth: TokenStoreConfig.Role is missing")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	t := &TokenStore{config: config, clock: clock.NewForward(config.Now), sealer: newSealer()}
	if t.sessions.store = config.Sessions; config.Sessions != nil {
		if err := t.sessions.load(); err != nil {
			t.sessions.sessions = nil
		}
	}
	return t, nil
}

// ReplaceTokens replaces all tokens atomically; the startup token is kept. If it
// returns an error, nothing has changed.
func (t *TokenStore) ReplaceTokens(list []Token) error {
	if len(list) > MaxTokens {
		return fmt.Errorf("auth: %d tokens, at most %d are allowed", len(list), MaxTokens)
	}
	grants := make([]storedToken, len(list))
	names, digests := map[string]bool{}, map[[sha256.Size]byte]bool{{}: true} // seen before; the zero digest is never valid
	for i, token := range list {
		audience, err := parseAudience(token.Audience)
		switch {
		case err != nil:
			return fmt.Errorf("auth: token %q: %w", token.Name, err)
		case token.Name == "" || names[token.Name] || token.Name == string(operator.User):
			return fmt.Errorf("auth: token %d: name %q is empty, already used or reserved for the operator", i, token.Name)
		case identity.UserName(token.Name).IsTrigger():
			return fmt.Errorf("auth: token %d: name %q is reserved for triggers", i, token.Name)
		case digests[token.Digest]:
			return fmt.Errorf("auth: token %q: digest is zero or already used", token.Name)
		case token.Scope == ScopeNone || int(token.Scope) >= len(scopeNames):
			return fmt.Errorf("auth: token %q: the scope is missing", token.Name)
		case (token.Scope == ScopeRole) != (token.Role != ""):
			return fmt.Errorf("auth: token %q: the scope role needs a role, and no other scope has one", token.Name)
		}
		names[token.Name], digests[token.Digest] = true, true
		grants[i] = storedToken{token, audience}
	}
	t.tokens.Store(&grants)
	t.sessions.retain(t.clock.Now(), func(c credential) bool { return c.issuer != "" || t.isStartup(c.digest) || digests[c.digest] })
	return nil
}

// Holders returns the holders of the tokens that have not expired and may call tools:
// callers in their roles, and operators by name.
func (t *TokenStore) Holders() (list []identity.Principal) {
	for _, token := range t.ListTokens() {
		if p := token.holder(); !t.expired(token) && p.Kind != identity.Monitor {
			list = append(list, p)
		}
	}
	return list
}

// ListTokens returns the tokens of the last ReplaceTokens, in its order. The start-up token
// is not one of them.
func (t *TokenStore) ListTokens() (list []Token) {
	known := t.tokens.Load()
	if known == nil {
		return nil
	}
	for _, token := range *known {
		list = append(list, token.Token)
	}
	return list
}

// expired reports whether a token is not valid any more.
func (t *TokenStore) expired(token Token) bool {
	return !token.Expires.IsZero() && !t.clock.Now().Before(token.Expires)
}

// holder returns the principal of the token's holder. It is the zero Principal, which may do
// nothing, for ScopeNone.
func (t Token) holder() identity.Principal {
	switch user := identity.UserName(t.Name); t.Scope {
	case ScopeOperator:
		return identity.ByOperator(user)
	case ScopeMetrics:
		return identity.ByMonitor(user)
	case ScopeRole:
		return identity.ByCaller(user, t.Role)
	}
	return identity.Principal{}
}

// Authenticate is an Authenticator. All invalid tokens are rejected with the same message; the
// cause is only logged. The permissions of the network that the request comes from limit the
// permissions of the sender (ReplaceNetworks).
func (t *TokenStore) Authenticate(r *http.Request) (identity.Principal, error) {
	p, err := t.identify(r)
	if err != nil {
		return identity.Principal{}, err
	}
	return t.LimitSender(r, p)
}

// identify returns the sender of a request without the limit of its network.
func (t *TokenStore) identify(r *http.Request) (identity.Principal, error) {
	token, present, err := parseBearer(r.Header)
	switch {
	case err != nil:
		return identity.Principal{}, errInvalidToken(err)
	case present:
		return t.byBearer(r, token)
	case IsLocalOwner(r):
		return operator, nil
	}
	if p, known, err := t.bySession(r); known {
		return t.withActiveRole(p, err)
	}
	return t.byCookie(r)
}

// byBearer returns the principal of a token.
func (t *TokenStore) byBearer(r *http.Request, token string) (identity.Principal, error) {
	digest := sha256.Sum256([]byte(token))
	p, known, err := t.byOwnToken(r, digest)
	if !known {
		p, err = t.byIssuer(r, token, digest)
	}
	return t.withActiveRole(p, err)
}

// byOwnToken returns the principal of a token that this process knows without an issuer. This is
// the start-up token, or a configured token of the last ReplaceTokens. known reports whether the
// digest belongs to one of them.
func (t *TokenStore) byOwnToken(r *http.Request, digest [sha256.Size]byte) (p identity.Principal, known bool, err error) {
	if t.isStartup(digest) {
		return operator, true, nil
	}
	stored, known := t.lookup(digest)
	if known {
		p, err = t.byStored(r, stored)
	}
	return p, known, err
}

// withActiveRole returns p and err as they are, but an error for a caller whose role is not active.
func (t *TokenStore) withActiveRole(p identity.Principal, err error) (identity.Principal, error) {
	if err != nil || p.Kind != identity.Caller {
		return p, err
	}
	role, ok := t.config.Role(p.Role)
	if !ok || role.ID != p.Role || role.Status != org.Active {
		return identity.Principal{}, errInvalidToken(fmt.Errorf("token %q: there is no active role with the id %q", p.User, p.Role))
	}
	return p, nil
}

// byStored returns the principal of a token of the last ReplaceTokens.
func (t *TokenStore) byStored(r *http.Request, g storedToken) (identity.Principal, error) {
	switch {
	case t.expired(g.Token):
		return identity.Principal{}, errInvalidToken(fmt.Errorf("token %q expired at %s", g.Name, g.Expires))
	case !g.audience.covers(r):
		return identity.Principal{}, errInvalidToken(fmt.Errorf("token %q is for %s", g.Name, g.Audience))
	}
	return g.holder(), nil
}

// lookup returns the token with a digest. It compares with every token in
// constant time, so that its duration reveals nothing.
func (t *TokenStore) lookup(digest [sha256.Size]byte) (found storedToken, ok bool) {
	known := t.tokens.Load()
	if known == nil {
		return storedToken{}, false
	}
	at := -1
	for i := range *known {
		same := subtle.ConstantTimeCompare(digest[:], (*known)[i].Digest[:])
		at = subtle.ConstantTimeSelect(same, i, at)
	}
	if at < 0 {
		return storedToken{}, false
	}
	return (*known)[at], true
}

// errInvalidToken returns the error for a token that was presented. cause is not
// shown to the sender.
func errInvalidToken(cause error) error {
	return errcode.Wrap(errcode.Unauthenticated, errors.Join(wire.ErrInvalidToken, cause),
		"the bearer token is not valid for this resource")
}

// errMissingToken returns the error for a request without any credentials.
func errMissingToken() error {
	return errcode.New(errcode.Unauthenticated, "authentication required; send \"Authorization: Bearer TOKEN\"")
}
