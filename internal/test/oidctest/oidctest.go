// Package oidctest runs an OpenID Connect issuer for tests, on loopback and with keys
// that rotate. It signs valid tokens and invalid tokens of several kinds.
//
//	idp := oidctest.NewIssuer(t)
//	token := idp.SignToken(`{"iss": …, "aud": "orders", "exp": …}`)
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

// Issuer serves its discovery document and one RS256 key until the end of the test. It
// is safe for concurrent use.
type Issuer struct {
	URL string // also the value of the claim iss
	t   testing.TB

	mu        sync.Mutex // guards the fields below
	provider  *oidctest.Server
	key       *rsa.PrivateKey
	keyNumber int // the number in the key's id
}

// NewIssuer starts an issuer. Its first key has the id k1.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{t: t}
	i.start(i)
	return i
}

// start serves the issuer by a handler.
func (i *Issuer) start(handler http.Handler) {
	i.t.Helper()
	i.provider = &oidctest.Server{}
	i.RotateKey()
	server := httptest.NewServer(handler)
	i.t.Cleanup(server.Close)
	i.URL = server.URL
	i.provider.SetIssuer(i.URL)
}

// ServeHTTP implements http.Handler.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.provider.ServeHTTP(w, r)
}

// RotateKey replaces the key. Tokens signed with the old key are no longer valid.
func (i *Issuer) RotateKey() {
	i.t.Helper()
	key := newKey(i.t)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keyNumber++
	i.key = key
	i.provider.PublicKeys = []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: i.keyID(), Algorithm: oidc.RS256}}
}

func newKey(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// keyID returns the id of the current key. It must be called with mu held.
func (i *Issuer) keyID() string { return fmt.Sprint("k", i.keyNumber) }

// SignToken signs claims, a JSON object, with the current key.
func (i *Issuer) SignToken(claims string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return oidctest.SignIDToken(i.key, i.keyID(), oidc.RS256, claims)
}

// SignWithWrongKey signs claims with another key, under the id of the current one.
func (i *Issuer) SignWithWrongKey(claims string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return oidctest.SignIDToken(newKey(i.t), i.keyID(), oidc.RS256, claims)
}

// UnsignedToken returns a token with the algorithm "none".
func (i *Issuer) UnsignedToken(claims string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	encode := base64.RawURLEncoding.EncodeToString
	return encode(fmt.Appendf(nil, `{"alg":"none","kid":%q}`, i.keyID())) + "." + encode([]byte(claims)) + "."
}

// SignWithPublicKey signs claims by HS256 with the public key as the secret.
func (i *Issuer) SignWithPublicKey(claims string) string {
	i.t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	public, err := json.Marshal(jose.JSONWebKey{Key: i.key.Public(), KeyID: i.keyID(), Algorithm: oidc.RS256, Use: "sig"})
	if err != nil {
		i.t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: public, KeyID: i.keyID()}}, nil)
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
