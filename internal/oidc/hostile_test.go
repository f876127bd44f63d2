package oidc_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/oidc"
)

// A claim with almost the right name, which users of some issuers can choose, does
// not change issuer, audience or expiry.
func TestService_ReadsClaimsByExactName(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, nil)
	exp := c.now.Load() + 60
	for name, claims := range map[string]string{
		"another audience": fmt.Sprintf(`{"iss":%q,"aud":"others","Aud":"orders","sub":"ann","exp":%d}`, i.url, exp),
		"no audience":      fmt.Sprintf(`{"iss":%q,"AUD":["orders"],"sub":"ann","exp":%d}`, i.url, exp),
		"another issuer":   fmt.Sprintf(`{"iss":"https://evil.example","Iss":%q,"aud":"orders","sub":"ann","exp":%d}`, i.url, exp),
		"no issuer":        fmt.Sprintf(`{"ISS":%q,"aud":"orders","sub":"ann","exp":%d}`, i.url, exp),
		"no expiry":        fmt.Sprintf(`{"iss":%q,"aud":"orders","sub":"ann","EXP":%d}`, i.url, exp),
	} {
		if got, err := s.Verify(t.Context(), sign(i, claims)); errcode.CodeOf(err) != errcode.Unauthenticated {
			t.Errorf("%s: got %s %v, want unauthenticated", name, got, err)
		}
	}
}

// Introspection follows no redirect: the token would be sent along.
func TestService_IntrospectionFollowsNoRedirect(t *testing.T) {
	i, c := newIssuer(t), newClock()
	var got atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		got.Add(1)
		fmt.Fprintf(w, `{"active":true,"aud":"orders","exp":%d}`, c.now.Load()+60)
	}))
	t.Cleanup(other.Close)
	i.introspect = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		s := service(t, i, c, func(config *oidc.Config) {
			config.Introspection = &oidc.Introspection{Endpoint: i.url + "/introspect", Method: method}
		})
		if claims, err := s.Verify(t.Context(), "opaque"); errcode.CodeOf(err) != errcode.ToolUnavailable || got.Load() != 0 {
			t.Errorf("%s: got %s %v; the other host got %d requests", method, claims, err, got.Load())
		}
	}
}

// An answer of 100 MB is not read to its end, compressed or not: it is too long after 1 MiB.
func TestService_EndlessAnswers(t *testing.T) {
	i, c := newIssuer(t), newClock()
	var sent atomic.Int64
	write := func(w io.Writer) {
		for part := bytes.Repeat([]byte(" "), 1<<20); sent.Load() < 100<<20; sent.Add(1 << 20) {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"plain": func(w http.ResponseWriter, _ *http.Request) { write(w) },
		"compressed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			defer packed.Close()
			write(packed)
		},
	} {
		sent.Store(0)
		i.introspect = answer
		s := service(t, i, c, func(config *oidc.Config) {
			config.Introspection = &oidc.Introspection{Endpoint: i.url + "/introspect"}
		})
		if claims, err := s.Verify(t.Context(), "opaque"); errcode.CodeOf(err) != errcode.ToolUnavailable {
			t.Errorf("%s: got %s %v", name, claims, err)
		}
		if name == "plain" && sent.Load() == 100<<20 {
			t.Errorf("%s: all was read", name)
		}
		i.keySet.Store(&answer)
		sent.Store(0)
		if _, err := service(t, i, c, nil).Verify(t.Context(), i.token(c, nil)); errcode.CodeOf(err) != errcode.ToolUnavailable {
			t.Errorf("%s: keys: %v", name, err)
		}
	}
}
