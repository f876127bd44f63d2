package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// issuerConfig is a gateway with an issuer, and without tokens of its own.
const issuerConfig = `kind: gateway
name: api
auth:
  - name: corp
    issuer: %s
    audience: [rolecall]
    scopes: [rolecall]
    roles: [{claim: /groups, value: finance, role: clerk}]
---
kind: role
name: clerk
toolGroups: [workspace]
`

// startIssuer starts oidc-provider and returns its URL.
func startIssuer(t *testing.T) string {
	t.Helper()
	nodeModule(t, "oidc-provider", "package.json")
	var ready struct{ URL string }
	startProgram(t, exec.Command(nodePath(t), "oidc/issuer.mjs"), func(line string) bool {
		return json.Unmarshal([]byte(line), &ready) == nil && ready.URL != ""
	})
	return ready.URL
}

// sendForm sends a form, or a GET for a nil form, and decodes the JSON of the answer into to,
// unless that is nil.
func sendForm(t *testing.T, address string, form url.Values, token string, to any) *http.Response {
	t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if to != nil && json.Unmarshal(body, to) != nil {
		t.Fatalf("%s answered %s", address, body)
	}
	return answer
}

// getToken gets a token of a client for an endpoint of MCP as its clients do. The answer without
// a token names the metadata. The metadata name the issuer, and the discovery document of the
// issuer says where tokens are.
func getToken(t *testing.T, endpoint, client string) string {
	t.Helper()
	challenge := sendForm(t, endpoint, url.Values{}, "", nil).Header.Get("WWW-Authenticate")
	metadata := regexp.MustCompile(`resource_metadata="([^"]*)"`).FindStringSubmatch(challenge)
	if metadata == nil {
		t.Fatalf("no metadata in %q", challenge)
	}
	var resource struct {
		Resource string
		Issuers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported"`
	}
	sendForm(t, metadata[1], nil, "", &resource)
	if resource.Resource != endpoint || len(resource.Issuers) != 1 {
		t.Fatalf("the metadata of %s is %+v", endpoint, resource)
	}
	var discovery struct {
		Endpoint string `json:"token_endpoint"`
	}
	sendForm(t, resource.Issuers[0]+"/.well-known/openid-configuration", nil, "", &discovery)
	var token struct {
		Token string `json:"access_token"`
	}
	sendForm(t, discovery.Endpoint, url.Values{
		"grant_type": {"client_credentials"}, "client_id": {client}, "client_secret": {"secret-of-" + client},
		"resource": {resource.Resource}, "scope": {strings.Join(resource.Scopes, " ")},
	}, "", &token)
	if token.Token == "" {
		t.Fatal("the issuer returned no token")
	}
	return token.Token
}

// Tokens of a real issuer act in the role of their groups. After the issuer has replaced its
// key, new tokens are valid at once, and old ones are not.
func TestIssuer_OIDCProvider(t *testing.T) {
	issuer := startIssuer(t)
	fx := newServeFixture(t, fmt.Sprintf(issuerConfig, issuer))
	gateway, _ := fx.serve(t)
	endpoint := gateway + "/mcp"
	old := getToken(t, endpoint, "finance-job")
	if names := newSDK(t, endpoint, old).tools(t); !slices.Contains(names, "read_file") {
		t.Errorf("the tools are %v", names)
	}
	status := func(token string) int { return sendForm(t, gateway+"/api/v1/tools", nil, token, nil).StatusCode }
	for name, c := range map[string]struct {
		token string
		want  int
	}{
		"a user without a role": {getToken(t, endpoint, "guest-job"), http.StatusForbidden},
		"a changed token":       {old[:len(old)-8] + "AAAAAAAA", http.StatusUnauthorized},
		"a valid token":         {old, http.StatusOK},
	} {
		if got := status(c.token); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	sendForm(t, issuer+"/rotate", url.Values{}, "", nil)
	fresh := getToken(t, endpoint, "finance-job")
	for deadline := time.Now().Add(10 * time.Second); status(fresh) != http.StatusOK; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) { // keys are fetched once in a second
			t.Fatal("a token with the new key is rejected")
		}
	}
	if got := status(old); got != http.StatusUnauthorized {
		t.Errorf("a token with the old key: %d", got)
	}
}
