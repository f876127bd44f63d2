package app

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/oidctest"
	"github.com/rolecall/rolecall/toolgroups"
)

// The networks of a configuration limit the requests of its callers, follow a reload, and end
// with it. A configuration with a group that does not exist is not applied.
func TestNetworks_FollowConfiguration(t *testing.T) {
	f := newFixture(t)
	const role = "{kind: role, name: ci, toolGroups: [workspace]}"
	apply := func(docs ...string) error {
		t.Helper()
		_, err := f.reconfigure(t.Context(), f.read(docs...))
		return err
	}
	within := func(address string) identity.Principal {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/", nil)
		r.RemoteAddr = address
		r.Header.Set("Authorization", "Bearer rc_ci")
		p, err := f.Tokens.Authenticate(r)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if err := apply(role, tokenDoc("ci")+"\nnetworks: [{from: [10.0.0.0/8, 'fd00::/8'], groups: [console]}, {from: 10.1.0.0/16, groups: all}]"); err != nil {
		t.Fatal(err)
	}
	console := f.Runtime.Org().LimitTo(toolgroups.SetOf(toolgroups.Console))
	for address, want := range map[string]string{"10.2.0.1:1": console, "[fd00::7]:1": console, "[::ffff:10.2.0.1]:1": console, "10.1.0.1:1": "", "192.0.2.1:1": ""} {
		if got := within(address); got.Within != want {
			t.Errorf("%s: %+v, want %q", address, got, want)
		}
	}
	if err := apply(role, tokenDoc("ci")+"\nnetworks: [{from: 10.0.0.0/8, groups: [nothing]}]"); errcode.CodeOf(err) != errcode.InvalidConfig {
		t.Errorf("a group that does not exist: %v", err)
	}
	if got := within("10.2.0.1:1"); got.Within != console {
		t.Errorf("after a configuration that is rejected: %+v", got)
	}
	if err := apply(role, tokenDoc("ci")); err != nil {
		t.Fatal(err)
	}
	if got := within("10.2.0.1:1"); got.Within != "" {
		t.Errorf("after a configuration without networks: %+v", got)
	}
}

// Users sign in with an issuer of the configuration that has clientId. The session ends with
// the clientId.
func TestSignIn_FollowsConfiguration(t *testing.T) {
	f, idp := newFixture(t), oidctest.NewSignInIssuer(t)
	idp.Secret = ""
	handler, err := f.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(auth.HostCheck{Tokens: f.Tokens}.Wrap(handler))
	defer server.Close()
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	get := func(path string) int {
		answer, err := browser.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	apply := func(issuer string) {
		t.Helper()
		if _, err := f.reconfigure(t.Context(), f.read("{kind: role, name: ci}", tokenDoc("ci")+"\nauth: ["+issuer+"]")); err != nil {
			t.Fatal(err)
		}
	}
	issuer := fmt.Sprintf("{name: corp, issuer: %q, audience: [api], roles: [{claim: /groups, value: staff, role: ci}]", idp.URL)
	apply(issuer + "}")
	if got := get("/ui/login"); got != http.StatusNotFound {
		t.Errorf("without clientId: %d", got)
	}
	apply(issuer + ", clientId: gw}")
	if got := get("/ui/login?to=/api/v1/tools"); got != http.StatusOK { // follows the redirects to the issuer and back
		t.Errorf("sign in: %d", got)
	}
	apply(issuer + ", clientId: gw}")
	if got := get("/ui/session"); got != http.StatusOK {
		t.Errorf("after a reload of the same configuration: %d", got)
	}
	apply(issuer + "}")
	if got := get("/ui/session"); got != http.StatusUnauthorized {
		t.Errorf("after clientId was removed: %d", got)
	}
}
