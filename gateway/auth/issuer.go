package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/identity"
)

// MaxIssuers is the largest number of issuers that ReplaceIssuers accepts.
const MaxIssuers = 16

// TokenVerifier verifies the tokens of one issuer. It must be safe for concurrent use.
type TokenVerifier interface {
	// VerifyToken returns the claims of a valid token: a JSON object without duplicate names,
	// with exp. Errors: Unauthenticated for any other token; all others mean that the issuer
	// could not be asked.
	VerifyToken(ctx context.Context, token string) (claims json.RawMessage, err error)
	// Introspects reports whether the issuer is asked about this very token.
	Introspects(token string) bool
	// KeyVersion changes when the issuer has other keys. What was verified before may not be
	// valid any more.
	KeyVersion() uint64
}

// Issuer is an issuer whose tokens a TokenStore accepts, in addition to its own.
type Issuer struct {
	Name     string // begins the names of its users; it has no colon
	URL      string // the claim iss of its tokens
	User     string // the claim that names the user
	Rules    []ClaimRule
	Scopes   []string // that clients should ask the issuer for; may be empty
	Opaque   bool     // tokens that are not JWTs are its tokens; of one issuer at most
	Verifier TokenVerifier
	SignIn   BrowserSignIn // nil if users cannot sign in with a browser
}

// BrowserSignIn signs users in with a browser, and verifies the ID tokens that it gets. These
// are for this program only: they are not accepted in place of other tokens of the issuer.
type BrowserSignIn interface {
	TokenVerifier
	// AuthorizationURL returns where the browser is sent. Errors: the errors of VerifyToken.
	AuthorizationURL(ctx context.Context, a SignInAttempt) (string, error)
	// ExchangeCode exchanges the code that the browser brought back for a verified ID token.
	// answered is the issuer that the answer names, "" for none. Errors: the errors of VerifyToken.
	ExchangeCode(ctx context.Context, a SignInAttempt, code, answered string) (string, error)
}

// SignInAttempt has the random texts of one attempt to sign in, and where it comes back.
type SignInAttempt struct{ Redirect, State, Nonce, Verifier string }

// ClaimRule grants a scope to users whose claim is a text, or a list that contains it.
type ClaimRule struct {
	Claim string // JSON pointer into the claims
	Value string
	Scope Scope           // ScopeRole or ScopeOperator
	Role  identity.RoleID // of ScopeRole only: the id
}

// issuerSet is a set of issuers with what is remembered of their tokens. It is replaced whole.
type issuerSet struct {
	list     []Issuer
	byURL    map[string]*issuerGuard
	opaque   *issuerGuard            // nil if no issuer is asked about tokens that are not JWTs
	signIn   map[string]*issuerGuard // by name; those whose users sign in with a browser
	verified verifiedTokens
	subjects subjectTokens
}

// ReplaceIssuers replaces all issuers atomically and forgets which of their tokens were
// verified, and the tokens of SubjectToken. If it returns an error, nothing has changed.
func (t *TokenStore) ReplaceIssuers(list []Issuer) error {
	if len(list) > MaxIssuers {
		return fmt.Errorf("auth: %d issuers, at most %d are allowed", len(list), MaxIssuers)
	}
	set := &issuerSet{list: slices.Clone(list), byURL: map[string]*issuerGuard{}, signIn: map[string]*issuerGuard{}, verified: newVerifiedTokens(), subjects: newSubjectTokens()}
	names := map[string]bool{}
	for _, i := range list {
		switch {
		case i.Name == "" || strings.Contains(i.Name, ":") || names[i.Name]:
			return fmt.Errorf("auth: issuer %q: the name is empty, has a colon or is already used", i.Name)
		case identity.UserName(i.Name + ":").IsTrigger():
			return fmt.Errorf("auth: issuer %q: the name is reserved for triggers", i.Name)
		case i.URL == "" || set.byURL[i.URL] != nil:
			return fmt.Errorf("auth: issuer %q: the URL is empty or already used", i.Name)
		case i.User == "" || i.Verifier == nil:
			return fmt.Errorf("auth: issuer %q: User or Verifier is missing", i.Name)
		case i.Opaque && set.opaque != nil:
			return fmt.Errorf("auth: issuer %q: another issuer has Opaque", i.Name)
		}
		if err := i.checkRules(); err != nil {
			return err
		}
		guard := newIssuerGuard(i)
		names[i.Name], set.byURL[i.URL] = true, guard
		if i.Opaque {
			set.opaque = guard
		}
		if i.SignIn != nil {
			browser := i
			browser.Verifier = i.SignIn
			set.signIn[i.Name] = newIssuerGuard(browser)
		}
	}
	t.issuers.Store(set)
	t.sessions.retain(t.clock.Now(), func(c credential) bool { return c.issuer == "" || set.signIn[c.issuer] != nil })
	return nil
}

// checkRules rejects rules that grant nothing, or a role to an operator.
func (i Issuer) checkRules() error {
	for _, r := range i.Rules {
		if r.Scope != ScopeRole && r.Scope != ScopeOperator || (r.Scope == ScopeRole) != (r.Role != "") {
			return fmt.Errorf("auth: issuer %q: a rule needs the scope role with a role, or the scope operator", i.Name)
		}
	}
	return nil
}

// ListIssuers returns the issuers of the last ReplaceIssuers, in its order.
func (t *TokenStore) ListIssuers() []Issuer {
	if set := t.issuers.Load(); set != nil {
		return slices.Clone(set.list)
	}
	return nil
}

// chooseIssuer returns the issuer that verifies a token. The claim iss is not verified yet: it only
// says whose keys to use. A token of this program is never shown to an issuer.
func (s *issuerSet) chooseIssuer(token string) (*issuerGuard, error) {
	if s == nil || strings.HasPrefix(token, TokenPrefix) {
		return nil, errors.New("unknown token")
	}
	if strings.Count(token, ".") != 2 {
		if s.opaque == nil {
			return nil, errors.New("unknown token")
		}
		return s.opaque, nil
	}
	guard := s.byURL[unverifiedIssuer(token)]
	if guard == nil {
		return nil, errors.New("a JWT of no configured issuer")
	}
	return guard, nil
}

// unverifiedIssuer returns the claim iss of a JWT, "" if it has none.
func unverifiedIssuer(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	encoded, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Issuer
}
