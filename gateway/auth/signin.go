package auth

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/fair"
)

// CallbackPath is the path to which issuers send browsers back.
const CallbackPath = "/ui/callback"

// maxLoginTime is how long a user may take to sign in.
const maxLoginTime = 10 * time.Minute

// Limits of what is kept of an attempt.
const (
	maxLocalPath = 512
	maxLoginText = 4096 // bytes of the cookie
	maxIDToken   = 8192 // bytes
)

// loginAttempt is an attempt to sign in. It is kept in a sealed cookie. So attempts that never
// finish take no memory, and only the browser that began an attempt can finish it.
type loginAttempt struct {
	SignInAttempt
	Issuer  string // name
	To      string // local path
	Expires time.Time
}

// sealer seals texts with a key of this process.
type sealer struct{ aead cipher.AEAD }

func newSealer() sealer {
	var key [32]byte
	_, _ = rand.Read(key[:])                       // never fails
	block, _ := aes.NewCipher(key[:])              // never fails with a key of this length
	aead, _ := cipher.NewGCMWithRandomNonce(block) // never fails with AES
	return sealer{aead}
}

// seal returns an attempt as the value of a cookie.
func (s sealer) seal(a loginAttempt) string {
	text, _ := json.Marshal(a) // texts and a time always marshal
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, []byte(loginCookie)))
}

// open returns the attempt in the value of a cookie. It reports false for a text that seal has not
// returned.
func (s sealer) open(value string) (a loginAttempt, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || len(value) > maxLoginText {
		return a, false
	}
	text, err := s.aead.Open(nil, nil, sealed, []byte(loginCookie))
	return a, err == nil && json.Unmarshal(text, &a) == nil
}

// randomText returns 256 random bits as 43 letters, digits, "-" and "_".
func randomText() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// isLocalPath reports whether a text is a path of this gateway, with or without a query, and
// no browser reads it as another address.
func isLocalPath(text string) bool {
	u, err := url.Parse(text)
	return err == nil && len(text) <= maxLocalPath && strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '\\' || r >= 0x7F }) &&
		u.Scheme == "" && u.Host == "" && u.User == nil
}

// BeginSignIn begins an attempt to sign in with an issuer, sets its cookie and returns where to
// send the browser. issuer is its name; "" is the only one. to is the local path to which the
// browser comes at the end; "" is "/".
//
// Errors:
//
//   - RouteNotFound if no issuer with this name lets users sign in with a browser, or if the
//     address of the gateway is not known
//   - InvalidArguments for another path
//   - ToolUnavailable if the issuer does not answer
func (t *TokenStore) BeginSignIn(w http.ResponseWriter, r *http.Request, issuer, to string) (string, error) {
	set := t.issuers.Load()
	if issuer == "" {
		issuer = set.onlySignIn()
	}
	guard, base := set.signInGuard(issuer), BaseURL(r)
	switch {
	case guard == nil || base == "":
		return "", errcode.New(wire.RouteNotFound, "there is no issuer %.100q with which users sign in here", issuer)
	case to == "":
		to = "/"
	case !isLocalPath(to):
		return "", errcode.New(errcode.InvalidArguments, "query parameter \"to\" is not a path of this gateway").With("field", "to")
	}
	a := loginAttempt{
		SignInAttempt: SignInAttempt{Redirect: base + set.callback(issuer), State: randomText(), Nonce: randomText(), Verifier: randomText()},
		Issuer:        issuer, To: to, Expires: t.clock.Now().Add(maxLoginTime),
	}
	ctx, cancel := context.WithTimeout(r.Context(), verifyTimeout)
	defer cancel()
	target, err := guard.issuer.SignIn.AuthorizationURL(ctx, a.SignInAttempt)
	if err != nil {
		return "", guard.errUnavailable(err)
	}
	setCookie(w, r, loginCookie, t.sealer.seal(a), http.SameSiteLaxMode, int(maxLoginTime/time.Second))
	return target, nil
}

// callback returns the path, and the query, to which an issuer sends browsers back. Of several issuers each has its
// own: an issuer may send a browser on to another one, and would be sent the code of that one. Not all of them name
// themselves in their answers (RFC 9207).
func (s *issuerSet) callback(issuer string) string {
	if len(s.signIn) == 1 {
		return CallbackPath
	}
	return CallbackPath + "?" + url.Values{"issuer": {issuer}}.Encode()
}

// cameBack reports whether a browser came back to the address of its attempt.
func (a loginAttempt) cameBack(q url.Values) bool {
	u, err := url.Parse(a.Redirect)
	return err == nil && slices.Equal(u.Query()["issuer"], q["issuer"])
}

// onlySignIn returns the name of the issuer with which users sign in, "" if there is not just one.
func (s *issuerSet) onlySignIn() string {
	if s == nil || len(s.signIn) != 1 {
		return ""
	}
	for name := range s.signIn {
		return name
	}
	return ""
}

// SignInIssuers returns the names of the issuers with which users sign in, sorted.
func (t *TokenStore) SignInIssuers() []string {
	set := t.issuers.Load()
	if set == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(set.signIn))
}

// FinishSignIn begins a session for a user who comes back from an issuer. It sets the cookie
// of the session and returns the local path to which the attempt leads.
//
// Errors:
//
//   - Unauthenticated if the browser has not begun this attempt or took too long, or if the
//     issuer has not signed the user in
//   - RateLimited for an address with too many attempts that failed
//   - InsufficientPermissions if the user has no role here
//   - ToolUnavailable if the issuer does not answer
func (t *TokenStore) FinishSignIn(w http.ResponseWriter, r *http.Request) (string, error) {
	setCookie(w, r, loginCookie, "", http.SameSiteLaxMode, -1)
	q := r.URL.Query()
	a, ok := t.attemptOf(r, q["state"])
	switch {
	case !ok || !t.clock.Now().Before(a.Expires):
		return "", errSignInFailed("this browser has not begun to sign in, or took too long")
	case !a.cameBack(q):
		return "", errSignInFailed("the answer is of another issuer than this browser was sent to")
	case len(q["error"]) > 0:
		return "", errSignInFailed("the issuer has not signed you in")
	case len(q["code"]) != 1 || len(q["iss"]) > 1:
		return "", errSignInFailed("the answer of the issuer is malformed")
	}
	guard := t.issuers.Load().signInGuard(a.Issuer)
	if guard == nil {
		return "", errSignInFailed("the issuer is no longer configured")
	}
	token, err := guard.exchangeCode(r.Context(), t.ClientAddress(r), a.SignInAttempt, q.Get("code"), q.Get("iss"))
	if err != nil {
		return "", err
	}
	c := credential{digest: sha256.Sum256([]byte("session\x00" + token)), issuer: a.Issuer, idToken: token, expires: unverifiedExpiry(token)}
	p, err := t.byIDToken(r, c)
	if p, err = t.admit(r, p, err); err != nil {
		return "", err
	}
	t.begin(w, r, c, p.User, http.SameSiteLaxMode) // with Strict, the browser would not send it when it follows the redirect
	return a.To, nil
}

// unverifiedExpiry returns the claim exp of a JWT, the zero time if it has none.
func unverifiedExpiry(token string) time.Time {
	_, rest, _ := strings.Cut(token, ".")
	encoded, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	var claims struct {
		Expires float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Expires <= 0 || claims.Expires > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Expires), 0)
}

// attemptOf returns the attempt of the browser of a request with a state.
func (t *TokenStore) attemptOf(r *http.Request, state []string) (loginAttempt, bool) {
	for _, value := range cookieValues(r, loginCookie) {
		a, ok := t.sealer.open(value)
		if ok && len(state) == 1 && subtle.ConstantTimeCompare([]byte(state[0]), []byte(a.State)) == 1 {
			return a, true
		}
	}
	return loginAttempt{}, false
}

// errSignInFailed returns the error for an attempt to sign in.
func errSignInFailed(why string) error {
	return errcode.New(errcode.Unauthenticated, "sign in: %s; begin again at /ui/login", why)
}

// exchangeCode exchanges a code for a verified ID token. The places of an issuer, and the
// attempts that may fail, are shared among the addresses of senders.
func (g *issuerGuard) exchangeCode(ctx context.Context, address string, a SignInAttempt, code, answered string) (string, error) {
	if wait := g.failures.WaitTime(address); wait > 0 {
		return "", wire.RateLimited(wait, "too many attempts of this address to sign in have failed")
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	release, err := g.places.Acquire(ctx, fair.Key{Owner: address, Member: address})
	switch {
	case errors.Is(err, fair.ErrQueueFull):
		return "", wire.RateLimited(time.Second, "too many users sign in")
	case err != nil:
		return "", g.errUnavailable(err)
	}
	defer release()
	token, err := g.issuer.SignIn.ExchangeCode(ctx, a, code, answered)
	switch {
	case errcode.CodeOf(err) == errcode.Unauthenticated:
		g.failures.Take(address)
		return "", errcode.Wrap(errcode.Unauthenticated, err, "sign in: the issuer %s has not signed you in; begin again at /ui/login", g.issuer.Name)
	case err != nil:
		return "", g.errUnavailable(err)
	case len(token) > maxIDToken:
		return "", errcode.New(errcode.InsufficientPermissions, "the token of the issuer has more than %d bytes; configure it to send fewer claims", maxIDToken)
	}
	return token, nil
}

// admit returns the sender of a session that begins now, as Authenticate does.
func (t *TokenStore) admit(r *http.Request, p identity.Principal, err error) (identity.Principal, error) {
	if p, err = t.withActiveRole(p, err); err != nil {
		return identity.Principal{}, err
	}
	return t.LimitSender(r, p)
}
