package auth_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/org/hosts"
)

// appOrigin is the configured origin.
var appOrigin = hosts.Origin{Scheme: "https", Host: hosts.Authority{Name: "app.example.com"}}

func TestHostCheck_HostAndOrigin(t *testing.T) {
	f := newFixture(t)
	_, me := gatewaytest.NewToken("me", auth.Token{Scope: auth.ScopeOperator})
	var codes []errcode.Code
	url := gatewaytest.ServeAPI(t, f, auth.HostCheck{
		Hosts: []hosts.Authority{{Name: "gw.example.com"}, {Name: "port.example.com", Port: "8080"}, {Name: "2001:db8::1"}}, Origins: []hosts.Origin{appOrigin},
		Tokens: gatewaytest.NewTokens(t, f, me), OnRefused: func(c errcode.Code) { codes = append(codes, c) },
	})
	address := strings.TrimPrefix(url, "http://")
	_, port, _ := net.SplitHostPort(address)
	for _, c := range []struct {
		name, host string
		origin     []string
		want       errcode.Code // "" means allowed
	}{
		{"the address", address, nil, ""},
		{"localhost", "localhost:" + port, nil, ""},
		{"localhost in capitals", "LOCALHOST:" + port, nil, ""},
		{"another loopback address", "127.0.0.2:" + port, nil, ""},
		{"loopback of the other family", "[::1]:" + port, nil, ""},
		{"a configured name", "gw.example.com", nil, ""},
		{"a configured name at any port", "GW.example.com:1", nil, ""},
		{"a configured name and port", "port.example.com:8080", nil, ""},
		{"a configured name at another port", "port.example.com", nil, wire.HostRefused},
		{"a configured address", "[2001:DB8:0::1]:9", nil, ""},
		{"an unknown name", "evil.example.com:" + port, nil, wire.HostRefused},
		{"a name below a configured one", "a.gw.example.com", nil, wire.HostRefused},
		{"a name that begins as localhost", "localhost.evil.example:" + port, nil, wire.HostRefused},
		{"a name that ends as localhost", "evil.localhost:" + port, nil, wire.HostRefused},
		{"another port", "127.0.0.1:1", nil, wire.HostRefused},
		{"no port", "127.0.0.1", nil, wire.HostRefused},
		{"the address as a decimal number", "2130706433:" + port, nil, wire.HostRefused},
		{"the unspecified address", "0.0.0.0:" + port, nil, wire.HostRefused},
		{"its own page", address, []string{url}, ""},
		{"its own page by another name", "localhost:" + port, []string{url}, wire.OriginRefused},
		{"its own page behind TLS", "gw.example.com", []string{"https://gw.example.com"}, ""},
		{"its own page behind TLS, with the port in Host", "gw.example.com:443", []string{"https://gw.example.com"}, ""},
		{"its own page behind a proxy, with the port in Host", "gw.example.com:80", []string{"http://gw.example.com"}, ""},
		{"a page of the port of HTTP to that of HTTPS", "gw.example.com:443", []string{"http://gw.example.com"}, wire.OriginRefused},
		{"a page of the port of HTTPS to that of HTTP", "gw.example.com:80", []string{"https://gw.example.com"}, wire.OriginRefused},
		{"a page of the port of HTTPS to another port", "gw.example.com:8443", []string{"https://gw.example.com"}, wire.OriginRefused},
		{"a page of another port to that of HTTPS", "gw.example.com:443", []string{"https://gw.example.com:8443"}, wire.OriginRefused},
		{"a page of another name to the port of HTTPS", "gw.example.com:443", []string{"https://evil.example.com"}, wire.OriginRefused},
		{"an allowed page", address, []string{"https://app.example.com"}, ""},
		{"an allowed page with its port", address, []string{"https://app.example.com:443"}, ""},
		{"an allowed page at the port of HTTP", address, []string{"https://app.example.com:80"}, wire.OriginRefused},
		{"an allowed page over http", address, []string{"http://app.example.com"}, wire.OriginRefused},
		{"an allowed page at another port", address, []string{"https://app.example.com:444"}, wire.OriginRefused},
		{"another page", address, []string{"https://evil.example.com"}, wire.OriginRefused},
		{"another server on this host", address, []string{"http://127.0.0.1:1"}, wire.OriginRefused},
		{"a page without an origin", address, []string{"null"}, wire.OriginRefused},
		{"an empty origin", address, []string{""}, wire.OriginRefused},
		{"two origins", address, []string{url, url}, wire.OriginRefused},
		{"two origins in one header", address, []string{url + " " + url}, wire.OriginRefused},
		{"an origin with a path", address, []string{url + "/"}, wire.OriginRefused},
		{"an extension's page", address, []string{"chrome-extension://" + address}, wire.OriginRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := gatewaytest.BearerHeader("rc_me")
			header["Host"] = []string{c.host}
			if c.origin != nil {
				header["Origin"] = c.origin
			}
			codes = nil
			status, answered, body := gatewaytest.SendRaw(t, http.MethodGet, url+"/api/v1/roles", header, nil)
			switch {
			case c.want == "" && status != http.StatusOK:
				t.Errorf("got %d %s, want 200", status, body)
			case c.want != "" && (status != http.StatusForbidden || gatewaytest.DecodeError(t, body).Code != c.want || len(codes) != 1 || codes[0] != c.want):
				t.Errorf("got %d %s, counted %v, want 403 %s", status, body, codes, c.want)
			}
			if got := answered.Get("X-Content-Type-Options"); got != "nosniff" {
				t.Errorf("X-Content-Type-Options %q, want nosniff", got)
			}
		})
	}
}

func TestHostCheck_CORS(t *testing.T) {
	f := newFixture(t)
	_, me := gatewaytest.NewToken("me", auth.Token{Scope: auth.ScopeOperator})
	const page = "https://app.example.com"
	url := gatewaytest.ServeAPI(t, f, auth.HostCheck{Origins: []hosts.Origin{appOrigin}, Tokens: gatewaytest.NewTokens(t, f, me)})
	ask := http.Header{"Origin": {page}, "Access-Control-Request-Method": {"PATCH"}}
	status, header, _ := gatewaytest.SendRaw(t, http.MethodOptions, url+"/api/v1/roles", ask, nil)
	if status != http.StatusNoContent || header.Get("Access-Control-Allow-Origin") != page || header.Get("Access-Control-Allow-Credentials") != "" ||
		!strings.Contains(header.Get("Access-Control-Allow-Headers"), "Authorization") || !strings.Contains(header.Get("Access-Control-Allow-Methods"), "PATCH") {
		t.Errorf("preflight: %d %v", status, header)
	}
	read := gatewaytest.BearerHeader("rc_me")
	read["Origin"] = []string{page}
	if status, header, _ := gatewaytest.SendRaw(t, http.MethodGet, url+"/api/v1/roles", read, nil); status != http.StatusOK || header.Get("Access-Control-Allow-Origin") != page || header.Get("Vary") != "Origin" {
		t.Errorf("request of the page: %d %v", status, header)
	}
	if status, header, _ := gatewaytest.SendRaw(t, http.MethodGet, url+"/api/v1/roles", gatewaytest.BearerHeader("rc_me"), nil); status != http.StatusOK || header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("without an origin: %d %v", status, header)
	}
	if status, header, _ := gatewaytest.SendRaw(t, http.MethodOptions, url+"/api/v1/roles", http.Header{"Origin": {url}, "Access-Control-Request-Method": {"PATCH"}}, nil); status != http.StatusUnauthorized || header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight of the gateway's own page: %d %v", status, header)
	}
}

func TestHostCheck_WithoutLocalAddress(t *testing.T) {
	f := newFixture(t)
	behind := &gatewaytest.Fixture{Handler: auth.HostCheck{Hosts: []hosts.Authority{{}, {Name: "gw.example.com"}}}.Wrap(f.Handler)}
	for host, want := range map[string]int{"gw.example.com": 200, "127.0.0.1": 403, "localhost": 403, "example.com": 403} {
		if status, _ := behind.SendText(t, "http://"+host+"/healthz", ""); status != want {
			t.Errorf("%s: %d, want %d", host, status, want)
		}
	}
}

func TestHostCheck_LimitsBodiesAndHeaders(t *testing.T) {
	f := newFixture(t)
	_, me := gatewaytest.NewToken("me", auth.Token{Scope: auth.ScopeOperator})
	url := gatewaytest.ServeAPI(t, f, auth.HostCheck{Tokens: gatewaytest.NewTokens(t, f, me)})
	for _, c := range []struct {
		name string
		body io.Reader
		want int
		code errcode.Code
	}{
		{"10 MB", strings.NewReader(`{"role":"` + strings.Repeat("x", 10<<20) + `"}`), 413, wire.BodyTooLarge},
		{"10 MB of unknown length", io.MultiReader(strings.NewReader(`{"role":"` + strings.Repeat("x", 10<<20) + `"}`)), 413, wire.BodyTooLarge},
		{"deep lists", strings.NewReader(`{"role":` + strings.Repeat("[", 500_000)), 400, errcode.InvalidArguments},
		{"deep objects", strings.NewReader(strings.Repeat(`{"role":`, 100_000)), 400, errcode.InvalidArguments},
	} {
		status, _, body := gatewaytest.SendRaw(t, http.MethodPost, url+"/api/v1/can", gatewaytest.BearerHeader("rc_me"), c.body)
		if status != c.want || gatewaytest.DecodeError(t, body).Code != c.code {
			t.Errorf("%s: %d %.200s, want %d %s", c.name, status, body, c.want, c.code)
		}
	}
	big := gatewaytest.BearerHeader("rc_me")
	big["X-Big"] = []string{strings.Repeat("x", 100<<10)}
	if status, _, _ := gatewaytest.SendRaw(t, http.MethodGet, url+"/healthz", big, nil); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("100 kB of headers: %d, want 431", status)
	}
	if status, _, _ := gatewaytest.SendRaw(t, http.MethodPost, url+"/api/v1/can", gatewaytest.BearerHeader("rc_me"), strings.NewReader(`{"role":"root","tool":"create_role"}`)); status != http.StatusOK {
		t.Errorf("a valid request afterwards: %d, want 200", status)
	}
}
