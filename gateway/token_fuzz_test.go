package gateway_test

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
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
)

// FuzzAuthorization: whatever stands in the header, its sender is the holder of
// the token that stands there letter by letter, or nobody.
func FuzzAuthorization(f *testing.F) {
	for _, seed := range []string{"Bearer rc_me", "bearer   rc_me", "Bearer rc_me ", "Bearer\trc_me", "Basic rc_me", "Bearer rc_me, Bearer rc_x", "", "Bearer", "Bearer ====", "Bearer rc_me=", "Bearer \u212acafé"} {
		f.Add(seed)
	}
	_, me := holder("me", gateway.Token{Operator: true})
	tokens := known(f, open(f, team), me)
	f.Fuzz(func(t *testing.T, header string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header["Authorization"] = []string{header}
		for _, marked := range []bool{false, true} {
			p, err := authenticateAs(tokens, r, marked)
			scheme, rest, _ := strings.Cut(header, " ")
			holds := strings.EqualFold(scheme, "bearer") && strings.TrimLeft(rest, " ") == "rc_me"
			if holds != (p.Kind == identity.Operator) || holds == (err != nil) || err != nil && errcode.Of(err) != errcode.Unauthenticated {
				t.Errorf("%q: %s, %v", header, p, err)
			}
		}
	})
}

// FuzzHostAndOrigin: what is let through names the listener or a configured
// host, and was sent by a page of that host, of a configured origin, or by none.
func FuzzHostAndOrigin(f *testing.F) {
	for _, host := range []string{"127.0.0.1:7464", "localhost:7464", "[::1]:7464", "[::ffff:127.0.0.1]:7464", "[::1%lo]:7464", "gw.example.com", "gw.example.com:", "evil.example:7464", "localhost.:7464", "LOCALHOST:07464", "", "@", "a:b:c", "127.1:7464", "[", "]:7464"} {
		f.Add(host, "", false)
		f.Add(host, "http://"+host, true)
		f.Add(host, "null", true)
		f.Add(host, "https://app.example.com", true)
	}
	behind := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	gw, app := hosts.Authority{Name: "gw.example.com"}, hosts.Authority{Name: "app.example.com"}
	door := gateway.HostCheck{Hosts: []hosts.Authority{gw}, Origins: []hosts.Origin{{Scheme: "https", Host: app}}}.Wrap(behind)
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7464}
	f.Fuzz(func(t *testing.T, host, origin string, sent bool) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
		if r.Host = host; sent {
			r.Header["Origin"] = []string{origin}
		}
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		if w.Code != http.StatusTeapot {
			if code := refused(t, w.Body.String()).Code; w.Code != http.StatusForbidden || code != gateway.HostRefused && code != gateway.OriginRefused {
				t.Fatalf("host %q, origin %q: %d %s", host, origin, w.Code, w.Body)
			}
			return
		}
		if !isOurs(host) {
			t.Errorf("host %q is let through", host)
		}
		if sent && !strings.EqualFold(origin, "https://app.example.com") {
			u, err := url.Parse(origin)
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || !isOurs(u.Host) {
				t.Errorf("origin %q is let through at %q", origin, host)
			}
		}
	})
}

// isOurs is a naive reading of which hosts are the listener's.
func isOurs(host string) bool {
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
