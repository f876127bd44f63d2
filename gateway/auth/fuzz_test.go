package auth_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/org/hosts"
)

// FuzzAuthorization checks that the sender of a request is the holder of the
// exact token in the header, or unauthenticated.
func FuzzAuthorization(f *testing.F) {
	for _, seed := range []string{"Bearer rc_me", "bearer   rc_me", "Bearer rc_me ", "Bearer\trc_me", "Basic rc_me", "Bearer rc_me, Bearer rc_x", "", "Bearer", "Bearer ====", "Bearer rc_me=", "Bearer \u212acafé"} {
		f.Add(seed)
	}
	_, me := gatewaytest.NewToken("me", auth.Token{Scope: auth.ScopeOperator})
	tokens := gatewaytest.NewTokens(f, newFixture(f), me)
	f.Fuzz(func(t *testing.T, header string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header["Authorization"] = []string{header}
		for _, marked := range []bool{false, true} {
			p, err := authenticateAs(tokens, r, marked)
			scheme, rest, _ := strings.Cut(header, " ")
			holds := strings.EqualFold(scheme, "bearer") && strings.TrimLeft(rest, " ") == "rc_me"
			if holds != (p.Kind == identity.Operator) || holds == (err != nil) || err != nil && errcode.CodeOf(err) != errcode.Unauthenticated {
				t.Errorf("%q: %s, %v", header, p, err)
			}
		}
	})
}

// FuzzHostAndOrigin checks that every allowed request names the listener or a
// configured host, and comes from a page of that host, of a configured origin,
// or from no page.
func FuzzHostAndOrigin(f *testing.F) {
	for _, host := range []string{"127.0.0.1:7464", "localhost:7464", "[::1]:7464", "[::ffff:127.0.0.1]:7464", "[::1%lo]:7464", "gw.example.com", "gw.example.com:", "evil.example:7464", "localhost.:7464", "LOCALHOST:07464", "", "@", "a:b:c", "127.1:7464", "[", "]:7464"} {
		f.Add(host, "", false)
		f.Add(host, "http://"+host, true)
		f.Add(host, "null", true)
		f.Add(host, "https://app.example.com", true)
	}
	teapot := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	gw, app := hosts.Authority{Name: "gw.example.com"}, hosts.Authority{Name: "app.example.com"}
	handler := auth.HostCheck{Hosts: []hosts.Authority{gw}, Origins: []hosts.Origin{{Scheme: "https", Host: app}}}.Wrap(teapot)
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7464}
	f.Fuzz(func(t *testing.T, host, origin string, sent bool) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
		if r.Host = host; sent {
			r.Header["Origin"] = []string{origin}
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusTeapot {
			if code := gatewaytest.DecodeError(t, w.Body.String()).Code; w.Code != http.StatusForbidden || code != wire.HostRefused && code != wire.OriginRefused {
				t.Fatalf("host %q, origin %q: %d %s", host, origin, w.Code, w.Body)
			}
			return
		}
		if !isOwnHost(host) {
			t.Errorf("host %q is allowed", host)
		}
		if sent && !strings.EqualFold(origin, "https://app.example.com") {
			u, err := url.Parse(origin)
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || !isOwnHost(u.Host) {
				t.Errorf("origin %q is allowed at %q", origin, host)
			}
		}
	})
}

// isOwnHost is a simple oracle for the hosts of the listener.
func isOwnHost(host string) bool {
	u, err := url.Parse("http://" + host)
	if err != nil {
		return false
	}
	name := strings.ToLower(u.Hostname())
	if name == "gw.example.com" {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return u.Port() == "7464" && (name == "localhost" || err == nil && addr.Unmap().IsLoopback())
}
