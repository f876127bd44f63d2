package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
)

// TokenPrefix begins every token of NewToken, so that people and secret
// scanners recognize them.
const TokenPrefix = "rc_"

// startupCookie is the name of the cookie that is issued for the startup token.
const startupCookie = "rolecall"

// NewToken returns a token of 32 random bytes and its digest.
func NewToken() (token string, digest [sha256.Size]byte) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	token = TokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	return token, sha256.Sum256([]byte(token))
}

// startupToken holds the startup token and its cookie. The zero startupToken
// has neither.
type startupToken struct{ keys atomic.Pointer[startupKeys] }

// startupKeys are one startup token and its cookie.
type startupKeys struct {
	token, session [sha256.Size]byte // digests of the token and of the cookie's value
	cookie         string
}

// StartupToken creates the startup token and replaces a previous one. Its holder is
// the operator until the process ends: with an Authorization header, or in a
// browser with the address /?token=TOKEN.
func (t *TokenStore) StartupToken() (token string) {
	k := new(startupKeys)
	token, k.token = NewToken()
	k.cookie, k.session = NewToken()
	t.keys.Store(k)
	return token
}

// isStartup reports whether digest is the digest of the startup token. It compares in constant
// time.
func (s *startupToken) isStartup(digest [sha256.Size]byte) bool {
	k := s.keys.Load()
	return k != nil && subtle.ConstantTimeCompare(digest[:], k.token[:]) == 1
}

// startupRedirect answers GET /?token=TOKEN with a valid startup token: it sets
// the cookie and redirects to / without the token. It passes other requests to
// next.
func (t *TokenStore) startupRedirect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" || r.Method != http.MethodGet || !r.URL.Query().Has("token") {
			next.ServeHTTP(w, r)
			return
		}
		keys, tokens := t.keys.Load(), r.URL.Query()["token"]
		if keys == nil || len(tokens) != 1 || !t.isStartup(sha256.Sum256([]byte(tokens[0]))) {
			wire.WriteError(w, errInvalidToken(errors.New("not the startup token")))
			return
		}
		t.endSessions(r)
		http.SetCookie(w, &http.Cookie{
			Name: startupCookie, Value: keys.cookie, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
		})
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
}

// byCookie authenticates the holder of the cookie as the operator. It rejects
// requests of pages of other origins, whether they change or only embed
// something.
func (t *TokenStore) byCookie(r *http.Request) (identity.Principal, error) {
	k := t.keys.Load()
	if k == nil || !k.matchesAny(r.CookiesNamed(startupCookie)) {
		return identity.Principal{}, errMissingToken()
	}
	if !isSameSiteRequest(r) {
		return identity.Principal{}, errOriginRefused(r)
	}
	return operator, nil
}

// errOriginRefused returns the error for a request with a cookie that a page of another origin may
// have sent.
func errOriginRefused(r *http.Request) error {
	return errcode.New(wire.OriginRefused, "%s %s with a cookie is allowed only from this gateway's own pages", r.Method, r.URL.Path)
}

// matchesAny reports whether one of the cookies is valid. Other servers on this
// host may set cookies of the same name, because cookies do not distinguish
// ports.
func (k *startupKeys) matchesAny(cookies []*http.Cookie) bool {
	for _, c := range cookies[:min(len(cookies), 16)] {
		digest := sha256.Sum256([]byte(c.Value))
		if subtle.ConstantTimeCompare(digest[:], k.session[:]) == 1 {
			return true
		}
	}
	return false
}

// isSameSiteRequest reports whether a browser sent a request for a page of this
// origin, or by navigation such as a typed address.
func isSameSiteRequest(r *http.Request) bool {
	origin, site := r.Header.Values("Origin"), r.Header.Get("Sec-Fetch-Site")
	switch {
	case len(origin) > 0:
		return len(origin) == 1 && sameOrigin(origin[0], r.Host)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return false
	}
	return site == "" || site == "none" || site == "same-origin" || r.Header.Get("Sec-Fetch-Mode") == "navigate"
}
