package mcpauth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
)

// keyText returns a private key in PEM.
func keyText(t *testing.T, key crypto.Signer) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func ecKey(t *testing.T, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func rsaKey(t *testing.T, bits int) crypto.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newKeyFixture returns a fixture whose client authenticates with a key.
func newKeyFixture(t *testing.T, key crypto.Signer) *fixture {
	fx := newFixture(t)
	fx.upstream.Keys["job"] = key.Public()
	fx.config.PerCaller, fx.config.Grant = false, mcpauth.ClientCredentials
	fx.config.ClientID, fx.config.ClientKey, fx.config.Issuer = "job", keyText(t, key), fx.upstream.Issuer.URL()
	return fx
}

// The issuer of the fixture accepts an assertion once, for itself, and signed with the key it knows.
func TestClientKey_Authenticates(t *testing.T) {
	for name, key := range map[string]crypto.Signer{"ES256": ecKey(t, elliptic.P256()), "RS256": rsaKey(t, 2048)} {
		t.Run(name, func(t *testing.T) {
			fx := newKeyFixture(t, key)
			a := fx.server().Authorizer(mcpauth.Operator)
			for range 2 {
				if err := fx.connect(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				fx.upstream.Revoke(true)
				a = fx.server().Authorizer(mcpauth.Operator)
			}
			if secrets := strings.Join(a.Secrets(), " "); strings.Contains(secrets, "PRIVATE") {
				t.Errorf("the key is in the secrets of a connection: %s", secrets)
			}
		})
	}
}

// After the issuer knows another key, the configuration needs that key.
func TestClientKey_Rotates(t *testing.T) {
	fx := newKeyFixture(t, ecKey(t, elliptic.P256()))
	next := ecKey(t, elliptic.P256())
	fx.upstream.Change(func() { fx.upstream.Keys["job"] = next.Public() })
	err := fx.connect(t.Context(), fx.server().Authorizer(mcpauth.Operator))
	fx.wantCode(err, errcode.ToolUnavailable, "the key before")
	fx.config.ClientKey = keyText(t, next)
	if err := fx.connect(t.Context(), fx.server().Authorizer(mcpauth.Operator)); err != nil {
		t.Errorf("the key after: %v", err)
	}
}

func TestClientKey_InvalidConfiguration(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := keyText(t, ecKey(t, elliptic.P256()))
	for name, change := range map[string]func(*mcpauth.Config){
		"not PEM":             func(c *mcpauth.Config) { c.ClientKey = "canary-5a1f" },
		"not a key":           func(c *mcpauth.Config) { c.ClientKey = "-----BEGIN X-----\nY2FuYXJ5LTVhMWY=\n-----END X-----\n" },
		"another curve":       func(c *mcpauth.Config) { c.ClientKey = keyText(t, ecKey(t, elliptic.P384())) },
		"a short key":         func(c *mcpauth.Config) { c.ClientKey = keyText(t, rsaKey(t, 1024)) },
		"another algorithm":   func(c *mcpauth.Config) { c.ClientKey = keyText(t, edwards) },
		"without an issuer":   func(c *mcpauth.Config) { c.Issuer = "" },
		"without a client":    func(c *mcpauth.Config) { c.ClientID = "" },
		"with a secret":       func(c *mcpauth.Config) { c.ClientSecret = "s" },
		"for a login":         func(c *mcpauth.Config) { c.Grant = mcpauth.AuthorizationCode },
		"neither key nor one": func(c *mcpauth.Config) { c.ClientKey = "" },
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			c := mcpauth.Config{Server: "web", URL: fx.upstream.URL(), Logins: fx.logins, Grant: mcpauth.ClientCredentials, ClientID: "job", ClientKey: good, Issuer: fx.upstream.Issuer.URL()}
			change(&c)
			_, err := mcpauth.New(c)
			fx.wantCode(err, errcode.InvalidConfig, name)
			if err != nil && (strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "PRIVATE")) {
				t.Errorf("the error has a part of the key: %v", err)
			}
		})
	}
}
