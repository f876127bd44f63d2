// Package oidctest owns an OpenID Connect issuer for tests: on loopback, with
// keys that rotate, and tokens of every kind of wrong.
//
//	idp := issuertest.New(t)
//	token := idp.Token(`{"iss": …, "aud": "orders", "exp": …}`)
package oidctest

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/go-jose/go-jose/v4"
)

// Issuer serves its discovery document and one RS256 key until the end of the
// test. Safe for concurrent use.
type Issuer struct {
	URL string // also the claim iss
	t   testing.TB

	mu       sync.Mutex // guards what follows
	provider *oidctest.Server
	key      *rsa.PrivateKey
	turn     int // of the key, which is its id too
}

// New starts an issuer, whose first key has the id k1.
func New(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{t: t, provider: &oidctest.Server{}}
	i.Rotate()
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.URL = server.URL
	i.provider.SetIssuer(i.URL)
	return i
}

// ServeHTTP implements http.Handler.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.provider.ServeHTTP(w, r)
}

// Rotate replaces the key: what the old one signed is no longer vouched for.
func (i *Issuer) Rotate() {
	i.t.Helper()
	key := newKey(i.t)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.turn++
	i.key = key
	i.provider.PublicKeys = []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: i.id(), Algorithm: oidc.RS256}}
}

func newKey(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// id wants mu held.
func (i *Issuer) id() string { return fmt.Sprint("k", i.turn) }

// Token signs claims, a JSON object, with the key.
func (i *Issuer) Token(claims string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return oidctest.SignIDToken(i.key, i.id(), oidc.RS256, claims)
}

// WronglySigned signs claims with another key that bears the id of the issuer's.
func (i *Issuer) WronglySigned(claims string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return oidctest.SignIDToken(newKey(i.t), i.id(), oidc.RS256, claims)
}

// Unsigned gives claims under the algorithm none.
func (i *Issuer) Unsigned(claims string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	encode := base64.RawURLEncoding.EncodeToString
	return encode(fmt.Appendf(nil, `{"alg":"none","kid":%q}`, i.id())) + "." + encode([]byte(claims)) + "."
}

// Symmetric signs claims with the public key as the secret of HS256.
func (i *Issuer) Symmetric(claims string) string {
	i.t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	public, err := json.Marshal(jose.JSONWebKey{Key: i.key.Public(), KeyID: i.id(), Algorithm: oidc.RS256, Use: "sig"})
	if err != nil {
		i.t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: public, KeyID: i.id()}}, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := signer.Sign([]byte(claims))
	if err != nil {
		i.t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return text
}
