package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/gatewaytest"
)

// The gateway serves HTTPS with the files of the configuration, and says so. Without them a
// configuration is rejected with the name of the file.
func TestListenHTTP_TLS(t *testing.T) {
	f, dir := newFixture(t), t.TempDir()
	cert, key := filepath.Join(dir, "gw.pem"), filepath.Join(dir, "gw.key")
	doc := func(key string) string {
		return fmt.Sprintf("{kind: gateway, name: api, tls: {cert: %q, key: %q}}", cert, key)
	}
	roots := gatewaytest.WriteCertificate(t, cert, key, 1)
	missing := filepath.Join(dir, "none.key")
	if err := f.ApplyConfig(t.Context(), f.read(doc(missing)), nil); err == nil || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "org.yaml:1:") {
		t.Errorf("without the key: %v", err)
	}
	if l, err := f.ListenHTTP("127.0.0.1:0", f.read(doc(missing))); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("listen without the key: %v %v", l, err)
	}
	cfg := f.read(doc(key))
	if err := f.ApplyConfig(t.Context(), cfg, nil); err != nil {
		t.Fatal(err)
	}
	l, err := f.ListenHTTP("127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://" + l.Addr().String(); l.URL() != want || !l.Encrypted() {
		t.Errorf("got %s, want %s", l.URL(), want)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Serve(ctx) }()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	answer, err := client.Get(l.URL() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	client.CloseIdleConnections()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("got %s", answer.Status)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
