package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/org/hosts"
)

// noVerifier is a TokenVerifier that accepts no token.
type noVerifier struct{}

func (noVerifier) VerifyToken(context.Context, string) (json.RawMessage, error) {
	return nil, errcode.New(errcode.Unauthenticated, "it is not valid")
}
func (noVerifier) Introspects(string) bool { return false }
func (noVerifier) KeyVersion() uint64      { return 0 }

// issuerGateway serves a gateway with issuers behind a HostCheck that knows the host
// gw.example.com.
func issuerGateway(t *testing.T, issuers ...auth.Issuer) (url string) {
	t.Helper()
	f := newFixture(t, gatewaytest.TeamModel)
	tokens := gatewaytest.NewTokens(t, f)
	if err := tokens.ReplaceIssuers(issuers); err != nil {
		t.Fatal(err)
	}
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: tokens.Authenticate, Issuers: tokens.ListIssuers})
	if err != nil {
		t.Fatal(err)
	}
	return gatewaytest.ServeChecked(t, auth.HostCheck{Tokens: tokens, Hosts: []hosts.Authority{{Name: "gw.example.com"}}}, gatewaytest.WithOpenAPICheck(t, handler))
}

// twoIssuers are issuers with overlapping scopes.
func twoIssuers() []auth.Issuer {
	return []auth.Issuer{
		{Name: "corp", URL: "https://id.example.com/realms/corp", User: "sub", Scopes: []string{"tools", "openid"}, Verifier: noVerifier{}},
		{Name: "other", URL: "https://other.example.com", User: "sub", Scopes: []string{"openid"}, Verifier: noVerifier{}},
	}
}

func TestResource_ListsIssuers(t *testing.T) {
	url := issuerGateway(t, twoIssuers()...)
	for _, c := range []struct{ host, path, want string }{
		{"gw.example.com", "", "https://gw.example.com"},
		{"GW.example.com:8443", "/mcp", "https://gw.example.com:8443/mcp"},
		{"gw.example.com", "/mcp/a/b%2Fc", "https://gw.example.com/mcp/a/b%2Fc"},
		{"", "/roles/reader/mcp", url + "/roles/reader/mcp"},
		{"", "/roles/no%20such%22role/mcp/x", url + "/roles/no%20such%22role/mcp/x"},
	} {
		header := http.Header{"X-Forwarded-Host": {"evil.example"}, "X-Forwarded-Proto": {"ftp"}, "Forwarded": {"host=evil.example"}}
		if c.host != "" {
			header.Set("Host", c.host)
		}
		status, _, body := gatewaytest.SendRaw(t, http.MethodGet, url+"/.well-known/oauth-protected-resource"+c.path, header, nil)
		var got wire.Resource
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != http.StatusOK {
			t.Errorf("%+v: %d %s", c, status, body)
			continue
		}
		want := wire.Resource{
			Resource: c.want, Issuers: []string{"https://id.example.com/realms/corp", "https://other.example.com"},
			Scopes: []string{"openid", "tools"}, BearerMethods: []string{"header"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v: (-want +got)\n%s", c, diff)
		}
	}
	for host, path := range map[string]string{"evil.example": "/mcp", "gw.example.com.evil.example": "", "gw.example.com": "/api/v1/tasks"} {
		status, _, body := gatewaytest.SendRaw(t, http.MethodGet, url+"/.well-known/oauth-protected-resource"+path, http.Header{"Host": {host}}, nil)
		if status == http.StatusOK || strings.Contains(body, "id.example.com") {
			t.Errorf("%s%s: %d %s", host, path, status, body)
		}
	}
}

// A client of MCP without a valid token is told where the metadata is.
func TestResource_Challenge(t *testing.T) {
	with, without := issuerGateway(t, twoIssuers()...), issuerGateway(t)
	for _, c := range []struct{ url, method, path, token, want string }{
		{with, "POST", "/mcp", "", `Bearer realm="rolecall", resource_metadata="https://gw.example.com/.well-known/oauth-protected-resource/mcp"`},
		{with, "POST", "/mcp", "rc_x", `Bearer realm="rolecall", error="invalid_token", resource_metadata="https://gw.example.com/.well-known/oauth-protected-resource/mcp"`},
		{with, "GET", "/mcp/a%22b", "", `Bearer realm="rolecall", resource_metadata="https://gw.example.com/.well-known/oauth-protected-resource/mcp/a%22b"`},
		{with, "PUT", "/roles/reader/mcp", "", `Bearer realm="rolecall", resource_metadata="https://gw.example.com/.well-known/oauth-protected-resource/roles/reader/mcp"`},
		{with, "DELETE", "/roles/reader/mcp/x", "", `Bearer realm="rolecall", resource_metadata="https://gw.example.com/.well-known/oauth-protected-resource/roles/reader/mcp/x"`},
		{with, "GET", "/api/v1/tasks", "", `Bearer realm="rolecall"`},
		{with, "GET", "/nowhere/mcp", "", `Bearer realm="rolecall"`},
		{without, "POST", "/mcp", "", `Bearer realm="rolecall"`},
	} {
		header := http.Header{"Host": {"gw.example.com"}}
		if c.token != "" {
			header.Set("Authorization", "Bearer "+c.token)
		}
		status, answer, _ := gatewaytest.SendRaw(t, c.method, c.url+c.path, header, nil)
		if got := answer.Get("WWW-Authenticate"); status != http.StatusUnauthorized || got != c.want {
			t.Errorf("%s %s: %d\n got %s\nwant %s", c.method, c.path, status, got, c.want)
		}
	}
	if status, _, body := gatewaytest.SendRaw(t, "GET", without+"/.well-known/oauth-protected-resource/mcp", nil, nil); status != http.StatusNotFound {
		t.Errorf("without issuers: %d %s", status, body)
	}
}

// Without a HostCheck the Host header is not trusted, and no URL is made of it.
func TestResource_NoURLFromUncheckedHost(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	tokens := gatewaytest.NewTokens(t, f)
	if err := tokens.ReplaceIssuers(twoIssuers()); err != nil {
		t.Fatal(err)
	}
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: tokens.Authenticate, Issuers: tokens.ListIssuers})
	if err != nil {
		t.Fatal(err)
	}
	f.Handler = handler
	answer := f.SendRequest(t, "POST /mcp", "", http.Header{"Host": {"evil.example"}})
	if got := answer.Header().Get("WWW-Authenticate"); got != `Bearer realm="rolecall"` {
		t.Errorf("got %s", got)
	}
	if answer := f.SendRequest(t, "GET /.well-known/oauth-protected-resource", "", nil); answer.Code != http.StatusNotFound {
		t.Errorf("got %d %s", answer.Code, answer.Body)
	}
}
