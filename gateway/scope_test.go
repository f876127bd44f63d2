package gateway_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
)

// documentedScopes reads the routes of docs/api.md with the scopes that they take.
func documentedScopes(t *testing.T) map[string][]string {
	t.Helper()
	file, err := os.Open("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	row, list := regexp.MustCompile("^\\| `([A-Z]+ /[^`]*)` \\| [^|]* \\| ([a-z, ]*) \\|"), map[string][]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if m := row.FindStringSubmatch(lines.Text()); m != nil {
			list[m[1]] = strings.Split(m[2], ", ")
		}
	}
	return list
}

// Every route takes the scopes that docs/api.md lists, and no others. A new route is
// not served until its scopes stand in routes, and fails here until they are documented.
func TestRoutes_TakeDocumentedScopes(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	role := f.AddRole(t, "reader", "workspace")
	tokens, tokenOf := []auth.Token{}, map[string]string{"none": "", "unknown": "rc_unknown"}
	for name, token := range map[string]auth.Token{
		"operator": {Scope: auth.ScopeOperator}, "role": {Scope: auth.ScopeRole, Role: role.ID}, "metrics": {Scope: auth.ScopeMetrics},
	} {
		tokenOf[name], token = gatewaytest.NewToken("the-"+name, token)
		tokens = append(tokens, token)
	}
	store := gatewaytest.NewTokens(t, f, tokens...)
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: store.Authenticate, Metrics: http.NotFoundHandler()})
	if err != nil {
		t.Fatal(err)
	}
	documented, routes := documentedScopes(t), gateway.RouteScopes()
	for route := range routes { // the reference says once that those of a caller's own role exist for each role
		if method, path, ofRole := strings.Cut(route, " /roles/{role}/"); ofRole {
			documented[route] = documented[method+" /"+path]
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(routes)), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Errorf("routes (-served +documented):\n%s", diff)
	}
	wildcard := regexp.MustCompile(`\{[^}]*\}`)
	for route := range routes {
		method, path, _ := strings.Cut(wildcard.ReplaceAllString(route, "none"), " ")
		for scope, token := range tokenOf {
			want := slices.Contains(documented[route], scope) || scope == "unknown" && slices.Contains(documented[route], "none")
			if got, answer := admitted(t, handler, method, path, token); got != want {
				t.Errorf("%s with the scope %s: served %t, want %t: %s", route, scope, got, want, answer)
			}
		}
	}
}

// admitted reports whether a handler has passed a request to its route. A route that panics was reached.
func admitted(t *testing.T, handler http.Handler, method, path, token string) (ok bool, answer string) {
	t.Helper()
	defer func() {
		if cause := recover(); cause != nil {
			ok, answer = true, fmt.Sprint(cause)
		}
	}()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("{}"))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	var body wire.ErrorBody
	_ = json.Unmarshal(w.Body.Bytes(), &body) // not every answer is an error
	wrongScope := body.Error.Code == errcode.InsufficientPermissions && body.Error.Details["required"] != nil
	return w.Code != http.StatusUnauthorized && !wrongScope, w.Body.String()
}

// A token of the scope metrics reads metrics, and is told its scope elsewhere.
func TestMetrics_WithToken(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	token, known := gatewaytest.NewToken("prometheus", auth.Token{Scope: auth.ScopeMetrics})
	store := gatewaytest.NewTokens(t, f, known)
	figures := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("up 1\n")) })
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: store.Authenticate, Metrics: figures, Version: "v0"})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/metrics": "up 1", "/readyz": `"version":"v0"`,
		"/api/v1/tools": "a token of the scope metrics cannot do this; it takes the scope role or operator", "/nowhere": "scope metrics",
	} {
		if _, answer := admitted(t, handler, http.MethodGet, path, token); !strings.Contains(answer, want) {
			t.Errorf("%s: %s, want %s", path, answer, want)
		}
	}
	if p := store.Holders(); p != nil {
		t.Errorf("holders that may call tools: %v", p)
	}
	if got := identity.ByMonitor("x").Key(); got != "" {
		t.Errorf("a monitor has the key %q", got)
	}
}
