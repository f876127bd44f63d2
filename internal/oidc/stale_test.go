package oidc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/rolecall/rolecall/errcode"
)

// A withdrawn key stops verifying tokens although no token with another key came.
func TestService_RejectsWithdrawnKey(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, nil)
	stolen := i.token(c, map[string]any{"exp": c.now.Load() + 86400})
	if _, err := s.Verify(t.Context(), stolen); err != nil {
		t.Fatal(err)
	}
	i.rotate(t, "two")
	c.advance(10 * time.Minute)
	if _, err := s.Verify(t.Context(), stolen); errcode.CodeOf(err) != errcode.Unauthenticated {
		t.Errorf("token of a withdrawn key: got %v", err)
	}
}

// Without keys the service cannot say whether a token is valid: a new token would
// not help, so the error is not unauthenticated.
func TestService_UnreachableKeysAreUnavailable(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, nil)
	token := i.token(c, nil)
	if _, err := s.Verify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	i.down.Store(true)
	c.advance(time.Minute)
	if _, err := s.Verify(t.Context(), token); err != nil {
		t.Errorf("with cached keys: %v", err)
	}
	c.advance(5 * time.Minute)
	if _, err := s.Verify(t.Context(), token); errcode.CodeOf(err) != errcode.ToolUnavailable {
		t.Errorf("got %v, want tool_unavailable", err)
	}
	i.down.Store(false)
	c.advance(time.Second)
	eventually(t, "the token is accepted when the issuer is back", func() bool {
		_, err := s.Verify(t.Context(), token)
		return err == nil
	})
}

// A key set that cannot be used is the issuer's fault, not the token's.
func TestService_UnusableKeySetIsUnavailable(t *testing.T) {
	i, c := newIssuer(t), newClock()
	for name, answer := range map[string]http.HandlerFunc{
		"error status":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusBadGateway) },
		"no JSON":       func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"malformed key": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[{"kty":"RSA","kid":"one"}]}`) },
		"too long": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"keys":[],"x":%q}`, strings.Repeat("x", 2<<20))
		},
		"broken off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			i.keySet.Store(&answer)
			if _, err := service(t, i, c, nil).Verify(t.Context(), i.token(c, nil)); errcode.CodeOf(err) != errcode.ToolUnavailable {
				t.Errorf("got %v, want tool_unavailable", err)
			}
		})
	}
	empty := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[]}`) })
	i.keySet.Store(&empty)
	if _, err := service(t, i, c, nil).Verify(t.Context(), i.token(c, nil)); errcode.CodeOf(err) != errcode.Unauthenticated {
		t.Errorf("empty key set: got %v, want unauthenticated", err)
	}
}

// eventually waits until done reports true. The library returns fetched keys to
// its callers a moment before it caches them.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 10 s", what)
		}
	}
}

// The discovery document is fetched again with the keys, so that an issuer may change
// its algorithms and the address of its keys.
func TestService_RefreshesDiscovery(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, nil)
	if _, err := s.Verify(t.Context(), i.token(c, nil)); err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.keys.Algorithms = []string{gooidc.ES256}
	i.keys.PublicKeys = []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "two", Algorithm: gooidc.ES256}}
	c.advance(10 * time.Minute)
	if _, err := s.Verify(t.Context(), oidctest.SignIDToken(key, "two", gooidc.ES256, i.claims(c, nil))); err != nil {
		t.Errorf("token with the new algorithm: %v", err)
	}
}
