package mcpauth_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/keystore"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
	"github.com/rolecall/rolecall/toolgroups"
)

// A server elsewhere cannot make rolecall send requests to this machine or to private addresses,
// unless the operator has named them.
func TestGuard_Addresses(t *testing.T) {
	reached := false
	local := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer local.Close()
	for name, tt := range map[string]struct {
		config mcpauth.Config
		url    string
		want   string // in the error
	}{
		"this machine":          {mcpauth.Config{URL: "https://mcp.example/mcp"}, local.URL, "not public"},
		"a private address":     {mcpauth.Config{URL: "https://mcp.example/mcp"}, "https://10.255.255.1/", "not public"},
		"metadata of a cloud":   {mcpauth.Config{URL: "http://127.0.0.1:1/mcp"}, "https://169.254.169.254/", "not public"},
		"no TLS":                {mcpauth.Config{URL: "https://mcp.example/mcp"}, "http://mcp.example/", "no https"},
		"the configured issuer": {mcpauth.Config{URL: "https://mcp.example/mcp", Issuer: local.URL}, local.URL, "certificate"},
		"the server itself":     {mcpauth.Config{URL: local.URL + "/mcp"}, local.URL + "/other", "certificate"},
		"beside a local server": {mcpauth.Config{URL: "http://127.0.0.1:1/mcp"}, local.URL, "certificate"},
		"an address of the operator": {mcpauth.Config{URL: "https://mcp.example/mcp", Private: func() []netip.Prefix {
			return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		}}, local.URL, "certificate"},
	} {
		tt.config.Server, tt.config.Logins = "web", mcpauth.NewStore(&memoryValues{values: map[toolgroups.GroupOwner][]byte{}}, keystore.Open(t.TempDir()))
		s, err := mcpauth.New(tt.config)
		if err != nil {
			t.Fatal(err)
		}
		response, err := mcpauth.HTTPClient(s).Get(tt.url)
		if err == nil {
			response.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	if reached {
		t.Error("a request arrived without a check of the certificate")
	}
}
