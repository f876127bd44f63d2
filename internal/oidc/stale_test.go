package oidc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"runtime"
	"testing"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/rolecall/rolecall/errcode"
)

// A key that the issuer withdrew vouches for nobody, though no token with
// another key ever came.
func TestAWithdrawnKeyVouchesForNobody(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, nil)
	stolen := i.token(c, map[string]any{"exp": c.now.Load() + 86400})
	if _, err := s.Verify(t.Context(), stolen); err != nil {
		t.Fatal(err)
	}
	i.rotate(t, "two")
	c.advance(10 * time.Minute)
	if _, err := s.Verify(t.Context(), stolen); errcode.Of(err) != errcode.Unauthenticated {
		t.Errorf("a token of a withdrawn key: got %v", err)
	}
}

// Keys that cannot be had say nothing about a token: a new one would not help.
func TestKeysThatCannotBeHadAreNotTheTokensFault(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, nil)
	token := i.token(c, nil)
	if _, err := s.Verify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	i.down.Store(true)
	c.advance(time.Minute)
	if _, err := s.Verify(t.Context(), token); err != nil {
		t.Errorf("with the keys it has: %v", err)
	}
	c.advance(5 * time.Minute)
	if _, err := s.Verify(t.Context(), token); errcode.Of(err) != errcode.ToolUnavailable {
		t.Errorf("got %v, want tool_unavailable", err)
	}
	i.down.Store(false)
	c.advance(time.Second)
	soon(t, "a token when the issuer is back", func() bool {
		_, err := s.Verify(t.Context(), token)
		return err == nil
	})
}

// soon waits for something that follows an answer of the issuer: the library
// hands keys to those who wait before it keeps them.
func soon(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%s: it does not come to that", what)
		}
	}
}

// What the discovery document says is no older than the keys: an issuer whose
// keys have moved, and sign otherwise, is not lost.
func TestAnIssuerThatMovedIsFoundAgain(t *testing.T) {
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
		t.Errorf("a token of the new kind: %v", err)
	}
}
