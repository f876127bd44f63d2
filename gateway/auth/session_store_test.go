package auth_test

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// memoryStore is an auth.SessionStore.
type memoryStore struct {
	text []byte
	err  error // of LoadSessions
}

func (s *memoryStore) LoadSessions() ([]byte, error) { return s.text, s.err }

func (s *memoryStore) SaveSessions(text []byte) error {
	s.text = text
	return nil
}

// newProcess returns the tokens of a process that starts at a time, with ann as an operator.
func newProcess(t *testing.T, store auth.SessionStore, now *time.Time, tokens ...auth.Token) *auth.TokenStore {
	t.Helper()
	s, err := auth.NewTokenStore(auth.TokenStoreConfig{
		Role: func(identity.RoleID) (org.Role, bool) { return org.Role{}, false }, Now: func() time.Time { return *now }, Sessions: store,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ReplaceTokens(tokens); err != nil {
		t.Fatal(err)
	}
	return s
}

func operatorToken(name string) auth.Token {
	return auth.Token{Name: name, Digest: sha256.Sum256([]byte("rc_" + name)), Scope: auth.ScopeOperator}
}

// signIn begins a session and returns its cookie.
func signIn(t *testing.T, s *auth.TokenStore, token string) *http.Cookie {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://gateway/ui/session", nil)
	r.Header.Set("Origin", "http://gateway")
	w := httptest.NewRecorder()
	if _, _, err := s.BeginSession(w, r, token); err != nil {
		t.Fatal(err)
	}
	for _, c := range w.Result().Cookies() {
		if c.Name == "rolecall_session" {
			return c
		}
	}
	t.Fatal("no cookie was set")
	return nil
}

// senderBy returns the user whose session a cookie names, "" for none.
func senderBy(t *testing.T, s *auth.TokenStore, c *http.Cookie) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://gateway/", nil)
	r.AddCookie(c)
	p, err := s.Authenticate(r)
	if err != nil && errcode.CodeOf(err) != errcode.Unauthenticated {
		t.Fatal(err)
	}
	return string(p.User)
}

func TestSessionStore_SurvivesRestart(t *testing.T) {
	store, now := &memoryStore{}, time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	first := newProcess(t, store, &now, operatorToken("ann"), operatorToken("bob"))
	ann, bob := signIn(t, first, "rc_ann"), signIn(t, first, "rc_bob")
	startup := signIn(t, first, first.StartupToken())
	if strings.Contains(string(store.text), ann.Value) || strings.Contains(string(store.text), "rc_") {
		t.Error("the store has a secret")
	}

	now = now.Add(10 * time.Minute)
	second := newProcess(t, store, &now, operatorToken("ann"))
	now = now.Add(time.Minute) // uses are saved once a minute
	for name, tt := range map[string]struct {
		cookie *http.Cookie
		want   string
	}{
		"a token that is still there": {ann, "ann"}, "a token that was removed": {bob, ""}, "the start-up token": {startup, ""},
		"an unknown session": {&http.Cookie{Name: "rolecall_session", Value: "rc_x"}, ""},
	} {
		if got := senderBy(t, second, tt.cookie); got != tt.want {
			t.Errorf("after a restart, %s: user %q, want %q", name, got, tt.want)
		}
	}

	now = now.Add(29 * time.Minute) // after the last use
	third := newProcess(t, store, &now, operatorToken("ann"))
	if got := senderBy(t, third, ann); got != "ann" {
		t.Errorf("a session that was used 29 minutes ago: user %q", got)
	}
	now = now.Add(31 * time.Minute)
	if got := senderBy(t, newProcess(t, store, &now, operatorToken("ann")), ann); got != "" {
		t.Errorf("a session that was used 31 minutes ago: user %q", got)
	}
}

func TestSessionStore_KeepsSignOut(t *testing.T) {
	store, now := &memoryStore{}, time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	first := newProcess(t, store, &now, operatorToken("ann"))
	cookie := signIn(t, first, "rc_ann")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, "http://gateway/ui/session", nil)
	r.AddCookie(cookie)
	if !first.EndSession(httptest.NewRecorder(), r) {
		t.Fatal("the session was not found")
	}
	if got := senderBy(t, newProcess(t, store, &now, operatorToken("ann")), cookie); got != "" {
		t.Errorf("after signing out and a restart: user %q", got)
	}
}

// A token that was removed ends its sessions for good, also if it is configured again.
func TestSessionStore_KeepsRemovalOfToken(t *testing.T) {
	store, now := &memoryStore{}, time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	first := newProcess(t, store, &now, operatorToken("ann"), operatorToken("bob"))
	ann, bob := signIn(t, first, "rc_ann"), signIn(t, first, "rc_bob")
	if err := first.ReplaceTokens([]auth.Token{operatorToken("bob")}); err != nil { // by a reload
		t.Fatal(err)
	}
	if got := senderBy(t, newProcess(t, store, &now, operatorToken("ann"), operatorToken("bob")), ann); got != "" {
		t.Errorf("removed by a reload, configured by a restart: user %q", got)
	}
	newProcess(t, store, &now, operatorToken("ann")) // without bob's
	if got := senderBy(t, newProcess(t, store, &now, operatorToken("bob")), bob); got != "" {
		t.Errorf("removed by a restart, configured by the next: user %q", got)
	}
}

// A store that fails, or that was changed, grants no session.
func TestSessionStore_DamageGrantsNothing(t *testing.T) {
	now := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	store := &memoryStore{}
	cookie := signIn(t, newProcess(t, store, &now, operatorToken("ann")), "rc_ann")
	whole := string(store.text)
	for name, damaged := range map[string]memoryStore{
		"failure":       {text: []byte(whole), err: errors.New("disk")},
		"half":          {text: []byte(whole[:len(whole)/2])},
		"other token":   {text: []byte(strings.Replace(whole, `"token":"`, `"token":"00`, 1))},
		"short id":      {text: []byte(strings.Replace(whole, `"id":"`, `"id":"","x":"`, 1))},
		"not a list":    {text: []byte(`{"id":1}`)},
		"a later clock": {text: []byte(strings.Replace(whole, "2026-01-31", "2020-01-31", 2))},
	} {
		if got := senderBy(t, newProcess(t, &damaged, &now, operatorToken("ann")), cookie); got != "" {
			t.Errorf("%s: user %q", name, got)
		}
	}
}
