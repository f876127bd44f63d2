package mcpauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/url"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

const (
	assertionLasts = time.Minute
	assertionType  = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" // RFC 7523
	minRSABits     = 2048
)

// clientCredentials returns a request for a token in which the client authenticates. It uses its
// secret, or a JWT that its key signs for this request.
func (s *Server) clientCredentials(at tokenEndpoint) (clientcredentials.Config, error) {
	c := clientcredentials.Config{ClientID: s.config.ClientID, TokenURL: at.url, EndpointParams: url.Values{}}
	if s.signer == nil {
		c.ClientSecret, c.AuthStyle = s.config.ClientSecret, at.authStyle()
		return c, nil
	}
	assertion, err := s.signAssertion(at.issuer)
	if err != nil {
		return c, err
	}
	c.AuthStyle = oauth2.AuthStyleInParams
	c.EndpointParams.Set("client_assertion_type", assertionType)
	c.EndpointParams.Set("client_assertion", assertion)
	return c, nil
}

// signAssertion returns a JWT that authenticates the client at an issuer once (private_key_jwt).
func (s *Server) signAssertion(issuer string) (string, error) {
	now := time.Now()
	claims, err := json.Marshal(map[string]any{
		"iss": s.config.ClientID, "sub": s.config.ClientID, "aud": issuer, "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(assertionLasts).Unix(),
	})
	if err != nil {
		return "", err
	}
	signed, err := s.signer.Sign(claims)
	if err != nil {
		return "", errors.New("sign with the client key: the key cannot sign")
	}
	return signed.CompactSerialize()
}

// newSigner returns a signer with a private key in PEM. It signs with ES256 for a key of the curve
// P-256, and with RS256 for an RSA key. No error contains a part of the key.
func newSigner(text, id string) (jose.Signer, error) {
	key, err := parseKey(text)
	if err != nil {
		return nil, err
	}
	options := (&jose.SignerOptions{}).WithType("JWT")
	if id != "" {
		options = options.WithHeader("kid", id)
	}
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		if key.Curve == elliptic.P256() {
			return jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, options)
		}
	case *rsa.PrivateKey:
		if key.N.BitLen() >= minRSABits {
			return jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, options)
		}
	}
	return nil, errors.New("the client key must be of the curve P-256, or of RSA with at least 2048 bits")
}

// parseKey returns the private key in a text: PKCS #8, SEC 1 or PKCS #1.
func parseKey(text string) (any, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the client key is not a private key in PEM")
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	return nil, errors.New("the client key is not a readable private key; it must not be encrypted")
}
