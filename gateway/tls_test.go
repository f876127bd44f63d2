package gateway_test

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
)

// writeCertificate writes a new certificate and its key, with a time of change.
func writeCertificate(t *testing.T, certFile, keyFile string, serial int64, changed time.Time) *x509.CertPool {
	t.Helper()
	roots := gatewaytest.WriteCertificate(t, certFile, keyFile, serial)
	for _, file := range []string{certFile, keyFile} {
		if err := os.Chtimes(file, changed, changed); err != nil {
			t.Fatal(err)
		}
	}
	return roots
}

// serveTLS serves the API by TLS. The certificate is looked at with each connection.
func serveTLS(t *testing.T, certFile, keyFile string, log *slog.Logger) (address string) {
	t.Helper()
	l, err := gateway.ListenTCP("127.0.0.1:0", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	secure, err := gateway.WithTLSAt(l, certFile, keyFile, log, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, gatewaytest.TeamModel)
	gatewaytest.ServeListener(t, secure, auth.HostCheck{}.Wrap(f.Handler))
	return l.Addr().String()
}

// serialOf connects and returns the serial number of the certificate.
func serialOf(t *testing.T, address string, roots *x509.CertPool) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// A changed certificate is served to new connections, and old ones go on. A certificate that
// cannot be used changes nothing.
func TestTLS_ReloadsCertificate(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "gw.pem"), filepath.Join(dir, "gw.key")
	start := time.Now().Add(-time.Hour)
	var logs buffer.SyncBuffer
	first := writeCertificate(t, certFile, keyFile, 1, start)
	address := serveTLS(t, certFile, keyFile, slog.New(slog.NewTextHandler(&logs, nil)))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: first}, ForceAttemptHTTP2: true, MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	get := func() {
		t.Helper()
		answer, err := client.Get("https://" + address + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK || answer.ProtoMajor != 1 || answer.TLS.Version < tls.VersionTLS12 {
			t.Errorf("%+v %v", answer, err)
		}
	}
	get()
	second := writeCertificate(t, certFile, keyFile, 2, start.Add(time.Minute))
	if got := serialOf(t, address, second); got != 2 {
		t.Errorf("after the change: certificate %d", got)
	}
	get() // its connection trusts the first certificate only, so it is the same one
	if err := os.WriteFile(certFile, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := serialOf(t, address, second); got != 2 {
			t.Errorf("with a broken file: certificate %d", got)
		}
	}
	if err := os.Remove(certFile); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := serialOf(t, address, second); got != 2 {
			t.Errorf("without the file: certificate %d", got)
		}
	}
	if n := strings.Count(logs.String(), "level=WARN"); n != 2 || !strings.Contains(logs.String(), certFile) {
		t.Errorf("want two warnings with the file's name, got:\n%s", logs.String())
	}
	third := writeCertificate(t, certFile, keyFile, 3, start.Add(2*time.Minute))
	if got := serialOf(t, address, third); got != 3 {
		t.Errorf("after the repair: certificate %d", got)
	}
}

// A certificate that could not be read is tried again, also if nothing has changed that stat tells.
func TestTLS_TriesAgain(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "gw.pem"), filepath.Join(dir, "gw.key")
	start := time.Now().Add(-time.Hour)
	first := writeCertificate(t, certFile, keyFile, 1, start)
	address := serveTLS(t, certFile, keyFile, nil)
	second := writeCertificate(t, certFile, keyFile, 2, start.Add(time.Minute))
	good, err := os.ReadFile(certFile)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text []byte) {
		t.Helper()
		if err := cmp.Or(os.WriteFile(certFile, text, 0o600), os.Chtimes(certFile, start.Add(time.Minute), start.Add(time.Minute))); err != nil {
			t.Fatal(err)
		}
	}
	write(bytes.Repeat([]byte("x"), len(good)))
	if got := serialOf(t, address, first); got != 1 {
		t.Errorf("while it cannot be read: certificate %d", got)
	}
	write(good)
	if got := serialOf(t, address, second); got != 2 {
		t.Errorf("when it can be read: certificate %d", got)
	}
}

func TestTLS_RejectsOldVersionsAndPlainHTTP(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "gw.pem"), filepath.Join(dir, "gw.key")
	roots := writeCertificate(t, certFile, keyFile, 1, time.Now())
	address := serveTLS(t, certFile, keyFile, nil)
	if conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		conn.Close()
		t.Error("TLS 1.1 is served")
	}
	if status, _, _ := gatewaytest.SendRaw(t, http.MethodGet, "http://"+address+"/healthz", nil, nil); status != http.StatusBadRequest {
		t.Errorf("plain HTTP: %d", status)
	}
}

func TestTLS_ErrorsNameFile(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, other := filepath.Join(dir, "gw.pem"), filepath.Join(dir, "gw.key"), filepath.Join(dir, "other.key")
	writeCertificate(t, filepath.Join(dir, "other.pem"), other, 2, time.Now())
	writeCertificate(t, certFile, keyFile, 1, time.Now())
	for name, c := range map[string]struct{ cert, key, want string }{
		"no certificate":        {filepath.Join(dir, "none.pem"), keyFile, "none.pem"},
		"no key":                {certFile, filepath.Join(dir, "none.key"), "none.key"},
		"a key as certificate":  {keyFile, keyFile, keyFile},
		"the key of another":    {certFile, other, other},
		"a directory":           {dir, keyFile, dir},
		"a certificate as key ": {certFile, certFile, certFile},
	} {
		_, err := gateway.ReadCertificate(c.cert, c.key)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("%s: %v", name, err)
		}
		if l, err := gateway.WithTLS(nil, c.cert, c.key, nil); err == nil || l != nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Connections of TLS count as others do: an idle one gives way to a new one.
func TestTLS_ConnectionsAreLimited(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "gw.pem"), filepath.Join(dir, "gw.key")
	roots := writeCertificate(t, certFile, keyFile, 1, time.Now())
	l, err := gateway.ListenTCP("127.0.0.1:0", false, func() gateway.ConnectionLimits {
		return gateway.ConnectionLimits{Total: 2, PerAddress: 2, MinTime: time.Millisecond}
	})
	if err != nil {
		t.Fatal(err)
	}
	secure, err := gateway.WithTLS(l, certFile, keyFile, nil)
	if err != nil {
		t.Fatal(err)
	}
	busy, release := make(chan struct{}), make(chan struct{})
	f := newFixture(t, gatewaytest.TeamModel)
	slow := f.WithAuthenticator(t, auth.AlwaysOperator).Handler
	gatewaytest.ServeListener(t, secure, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" && r.URL.RawQuery == "" {
			slow.ServeHTTP(w, r)
			close(busy)
			<-release
			return
		}
		f.Handler.ServeHTTP(w, r)
	}))
	dial := func() *tls.Conn {
		t.Helper()
		conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: roots})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	working := dial()
	if _, err := io.WriteString(working, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-busy
	idle := dial()
	dial() // displaces idle, and not working
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("the idle connection is open")
	}
	close(release)
	if answer, err := io.ReadAll(working); err != nil || !bytes.Contains(answer, []byte("200 OK")) {
		t.Errorf("%s %v", answer, err)
	}
}
