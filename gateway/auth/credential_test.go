package auth_test

import (
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// The credential of a token is active as long as the token stays as it is. It does not reveal the
// token.
func TestCredential_OfTokens(t *testing.T) {
	now := time.Now()
	store, err := auth.NewTokenStore(auth.TokenStoreConfig{
		Now:  func() time.Time { return now },
		Role: func(id identity.RoleID) (org.Role, bool) { return org.Role{ID: id, Status: org.Active}, true },
	})
	if err != nil {
		t.Fatal(err)
	}
	text, digest := auth.NewToken()
	_, other := auth.NewToken()
	token := auth.Token{Name: "ann", Digest: digest, Scope: auth.ScopeRole, Role: "r1", Expires: now.Add(time.Hour)}
	replace := func(change func(*auth.Token)) {
		t.Helper()
		changed := token
		change(&changed)
		if err := store.ReplaceTokens([]auth.Token{changed}); err != nil {
			t.Fatal(err)
		}
	}
	replace(func(*auth.Token) {})
	r := admit(t, store, withToken(text))
	credential := store.CredentialOf(r)
	if credential == "" || strings.Contains(credential, text) || credential == hexOf(digest) || !store.IsActiveCredential(credential) {
		t.Fatalf("%q", credential)
	}
	browser := httptest.NewRequest("GET", "http://gateway/", nil)
	browser.AddCookie(signIn(t, store, text))
	browser = admit(t, store, browser)
	if got := store.CredentialOf(browser); got != credential {
		t.Errorf("%q of a session of the token", got)
	}
	for name, change := range map[string]func(*auth.Token){
		"secret": func(x *auth.Token) { x.Digest = other }, "name": func(x *auth.Token) { x.Name = "bob" }, "role": func(x *auth.Token) { x.Role = "r2" },
		"scope": func(x *auth.Token) { x.Scope, x.Role = auth.ScopeOperator, "" }, "expiry": func(x *auth.Token) { x.Expires = now },
	} {
		if replace(change); store.IsActiveCredential(credential) {
			t.Errorf("active with another %s", name)
		}
		for _, r := range []*http.Request{r, browser} { // admitted before the change
			if got := store.CredentialOf(r); got == "" || store.IsActiveCredential(got) {
				t.Errorf("%q of a sender whose token has another %s now", got, name)
			}
		}
	}
	if replace(func(x *auth.Token) { x.Expires = now.Add(2 * time.Hour) }); !store.IsActiveCredential(credential) {
		t.Error("a later end changes the credential")
	}
	if err := store.ReplaceTokens(nil); err != nil || store.IsActiveCredential(credential) || store.IsActiveCredential("") {
		t.Errorf("active without a token: %v", err)
	}
	for _, r := range []*http.Request{r, browser, withToken(text)} {
		if got := store.CredentialOf(r); got == "" || store.IsActiveCredential(got) {
			t.Errorf("%q of a removed token", got)
		}
	}
}

// What cannot be revoked has no credential: the start-up token, and users of issuers.
func TestCredential_OfOthers(t *testing.T) {
	store, err := auth.NewTokenStore(auth.TokenStoreConfig{Role: func(id identity.RoleID) (org.Role, bool) { return org.Role{ID: id, Status: org.Active}, true }})
	if err != nil {
		t.Fatal(err)
	}
	if got := store.CredentialOf(admit(t, store, withToken(store.StartupToken()))); got != "" {
		t.Errorf("%q of the start-up token", got)
	}
	corp := admittedAs(t, identity.ByCaller("corp:ann", "r1"))
	if got := store.CredentialOf(corp); got == "" {
		t.Error("the user of an unknown issuer cannot be revoked")
	}
	if err := store.ReplaceIssuers([]auth.Issuer{{Name: "corp", URL: "https://corp.example.com", User: "sub", Verifier: noVerifier{}}}); err != nil {
		t.Fatal(err)
	}
	if got := store.CredentialOf(corp); got != "" {
		t.Errorf("%q of the user of an issuer", got)
	}
	if got := store.CredentialOf(admittedAs(t, identity.ByCaller("corporation", "r1"))); got == "" {
		t.Error("a caller without an issuer cannot be revoked")
	}
}

// noVerifier verifies no token.
type noVerifier struct{ auth.TokenVerifier }

func withToken(token string) *http.Request {
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// admit returns a request with its sender.
func admit(t *testing.T, store *auth.TokenStore, r *http.Request) *http.Request {
	t.Helper()
	return admitWith(t, store.Authenticate, r)
}

// admittedAs returns a request of a sender.
func admittedAs(t *testing.T, p identity.Principal) *http.Request {
	t.Helper()
	return admitWith(t, func(*http.Request) (identity.Principal, error) { return p, nil }, httptest.NewRequest("POST", "/", nil))
}

func admitWith(t *testing.T, by auth.Authenticator, r *http.Request) *http.Request {
	t.Helper()
	r, err := by.AdmitRequest(r, auth.ScopesOf(auth.ScopeOperator, auth.ScopeRole))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func hexOf(digest [sha256.Size]byte) string {
	const digits = "0123456789abcdef"
	var text []byte
	for _, b := range digest {
		text = append(text, digits[b>>4], digits[b&15])
	}
	return string(text)
}
