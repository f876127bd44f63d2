package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/oidctest"
)

// bearerUser authenticates a request with a token.
func (f *fixture) bearerUser(token string) (identity.Principal, error) {
	f.t.Helper()
	r := httptest.NewRequestWithContext(f.t.Context(), http.MethodGet, "http://127.0.0.1/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return f.Tokens.Authenticate(r)
}

// issuerDoc is a gateway with the token rc_ci for a role, and an issuer whose group staff has
// another role.
func issuerDoc(issuer, role string) string {
	return tokenDoc("ci") + fmt.Sprintf("\nauth: [{name: corp, issuer: %q, audience: [gw], roles: [{claim: /groups, value: ops, operator: true}, {claim: /groups, value: staff, role: %s}]}]", issuer, role)
}

// staffToken returns a token of a user in a group, for an hour.
func staffToken(idp *oidctest.Issuer, group string) string {
	return idp.SignToken(fmt.Sprintf(`{"iss":%q,"aud":"gw","sub":"ann","groups":[%q],"exp":%d}`, idp.URL, group, time.Now().Add(time.Hour).Unix()))
}

// Rules of an issuer follow the configuration, as tokens do: they are bound to the ids of its
// roles, and end with it.
func TestIssuers_FollowConfiguration(t *testing.T) {
	const ci, dba = "{kind: role, name: ci}", "{kind: role, name: dba}"
	f, idp := newFixture(t), oidctest.NewIssuer(t)
	apply := func(docs ...string) {
		t.Helper()
		if _, err := f.reconfigure(t.Context(), f.read(docs...)); err != nil {
			t.Fatal(err)
		}
	}
	staff, ops := staffToken(idp, "staff"), staffToken(idp, "ops")
	want := func(token string, p identity.Principal, code errcode.Code) {
		t.Helper()
		if got, err := f.bearerUser(token); got != p || errcode.CodeOf(err) != code {
			t.Errorf("got %s, %v; want %s, %s", got, err, p, code)
		}
	}
	apply(ci, dba, issuerDoc(idp.URL, "dba"))
	role, _ := f.Runtime.Org().ConfiguredRole("dba")
	ciRole, _ := f.Runtime.Org().ConfiguredRole("ci")
	want(staff, identity.ByCaller("corp:ann", role.ID), "")
	want(ops, identity.ByOperator("corp:ann"), "")
	want("rc_ci", identity.ByCaller("ci", ciRole.ID), "")
	want(staffToken(idp, "guests"), identity.Principal{}, errcode.InsufficientPermissions)
	apply(ci, dba, issuerDoc(idp.URL, "ci"))
	want(staff, identity.ByCaller("corp:ann", ciRole.ID), "")
	apply(ci, dba, strings.Replace(issuerDoc(idp.URL, "ci"), "[gw]", "[other]", 1))
	want(staff, identity.Principal{}, errcode.Unauthenticated)
	apply(ci, dba, issuerDoc(idp.URL, "ci"))
	want(staff, identity.ByCaller("corp:ann", ciRole.ID), "")
	apply(ci, dba, tokenDoc("ci"))
	want(staff, identity.Principal{}, errcode.Unauthenticated)
	want("rc_ci", identity.ByCaller("ci", ciRole.ID), "")
}

// A recorded configuration brings no issuer back.
func TestIssuers_NotOfRecordedConfiguration(t *testing.T) {
	f, idp := newFixture(t), oidctest.NewIssuer(t)
	if err := f.restoreConfig(t.Context(), f.read("{kind: role, name: ci}", issuerDoc(idp.URL, "ci")), leaveDeleted); err != nil {
		t.Fatal(err)
	}
	if p, err := f.bearerUser(staffToken(idp, "ops")); errcode.CodeOf(err) != errcode.Unauthenticated {
		t.Errorf("got %s, %v", p, err)
	}
}

// An issuer that misbehaves accepts no token, and does not concern static tokens. A reload that
// does not change an issuer keeps its keys.
func TestIssuers_HostileIssuer(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"is down": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusServiceUnavailable) },
		"answers with 100 MB": func(w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		},
		"names another issuer": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"issuer":"https://accounts.google.com","jwks_uri":"https://www.googleapis.com/oauth2/v3/certs"}`)
		},
		"answers with HTML": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
	} {
		t.Run(name, func(t *testing.T) {
			f, idp := newFixture(t), oidctest.NewIssuer(t)
			hostile := httptest.NewServer(answer)
			defer hostile.Close()
			if err := f.ApplyConfig(t.Context(), f.read("{kind: role, name: ci}", issuerDoc(hostile.URL, "ci")), nil); err != nil {
				t.Fatal(err)
			}
			token := idp.SignToken(fmt.Sprintf(`{"iss":%q,"aud":"gw","sub":"ann","groups":"ops","exp":%d}`, hostile.URL, time.Now().Add(time.Hour).Unix()))
			for range 3 {
				if p, err := f.bearerUser(token); errcode.CodeOf(err) != errcode.ToolUnavailable {
					t.Errorf("got %s, %v", p, err)
				}
			}
			if _, err := f.bearerUser("rc_ci"); err != nil {
				t.Errorf("the static token: %v", err)
			}
			if logs := f.logs.String(); strings.Count(logs, "issuer unreachable") != 1 || !strings.Contains(logs, "issuer=corp") {
				t.Errorf("want one line about the issuer, got:\n%s", logs)
			}
		})
	}
}
