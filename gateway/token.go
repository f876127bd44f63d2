package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// MaxTokens is how many tokens a gateway takes at most.
const MaxTokens = 1000

// Token is what a gateway knows of a bearer token: never the token itself.
// Either Role or Operator says whom it makes of its holder.
type Token struct {
	Name     string            // of the holder, for records
	Digest   [sha256.Size]byte // SHA-256 of the token's bytes
	Role     string            // id or exact name, looked up with each request
	Operator bool
	Audience string    // a URL: the token is for it and what is below it; "" is every resource
	Expires  time.Time // the token is good before it; zero is for ever
}

// TokensConfig is what Tokens need.
type TokensConfig struct {
	Role func(ref string) (org.Role, error) // finds an active role by id or exact name
	Now  func() time.Time                   // nil is time.Now
}

// Tokens knows who holds which bearer token. It authenticates, in this order:
//
//  1. a request with an Authorization header by the token in it (RFC 6750),
//  2. one that TrustLocalOwner marked as the operator's,
//  3. one with the cookie that the start-up token was traded for.
//
// Whoever presents a token is that token's principal or nobody: one that is not
// taken is never passed over. Safe for concurrent use.
type Tokens struct {
	config TokensConfig
	known  atomic.Pointer[[]grant]
	startupToken
}

// grant is a token with its audience read.
type grant struct {
	Token
	audience audience
}

// NewTokens makes Tokens that know none; the error names the field of
// TokensConfig that is missing.
func NewTokens(config TokensConfig) (*Tokens, error) {
	if config.Role == nil {
		return nil, errors.New("gateway: TokensConfig.Role is missing")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Tokens{config: config}, nil
}

// Replace puts a list in the place of the tokens known so far, at once; the
// start-up token stays. On error nothing changes.
func (t *Tokens) Replace(list []Token) error {
	if len(list) > MaxTokens {
		return fmt.Errorf("gateway: %d tokens; at most %d are taken", len(list), MaxTokens)
	}
	grants := make([]grant, len(list))
	names, digests := map[string]bool{}, map[[sha256.Size]byte]bool{{}: true} // nobody knows what has no digest
	for i, token := range list {
		audience, err := audienceOf(token.Audience)
		switch {
		case err != nil:
			return fmt.Errorf("gateway: token %q: %w", token.Name, err)
		case token.Name == "" || names[token.Name] || token.Name == string(operator.User):
			return fmt.Errorf("gateway: token %d: its name %q is empty, taken or the operator's own", i, token.Name)
		case digests[token.Digest]:
			return fmt.Errorf("gateway: token %q: its digest is zero or another's", token.Name)
		case (token.Role != "") == token.Operator:
			return fmt.Errorf("gateway: token %q: it needs either a role or operator", token.Name)
		}
		names[token.Name], digests[token.Digest] = true, true
		grants[i] = grant{token, audience}
	}
	t.known.Store(&grants)
	return nil
}

// Authenticate implements the type Authenticate. All refusals of a token read
// alike; the cause is for the log.
func (t *Tokens) Authenticate(r *http.Request) (identity.Principal, error) {
	bearer, given, err := bearerOf(r.Header)
	switch {
	case err != nil:
		return identity.Principal{}, badToken(err)
	case given:
		return t.byBearer(r, bearer)
	case isLocalOwner(r):
		return operator, nil
	}
	return t.byCookie(r)
}

// byBearer gives whom a token stands for.
func (t *Tokens) byBearer(r *http.Request, bearer string) (identity.Principal, error) {
	digest := sha256.Sum256([]byte(bearer))
	if t.isStartup(digest) {
		return operator, nil
	}
	g, ok := t.find(digest)
	switch {
	case !ok:
		return identity.Principal{}, badToken(errors.New("nobody holds it"))
	case !g.Expires.IsZero() && !t.config.Now().Before(g.Expires):
		return identity.Principal{}, badToken(fmt.Errorf("token %q expired at %s", g.Name, g.Expires))
	case !g.audience.holds(r):
		return identity.Principal{}, badToken(fmt.Errorf("token %q is for %s", g.Name, g.Audience))
	case g.Operator:
		return identity.ByOperator(identity.User(g.Name)), nil
	}
	role, err := t.config.Role(g.Role)
	if err != nil || role.ID == "" || role.Status != org.Active {
		return identity.Principal{}, badToken(errors.Join(fmt.Errorf("token %q: there is no role %q", g.Name, g.Role), err))
	}
	return identity.ByCaller(identity.User(g.Name), role.ID), nil
}

// find looks at every token, so that the time it takes says nothing.
func (t *Tokens) find(digest [sha256.Size]byte) (found grant, ok bool) {
	known := t.known.Load()
	if known == nil {
		return grant{}, false
	}
	at := -1
	for i := range *known {
		same := subtle.ConstantTimeCompare(digest[:], (*known)[i].Digest[:])
		at = subtle.ConstantTimeSelect(same, i, at)
	}
	if at < 0 {
		return grant{}, false
	}
	return (*known)[at], true
}

// errBadToken marks refusals of a token that was presented.
var errBadToken = errors.New("the token is not taken")

// badToken refuses a token. What is wrong with it stays inside.
func badToken(cause error) error {
	return errcode.Wrap(errcode.Unauthenticated, errors.Join(errBadToken, cause),
		"the bearer token is not one that is taken here, for this resource, now")
}

// noToken refuses who presents nothing.
func noToken() error {
	return errcode.New(errcode.Unauthenticated, "who asks is not known; send \"Authorization: Bearer TOKEN\"")
}

// challenge is the WWW-Authenticate header of a refusal (RFC 6750 §3).
func challenge(err error) string {
	if errors.Is(err, errBadToken) {
		return `Bearer realm="rolecall", error="invalid_token"`
	}
	return `Bearer realm="rolecall"`
}
