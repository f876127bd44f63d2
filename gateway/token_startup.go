package gateway

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// TokenPrefix begins every token that NewToken makes, so that people and
// scanners know one when they see it.
const TokenPrefix = "rc_"

// cookieName is the cookie that the start-up token is traded for.
const cookieName = "rolecall"

// NewToken makes a token of 32 random bytes and gives its digest.
func NewToken() (token string, digest [sha256.Size]byte) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // it never fails
	token = TokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	return token, sha256.Sum256([]byte(token))
}

// startupToken is the start-up token and the cookie for it. The zero startup has
// neither.
type startupToken struct{ keys atomic.Pointer[startupKeys] }

type startupKeys struct {
	token, session [sha256.Size]byte // digests
	cookie         string
}

// Startup makes the start-up token, in the place of one that was there. Its
// holder is the operator until the process ends: by an Authorization header, or
// in a browser by the address /?token=TOKEN.
func (t *Tokens) Startup() (token string) {
	k := new(startupKeys)
	token, k.token = NewToken()
	k.cookie, k.session = NewToken()
	t.keys.Store(k)
	return token
}

func (s *startupToken) isStartup(digest [sha256.Size]byte) bool {
	k := s.keys.Load()
	return k != nil && subtle.ConstantTimeCompare(digest[:], k.token[:]) == 1
}

// startupRedirect answers a GET of / with the start-up token in its query: it sets the
// cookie and leads to / without the token. Other requests are next's.
func (t *Tokens) startupRedirect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" || r.Method != http.MethodGet || !r.URL.Query().Has("token") {
			next.ServeHTTP(w, r)
			return
		}
		k, given := t.keys.Load(), r.URL.Query()["token"]
		if k == nil || len(given) != 1 || !t.isStartup(sha256.Sum256([]byte(given[0]))) {
			refuseWith(w, badToken(errors.New("it is not the start-up token")))
			return
		}
		http.SetCookie(w, &http.Cookie{
			Name: cookieName, Value: k.cookie, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
		})
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
}

// byCookie gives the operator to who has the cookie. A page of another origin
// cannot use it, neither to change something nor to include what is shown.
func (t *Tokens) byCookie(r *http.Request) (identity.Principal, error) {
	k := t.keys.Load()
	if k == nil || !k.among(r.CookiesNamed(cookieName)) {
		return identity.Principal{}, noToken()
	}
	if !isSameSite(r) {
		return identity.Principal{}, errcode.New(OriginRefused, "%s %s with a cookie is for this gateway's own pages", r.Method, r.URL.Path)
	}
	return operator, nil
}

// among says whether one of the cookies is ours. Every server on this host may
// set some of that name.
func (k *startupKeys) among(cookies []*http.Cookie) bool {
	for _, c := range cookies[:min(len(cookies), 16)] {
		digest := sha256.Sum256([]byte(c.Value))
		if subtle.ConstantTimeCompare(digest[:], k.session[:]) == 1 {
			return true
		}
	}
	return false
}

// isSameSite says whether a browser sent a request for a page of this origin, or
// because somebody typed its address.
func isSameSite(r *http.Request) bool {
	origin, site := r.Header.Values("Origin"), r.Header.Get("Sec-Fetch-Site")
	switch {
	case len(origin) > 0:
		return len(origin) == 1 && sameOrigin(origin[0], r.Host)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return false
	}
	return site == "" || site == "none" || site == "same-origin" || r.Header.Get("Sec-Fetch-Mode") == "navigate"
}
