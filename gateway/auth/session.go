package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
)

// Limits of sessions. A session ends after maxSessionIdle without a use, and maxSessionAge after it
// began.
const (
	maxSessions       = 4096
	maxSessionsOfUser = 16
	maxSessionIdle    = 30 * time.Minute
	maxSessionAge     = 12 * time.Hour
)

// CSRFHeader is the header in which a page sends Session.CSRF with each request that is not GET
// or HEAD. A page of another origin can neither read the text nor set the header.
const CSRFHeader = "X-Rolecall-CSRF"

// Session describes the session of a browser.
type Session struct {
	CSRF    string
	Expires time.Time // at the latest; its token, and 30 minutes without a request, may end it sooner
}

// credential is what a session was made of. It is checked with each request, as if the request
// carried it.
type credential struct {
	digest  [sha256.Size]byte // of a configured token or the start-up token; or of idToken, with a prefix
	issuer  string            // name of the issuer of idToken; "" for a configured token or the start-up token
	idToken string
	expires time.Time // of the token; zero if it does not expire
	startup bool      // it is the start-up token, which ends with the process
}

// storedSession is a session in memory.
type storedSession struct {
	credential
	user        identity.UserName // whose share it counts to
	began, used time.Time
	number      uint64 // in the order in which they began
}

// ended reports whether a session has ended by its limits of time.
func (s storedSession) ended(now time.Time) bool {
	return !now.Before(s.expiry(s.began)) || now.Sub(s.used) >= maxSessionIdle
}

// sessionTable holds sessions by the digests of their ids. When it is full, the user with the
// most loses the oldest. The zero value is empty and safe for concurrent use.
type sessionTable struct {
	store  SessionStore // nil keeps sessions in memory only
	saveMu sync.Mutex   // held while the sessions are saved, so that an older state does not replace a newer one

	mu       sync.Mutex // guards what follows
	sessions map[[sha256.Size]byte]storedSession
	count    uint64    // of the sessions that have begun
	saved    time.Time // when the sessions were saved last
}

// add begins a session and returns its id.
func (s *sessionTable) add(c credential, user identity.UserName, now time.Time) (id string) {
	id, digest := NewToken()
	defer s.save(now) // after mu is released
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = map[[sha256.Size]byte]storedSession{}
	}
	s.makeRoom(user, now)
	s.count++
	s.sessions[digest] = storedSession{credential: c, user: user, began: now, used: now, number: s.count}
	return id
}

// makeRoom removes sessions until one of a user can begin. It must be called with mu held.
func (s *sessionTable) makeRoom(user identity.UserName, now time.Time) {
	count, most := map[identity.UserName]int{}, 0
	for digest, one := range s.sessions {
		if one.ended(now) {
			delete(s.sessions, digest)
			continue
		}
		count[one.user]++
		most = max(most, count[one.user])
	}
	switch {
	case count[user] >= maxSessionsOfUser:
		s.removeOldest(func(one storedSession) bool { return one.user == user })
	case len(s.sessions) >= maxSessions:
		s.removeOldest(func(one storedSession) bool { return count[one.user] == most })
	}
}

// removeOldest removes the oldest of the sessions that among accepts. It must be called with mu
// held.
func (s *sessionTable) removeOldest(among func(storedSession) bool) {
	var victim [sha256.Size]byte
	oldest := s.count + 1
	for digest, one := range s.sessions {
		if one.number < oldest && among(one) {
			victim, oldest = digest, one.number
		}
	}
	delete(s.sessions, victim)
}

// find returns the session with an id, unless it has ended.
func (s *sessionTable) find(id string, now time.Time) (storedSession, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active(sha256.Sum256([]byte(id)), now)
}

// use is find for a request that uses the session. The session then does not end for idleness until
// maxSessionIdle from now.
func (s *sessionTable) use(id string, now time.Time) (storedSession, bool) {
	digest := sha256.Sum256([]byte(id))
	saveNow := false
	defer func() {
		if saveNow { // after mu is released
			s.save(now)
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.active(digest, now)
	if ok {
		one.used = now
		s.sessions[digest] = one
		saveNow = now.Sub(s.saved) >= saveUses
	}
	return one, ok
}

// active returns the session with the digest of an id, and removes it if it has ended. It must be
// called with mu held.
func (s *sessionTable) active(digest [sha256.Size]byte, now time.Time) (storedSession, bool) {
	one, ok := s.sessions[digest]
	if !ok || one.ended(now) {
		delete(s.sessions, digest)
		return storedSession{}, false
	}
	return one, true
}

// remove ends the session with an id.
func (s *sessionTable) remove(id string, now time.Time) {
	digest := sha256.Sum256([]byte(id))
	s.mu.Lock()
	_, known := s.sessions[digest]
	delete(s.sessions, digest)
	s.mu.Unlock()
	if known {
		s.save(now)
	}
}

// retain ends the sessions whose credential keep does not accept. A restart does not bring them
// back.
func (s *sessionTable) retain(now time.Time, keep func(credential) bool) {
	s.mu.Lock()
	before := len(s.sessions)
	for digest, one := range s.sessions {
		if !keep(one.credential) {
			delete(s.sessions, digest)
		}
	}
	ended := len(s.sessions) < before
	s.mu.Unlock()
	if ended {
		s.save(now)
	}
}

// BeginSession begins a session for the holder of a configured token or the start-up token, and
// sets its cookie. A session that the browser had before ends. A token of an issuer is rejected:
// its users sign in with a browser.
//
// Errors: Unauthenticated for any other token; OriginRefused unless a page of this gateway has
// sent the request.
func (t *TokenStore) BeginSession(w http.ResponseWriter, r *http.Request, token string) (identity.Principal, Session, error) {
	if !isSameSiteRequest(r) {
		return identity.Principal{}, Session{}, errcode.New(wire.OriginRefused, "sign in only from this gateway's own pages")
	}
	digest := sha256.Sum256([]byte(token))
	p, known, err := t.byOwnToken(r, digest)
	if err == nil && !known {
		err = errInvalidToken(errors.New("unknown token"))
	}
	if p, err = t.admit(r, p, err); err != nil {
		return identity.Principal{}, Session{}, err
	}
	stored, _ := t.lookup(digest)
	return p, t.begin(w, r, credential{digest: digest, expires: stored.Expires, startup: t.isStartup(digest)}, p.User, http.SameSiteStrictMode), nil
}

// begin begins a session and sets its cookie.
func (t *TokenStore) begin(w http.ResponseWriter, r *http.Request, c credential, user identity.UserName, site http.SameSite) Session {
	t.endSessions(r)
	now := t.clock.Now()
	id := t.sessions.add(c, user, now)
	setCookie(w, r, sessionCookie, id, site, 0)
	http.SetCookie(w, &http.Cookie{Name: startupCookie, Path: "/", MaxAge: -1, HttpOnly: true}) // the start-up token may have more rights than the session
	return Session{CSRF: csrfOf(id), Expires: c.expiry(now)}
}

// expiry returns when a session that began at a time ends at the latest.
func (c credential) expiry(began time.Time) time.Time {
	last := began.Add(maxSessionAge)
	if !c.expires.IsZero() && c.expires.Before(last) {
		return c.expires
	}
	return last
}

// FindSession returns the session that a request's cookie names, unless it has ended. It does
// not check the credential of the session.
func (t *TokenStore) FindSession(r *http.Request) (Session, bool) {
	id, one, ok := t.session(r)
	return Session{CSRF: csrfOf(id), Expires: one.expiry(one.began)}, ok
}

// EndSession ends the session of a request and removes its cookie. It reports whether there was
// such a session.
func (t *TokenStore) EndSession(w http.ResponseWriter, r *http.Request) bool {
	_, _, ok := t.session(r)
	t.endSessions(r)
	setCookie(w, r, sessionCookie, "", http.SameSiteStrictMode, -1)
	return ok
}

// endSessions ends all sessions that the cookies of a request name, and forgets their ID tokens.
func (t *TokenStore) endSessions(r *http.Request) {
	set := t.issuers.Load()
	for _, id := range cookieValues(r, sessionCookie) {
		if one, ok := t.sessions.find(id, t.clock.Now()); ok && set != nil && one.idToken != "" {
			set.subjects.forget(one.idToken)
		}
		t.sessions.remove(id, t.clock.Now())
	}
}

// session returns the session that a request's cookie names, with its id. It does not count as a
// use of the session.
func (t *TokenStore) session(r *http.Request) (id string, one storedSession, ok bool) {
	return t.firstSession(r, t.sessions.find)
}

// firstSession returns the session of the first cookie of a request for which find returns one.
// There may be several cookies: other servers on this host may set some of the same name.
func (t *TokenStore) firstSession(r *http.Request, find func(string, time.Time) (storedSession, bool)) (id string, one storedSession, ok bool) {
	for _, id := range cookieValues(r, sessionCookie) {
		if one, ok := find(id, t.clock.Now()); ok {
			return id, one, true
		}
	}
	return "", storedSession{}, false
}

// bySession returns the principal of the session of a request. known reports whether the request
// has a session. Revalidate, which checks again while an answer lasts, does not count as a use of the
// session: it would never end.
func (t *TokenStore) bySession(r *http.Request) (p identity.Principal, known bool, err error) {
	find := t.sessions.use
	if isRevalidation := SenderOf(r) != (identity.Principal{}); isRevalidation {
		find = t.sessions.find
	}
	id, one, ok := t.firstSession(r, find)
	switch {
	case !ok:
		return identity.Principal{}, false, nil
	case !isSameSiteRequest(r):
		return identity.Principal{}, true, errOriginRefused(r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !hasCSRF(r, id):
		return identity.Principal{}, true, errcode.New(wire.OriginRefused, "%s %s with a cookie needs the header %s with the csrf of the session", r.Method, r.URL.Path, CSRFHeader)
	case one.issuer != "":
		p, err = t.byIDToken(r, one.credential)
		return p, true, err
	}
	p, valid, err := t.byOwnToken(r, one.digest)
	if err == nil && !valid {
		err = errInvalidToken(errors.New("the token of the session was removed"))
	}
	return p, true, err
}

// byIDToken returns the principal of a user who has signed in with a browser. It verifies the token
// again if the issuers were replaced meanwhile.
func (t *TokenStore) byIDToken(r *http.Request, c credential) (identity.Principal, error) {
	for {
		set := t.issuers.Load()
		guard := set.signInGuard(c.issuer)
		if guard == nil {
			return identity.Principal{}, errInvalidToken(errors.New("the issuer of the session was removed"))
		}
		p, err := t.rememberedOrVerify(r, set, guard, c.idToken, c.digest)
		if t.issuers.Load() == set {
			return p, err
		}
	}
}

// signInGuard returns the guard of the issuer of this name whose users sign in with a browser. It
// returns nil if there is no such issuer.
func (s *issuerSet) signInGuard(name string) *issuerGuard {
	if s == nil {
		return nil
	}
	return s.signIn[name]
}

// csrfOf returns the text that requests of a session carry. It is derived from the id of the session,
// which no page can read.
func csrfOf(id string) string {
	sum := sha256.Sum256([]byte("csrf\x00" + id))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// hasCSRF reports whether a request has the text of its session, once.
func hasCSRF(r *http.Request, id string) bool {
	sent := r.Header.Values(CSRFHeader)
	return len(sent) == 1 && subtle.ConstantTimeCompare([]byte(sent[0]), []byte(csrfOf(id))) == 1
}

// Names of cookies. Over TLS they have a prefix: a browser then accepts them from this host
// only, by TLS and for all paths.
const (
	sessionCookie = "rolecall_session"
	loginCookie   = "rolecall_login"
	hostPrefix    = "__Host-"
)

// isSecure reports whether the browser reaches this gateway by TLS.
func isSecure(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(BaseURL(r), "https://")
}

// cookieNameFor returns the name of a cookie for the connection of a request.
func cookieNameFor(r *http.Request, name string) string {
	if isSecure(r) {
		return hostPrefix + name
	}
	return name
}

// setCookie sets a cookie that pages cannot read. age is in seconds; 0 is until the browser
// ends, and negative removes the cookie.
func setCookie(w http.ResponseWriter, r *http.Request, name, value string, site http.SameSite, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieNameFor(r, name), Value: value, Path: "/", HttpOnly: true, Secure: isSecure(r), SameSite: site, MaxAge: age,
	})
}

// cookieValues returns the values of the first 16 cookies of a name.
func cookieValues(r *http.Request, name string) (list []string) {
	cookies := r.CookiesNamed(cookieNameFor(r, name))
	for _, c := range cookies[:min(len(cookies), 16)] {
		list = append(list, c.Value)
	}
	return list
}
