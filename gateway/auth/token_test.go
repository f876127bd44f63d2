package auth_test

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/org"
)

func TestTokens_AuthenticateBearer(t *testing.T) {
	f := newFixture(t)
	reader, gone := f.AddRole(t, "reader", "workspace"), f.AddRole(t, "gone", "workspace")
	if _, err := f.LocalClient().DeleteRole(t.Context(), string(gone.ID), false); err != nil {
		t.Fatal(err)
	}
	var list []auth.Token
	add := func(name string, token auth.Token) {
		_, token = gatewaytest.NewToken(name, token)
		list = append(list, token)
	}
	add("id", auth.Token{Scope: auth.ScopeRole, Role: reader.ID, Expires: gatewaytest.TestTime.Add(time.Second)})
	add("name", auth.Token{Scope: auth.ScopeRole, Role: "reader"})
	add("me", auth.Token{Scope: auth.ScopeOperator})
	add("late", auth.Token{Scope: auth.ScopeOperator, Expires: gatewaytest.TestTime})
	add("gone", auth.Token{Scope: auth.ScopeRole, Role: gone.ID})
	add("never", auth.Token{Scope: auth.ScopeRole, Role: "never"})
	add("rooted", auth.Token{Scope: auth.ScopeRole, Role: org.RootRole})
	add("mcp", auth.Token{Scope: auth.ScopeOperator, Audience: "http://GW.example.com:80/mcp/"})
	tokens := gatewaytest.NewTokens(t, f, list...)
	const invalid = ""
	for _, c := range []struct {
		name   string
		header []string
		url    string
		want   string // "" means an invalid token
	}{
		{"a role", []string{"bearer  rc_id"}, "", "user:id@" + string(reader.ID)},
		{"a role's name in place of its id", []string{"Bearer rc_name"}, "", invalid},
		{"the operator", []string{"BEARER rc_me"}, "", "operator"},
		{"a token that expires now", []string{"Bearer rc_late"}, "", invalid},
		{"a deleted role", []string{"Bearer rc_gone"}, "", invalid},
		{"an unknown role", []string{"Bearer rc_never"}, "", invalid},
		{"the root role", []string{"Bearer rc_rooted"}, "", invalid},
		{"an unknown token", []string{"Bearer rc_idx"}, "", invalid},
		{"a digest", []string{"Bearer " + strings.Repeat("0", 64)}, "", invalid},
		{"two headers", []string{"Bearer rc_me", "Bearer rc_me"}, "", invalid},
		{"no token", []string{"Bearer "}, "", invalid},
		{"no space", []string{"Bearerrc_me"}, "", invalid},
		{"an empty header", []string{""}, "", invalid},
		{"another scheme", []string{"Basic rc_me"}, "", invalid},
		{"two tokens", []string{"Bearer rc_me rc_me"}, "", invalid},
		{"two in one header", []string{"Bearer rc_me, Bearer rc_me"}, "", invalid},
		{"an invalid character", []string{"Bearer rc_me\x00"}, "", invalid},
		{"an overlong token", []string{"Bearer " + strings.Repeat("a", 5000)}, "", invalid},
		{"in its audience", []string{"Bearer rc_mcp"}, "http://gw.example.com/mcp", "operator"},
		{"below its audience", []string{"Bearer rc_mcp"}, "http://gw.example.com/mcp/tools?x=1", "operator"},
		{"next to its audience", []string{"Bearer rc_mcp"}, "http://gw.example.com/mcpx", invalid},
		{"above its audience", []string{"Bearer rc_mcp"}, "http://gw.example.com/", invalid},
		{"dots that leave its audience", []string{"Bearer rc_mcp"}, "http://gw.example.com/mcp/../api/v1/roles", invalid},
		{"escaped dots that leave its audience", []string{"Bearer rc_mcp"}, "http://gw.example.com/mcp/%2e%2e/api/v1/roles", invalid},
		{"its audience with another escape", []string{"Bearer rc_mcp"}, "http://gw.example.com/m%63p", invalid},
		{"at another host", []string{"Bearer rc_mcp"}, "http://gw.example.com.evil.example/mcp", invalid},
		{"at another port", []string{"Bearer rc_mcp"}, "http://gw.example.com:8080/mcp", invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.url == "" {
				c.url = "http://127.0.0.1:7464/api/v1/tools"
			}
			r, err := http.NewRequest(http.MethodGet, c.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header["Authorization"] = c.header
			for _, marked := range []bool{false, true} { // an invalid token is never ignored
				p, err := authenticateAs(tokens, r, marked)
				if c.want != invalid && (err != nil || p.String() != c.want) {
					t.Errorf("got %s, %v, want %s", p, err, c.want)
				}
				if c.want == invalid && (p != identity.Principal{} || errcode.CodeOf(err) != errcode.Unauthenticated) {
					t.Errorf("got %s, %v, want unauthenticated", p, err)
				}
			}
		})
	}
}

// authenticateAs authenticates a request, marked by TrustLocalOwner or not.
func authenticateAs(tokens *auth.TokenStore, r *http.Request, marked bool) (p identity.Principal, err error) {
	var handler http.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { p, err = tokens.Authenticate(r) })
	if marked {
		handler = auth.TrustLocalOwner(handler)
	}
	handler.ServeHTTP(nil, r)
	return p, err
}

func TestTokens_NoTokenIsOperatorOnlyOnSocket(t *testing.T) {
	f := newFixture(t)
	tokens := gatewaytest.NewTokens(t, f)
	r, err := http.NewRequest(http.MethodGet, "http://127.0.0.1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := authenticateAs(tokens, r, false); p != (identity.Principal{}) || errcode.CodeOf(err) != errcode.Unauthenticated {
		t.Errorf("got %s, %v, want unauthenticated", p, err)
	}
	if p, err := authenticateAs(tokens, r, true); p.Kind != identity.Operator || err != nil {
		t.Errorf("marked: got %s, %v, want the operator", p, err)
	}
	var zero auth.TokenStore
	for _, header := range []http.Header{gatewaytest.BearerHeader("rc_x"), {}, {"Cookie": {"rolecall="}}} {
		r.Header = header
		if p, err := authenticateAs(&zero, r, false); p != (identity.Principal{}) || errcode.CodeOf(err) != errcode.Unauthenticated {
			t.Errorf("zero Tokens: got %s, %v, want unauthenticated", p, err)
		}
	}
}

func TestTokensReplace_IsAtomic(t *testing.T) {
	f := newFixture(t)
	_, good := gatewaytest.NewToken("good", auth.Token{Scope: auth.ScopeOperator})
	tokens := gatewaytest.NewTokens(t, f, good)
	_, other := gatewaytest.NewToken("other", auth.Token{Scope: auth.ScopeOperator})
	change := func(f func(*auth.Token)) []auth.Token {
		changed := other
		f(&changed)
		return []auth.Token{changed, good}
	}
	for name, list := range map[string][]auth.Token{
		"no name":                change(func(t *auth.Token) { t.Name = "" }),
		"a name twice":           change(func(t *auth.Token) { t.Name = "good" }),
		"no digest":              change(func(t *auth.Token) { t.Digest = [32]byte{} }),
		"a digest twice":         change(func(t *auth.Token) { t.Digest = good.Digest }),
		"no scope":               change(func(t *auth.Token) { t.Scope = auth.ScopeNone }),
		"an unknown scope":       change(func(t *auth.Token) { t.Scope = 9 }),
		"no role":                change(func(t *auth.Token) { t.Scope = auth.ScopeRole }),
		"role and operator":      change(func(t *auth.Token) { t.Role = "reader" }),
		"role and metrics":       change(func(t *auth.Token) { t.Scope, t.Role = auth.ScopeMetrics, "reader" }),
		"a relative audience":    change(func(t *auth.Token) { t.Audience = "/mcp" }),
		"an audience with ..":    change(func(t *auth.Token) { t.Audience = "http://a/b/../c" }),
		"too many":               make([]auth.Token, auth.MaxTokens+1),
		"an audience and a user": change(func(t *auth.Token) { t.Audience = "http://me@a/" }),
	} {
		if err := tokens.ReplaceTokens(list); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	kindOf := func(token string) identity.PrincipalKind {
		r, err := http.NewRequest(http.MethodGet, "http://a/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = gatewaytest.BearerHeader(token)
		p, _ := tokens.Authenticate(r)
		return p.Kind
	}
	if kindOf("rc_good") != identity.Operator || kindOf("rc_other") != identity.None {
		t.Error("a rejected list changed something")
	}
	if err := tokens.ReplaceTokens([]auth.Token{other}); err != nil || kindOf("rc_good") != identity.None || kindOf("rc_other") != identity.Operator {
		t.Errorf("replaced: %v, or the old token is still valid", err)
	}
	if _, err := auth.NewTokenStore(auth.TokenStoreConfig{}); err == nil || !strings.Contains(err.Error(), "TokenStoreConfig.Role") {
		t.Errorf("got %v, want an error that names TokenStoreConfig.Role", err)
	}
}

// The response is the same for all invalid tokens.
func TestTokens_SameErrorForAllInvalidTokens(t *testing.T) {
	f := newFixture(t)
	_, late := gatewaytest.NewToken("late", auth.Token{Scope: auth.ScopeOperator, Expires: gatewaytest.TestTime.Add(-time.Hour)})
	_, gone := gatewaytest.NewToken("gone", auth.Token{Scope: auth.ScopeRole, Role: "gone"})
	_, mcp := gatewaytest.NewToken("mcp", auth.Token{Scope: auth.ScopeOperator, Audience: "http://127.0.0.1/mcp"})
	url := gatewaytest.ServeAPI(t, f, auth.HostCheck{Tokens: gatewaytest.NewTokens(t, f, late, gone, mcp)}) + "/api/v1/tools"
	var first string
	for _, token := range []string{"rc_unknown", "rc_late", "rc_gone", "rc_mcp", "%", strings.Repeat("a", 5000)} {
		status, header, body := gatewaytest.SendRaw(t, http.MethodGet, url, gatewaytest.BearerHeader(token), nil)
		if got := gatewaytest.DecodeError(t, body); status != http.StatusUnauthorized || got.Code != errcode.Unauthenticated {
			t.Errorf("%.20s: %d %s, want 401 unauthenticated", token, status, body)
		}
		if got := header.Get("WWW-Authenticate"); got != `Bearer realm="rolecall", error="invalid_token"` {
			t.Errorf("%.20s: WWW-Authenticate %s", token, got)
		}
		if first == "" {
			first = body
		}
		if body != first {
			t.Errorf("%.20s: got %s, want the same as others: %s", token, body, first)
		}
	}
	status, header, _ := gatewaytest.SendRaw(t, http.MethodGet, url+"?token=rc_late", nil, nil)
	if got := header.Get("WWW-Authenticate"); status != http.StatusUnauthorized || got != `Bearer realm="rolecall"` {
		t.Errorf("without a token: %d, WWW-Authenticate %q", status, got)
	}
}

func TestNewToken_RandomAndValid(t *testing.T) {
	f := newFixture(t)
	a, digest := auth.NewToken()
	b, _ := auth.NewToken()
	if a == b || len(a) < 40 || digest != sha256.Sum256([]byte(a)) {
		t.Errorf("got %s and %s", a, b)
	}
	tokens := gatewaytest.NewTokens(t, f, auth.Token{Name: "x", Digest: digest, Scope: auth.ScopeOperator})
	r, err := http.NewRequest(http.MethodGet, "http://a/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = gatewaytest.BearerHeader(a)
	if p, err := tokens.Authenticate(r); err != nil || p.Kind != identity.Operator {
		t.Errorf("got %s, %v", p, err)
	}
}

// A token that has expired stays expired when the clock is set back.
func TestTokens_ExpiredStaysExpired(t *testing.T) {
	now := gatewaytest.TestTime
	store, err := auth.NewTokenStore(auth.TokenStoreConfig{
		Role: func(identity.RoleID) (org.Role, bool) { return org.Role{}, false },
		Now:  func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	_, token := gatewaytest.NewToken("me", auth.Token{Scope: auth.ScopeOperator, Expires: now.Add(time.Hour)})
	if err := store.ReplaceTokens([]auth.Token{token}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		by   time.Duration
		good bool
	}{{0, true}, {2 * time.Hour, false}, {-72 * time.Hour, false}} {
		now = now.Add(step.by)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://gw.example.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer rc_me")
		if _, err := store.Authenticate(r); (err == nil) != step.good {
			t.Errorf("after a step by %v: got %v, want valid %v", step.by, err, step.good)
		}
	}
}
