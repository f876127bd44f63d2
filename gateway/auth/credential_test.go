package auth_test

import (
	"crypto/sha256"
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
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set("Authorization", "Bearer "+text)
	credential := store.CredentialOf(r)
	if credential == "" || strings.Contains(credential, text) || credential == hexOf(digest) || !store.IsActiveCredential(credential) {
		t.Fatalf("%q", credential)
	}
	browser := httptest.NewRequest("POST", "http://gateway/", nil)
	browser.AddCookie(signIn(t, store, text))
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
	}
	if replace(func(x *auth.Token) { x.Expires = now.Add(2 * time.Hour) }); !store.IsActiveCredential(credential) {
		t.Error("a later end changes the credential")
	}
	if err := store.ReplaceTokens(nil); err != nil || store.IsActiveCredential(credential) || store.IsActiveCredential("") {
		t.Errorf("active without a token: %v", err)
	}
	if got := store.CredentialOf(r); got != "" {
		t.Errorf("%q of a removed token", got)
	}
	startup := httptest.NewRequest("POST", "/", nil)
	startup.Header.Set("Authorization", "Bearer "+store.StartupToken())
	for _, r := range []string{store.CredentialOf(startup), store.CredentialOf(httptest.NewRequest("POST", "/", nil))} {
		if r != "" {
			t.Errorf("%q", r)
		}
	}
}

func hexOf(digest [sha256.Size]byte) string {
	const digits = "0123456789abcdef"
	var text []byte
	for _, b := range digest {
		text = append(text, digits[b>>4], digits[b&15])
	}
	return string(text)
}
