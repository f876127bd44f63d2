package gatewaytest

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/test/testcert"
)

// TestTime is the current time in the tests of tokens.
var TestTime = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// NewTokens returns Tokens for the roles of a fixture at TestTime.
func NewTokens(t testing.TB, f *Fixture, list ...auth.Token) *auth.TokenStore {
	t.Helper()
	tokens, err := auth.NewTokenStore(auth.TokenStoreConfig{Role: f.Runtime.Org().RoleByID, Now: func() time.Time { return TestTime }})
	if err != nil {
		t.Fatal(err)
	}
	if err := tokens.ReplaceTokens(list); err != nil {
		t.Fatal(err)
	}
	return tokens
}

// NewToken returns the token rc_NAME and its description.
func NewToken(name string, token auth.Token) (string, auth.Token) {
	token.Name, token.Digest = name, sha256.Sum256([]byte("rc_"+name))
	return "rc_" + name, token
}

// ServeAPI serves the API of a fixture behind a HostCheck on loopback and
// returns its URL.
func ServeAPI(t testing.TB, f *Fixture, check auth.HostCheck) string {
	t.Helper()
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: check.Tokens.Authenticate, Version: "v0"})
	if err != nil {
		t.Fatal(err)
	}
	return ServeChecked(t, check, WithOpenAPICheck(t, handler))
}

// ServeChecked serves a handler behind a HostCheck on loopback and
// returns its URL.
func ServeChecked(t testing.TB, check auth.HostCheck, handler http.Handler) string {
	t.Helper()
	l, err := gateway.ListenTCP("127.0.0.1:0", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	ServeListener(t, l, check.Wrap(handler))
	return "http://" + l.Addr().String()
}

// SendRaw sends a request without following redirects and returns status,
// header and body.
func SendRaw(t testing.TB, method, url string, header http.Header, body io.Reader) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		if name == "Host" {
			r.Host = values[0]
			continue
		}
		r.Header[name] = values
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

// BearerHeader returns a header with a bearer token.
func BearerHeader(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// ServeListener serves a handler on l until the test ends.
func ServeListener(t testing.TB, l net.Listener, handler http.Handler) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- gateway.Serve(ctx, l, handler, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

// ServeSocket serves a fixture on a socket and returns its directory.
func ServeSocket(t *testing.T, f *Fixture) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l, err := gateway.ListenUnix(dir)
	if err != nil {
		t.Fatal(err)
	}
	ServeListener(t, l, f.Handler)
	return dir
}

// OverBothTransports runs a test with a client over a socket and with one in
// process.
func OverBothTransports(t *testing.T, test func(t *testing.T, dial func(*Fixture) *client.Client)) {
	t.Run("socket", func(t *testing.T) {
		test(t, func(f *Fixture) *client.Client {
			c, err := client.Dial(ServeSocket(t, f))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			return c
		})
	})
	t.Run("local", func(t *testing.T) { test(t, (*Fixture).LocalClient) })
}

// WriteCertificate writes a new certificate of 127.0.0.1 and its key, in PEM. It returns a pool
// that trusts the certificate.
func WriteCertificate(t testing.TB, certFile, keyFile string, serial int64) *x509.CertPool {
	t.Helper()
	roots, err := testcert.Write(certFile, keyFile, serial)
	if err != nil {
		t.Fatal(err)
	}
	return roots
}
