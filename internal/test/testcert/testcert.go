// Package testcert makes certificates for the servers of tests. Only tests import it.
package testcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"
)

// Write writes a new certificate of 127.0.0.1 and its key, in PEM. The certificate also signs in
// clients. Its issuer follows in the same file, so that the file also tells what to trust. The pool
// that it returns trusts the issuer.
func Write(certFile, keyFile string, serial int64) (*x509.CertPool, error) {
	issuer, issuerKey, err := sign(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "issuer"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	if err != nil {
		return nil, err
	}
	own, key, err := sign(&x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "gw"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, issuer, issuerKey)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	public := append(encode("CERTIFICATE", own.Raw), encode("CERTIFICATE", issuer.Raw)...)
	for file, text := range map[string][]byte{certFile: public, keyFile: encode("PRIVATE KEY", private)} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return nil, err
		}
	}
	roots := x509.NewCertPool()
	roots.AddCert(issuer)
	return roots, nil
}

// sign returns a new certificate and its key. Without an issuer it is its own.
func sign(template, issuer *x509.Certificate, issuerKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if issuer == nil {
		issuer, issuerKey = template, key
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	raw, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), issuerKey)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(raw)
	return certificate, key, err
}

// encode returns a block of PEM.
func encode(kind string, data []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})
}
