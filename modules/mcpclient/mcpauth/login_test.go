package mcpauth_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/keystore"
	"github.com/rolecall/rolecall/internal/test/oauthtest"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
)

const (
	ann mcpauth.Subject = "user:ann@r1"
	bob mcpauth.Subject = "user:bob@r1"
)

func TestLogin_TokenIsOfItsSubject(t *testing.T) {
	fx := newFixture(t)
	_, err := fx.logIn(ann, "ann")
	fx.wantCode(err, errcode.AuthorizationRequired, "a caller before the operator")
	login := fx.must(fx.logIn(mcpauth.Operator, "op"))
	if login.Issuer != fx.upstream.Issuer.URL() || login.Ended {
		t.Errorf("got %+v", login)
	}
	fx.must(fx.logIn(ann, "ann"))
	if token, err := fx.token(ann); err != nil || !strings.HasPrefix(token, "at-ann-") {
		t.Errorf("the token of ann is %q, %v", token, err)
	}
	_, err = fx.token(bob)
	fx.wantCode(err, errcode.AuthorizationRequired, "bob, who has not logged in")
	if stored := fx.values.text(); strings.Contains(stored, "at-") || strings.Contains(stored, "rt-") {
		t.Errorf("stored in clear text: %s", stored)
	}
	fx.restart()
	if token, err := fx.token(ann); err != nil || !strings.HasPrefix(token, "at-ann-") {
		t.Errorf("after a restart: %q, %v", token, err)
	}
}

// A record that is copied to the place of another subject or server is not opened.
func TestLogin_RecordIsBound(t *testing.T) {
	fx := newFixture(t)
	fx.must(fx.logIn(mcpauth.Operator, "op"))
	fx.must(fx.logIn(ann, "ann"))
	fx.must(fx.logIn(bob, "bob"))
	fx.values.mu.Lock()
	for to, value := range fx.values.values {
		if strings.Contains(string(value), string(bob)) {
			for _, other := range fx.values.values {
				if strings.Contains(string(other), string(ann)) {
					fx.values.values[to] = []byte(strings.ReplaceAll(string(other), string(ann), string(bob)))
				}
			}
		}
	}
	fx.values.mu.Unlock()
	fx.restart()
	_, err := fx.token(bob)
	fx.wantCode(err, errcode.AuthorizationRequired, "bob with the record of ann")
	fx.config.Server = "other"
	_, err = fx.token(ann)
	fx.wantCode(err, errcode.AuthorizationRequired, "another server")
	fx.config.Server, fx.config.URL = "web", fx.config.URL+"/other"
	_, err = fx.token(ann)
	fx.wantCode(err, errcode.AuthorizationRequired, "another address")
}

// Without the keys, as in a backup, there is no token.
func TestLogin_NeedsKeys(t *testing.T) {
	fx := newFixture(t)
	fx.must(fx.logIn(mcpauth.Operator, "op"))
	if err := os.Remove(filepath.Join(fx.keys, keystore.FileName)); err != nil {
		t.Fatal(err)
	}
	fx.restart()
	_, err := fx.token(mcpauth.Operator)
	fx.wantCode(err, errcode.AuthorizationRequired, "without keys")
	if !fx.server().NeedsLogin(t.Context(), mcpauth.Operator) {
		t.Error("no login is needed")
	}
	fx.must(fx.logIn(mcpauth.Operator, "op"))
	if _, err := fx.token(mcpauth.Operator); err != nil {
		t.Errorf("after another login: %v", err)
	}
}

func TestLogin_Logout(t *testing.T) {
	fx := newFixture(t)
	fx.must(fx.logIn(mcpauth.Operator, "op"))
	fx.must(fx.logIn(ann, "ann"))
	if found, err := fx.server().Logout(t.Context(), ann); !found || err != nil {
		t.Errorf("got %t, %v", found, err)
	}
	_, err := fx.token(ann)
	fx.wantCode(err, errcode.AuthorizationRequired, "after the logout")
	if found, err := fx.server().Logout(t.Context(), ann); found || err != nil {
		t.Errorf("again: %t, %v", found, err)
	}
	if _, err := fx.token(mcpauth.Operator); err != nil {
		t.Errorf("the operator: %v", err)
	}
}

// Only the subject that has begun an attempt can finish it, and only once.
func TestLogin_AttemptIsOfItsSubject(t *testing.T) {
	fx := newFixture(t)
	fx.must(fx.logIn(mcpauth.Operator, "op"))
	s := fx.server()
	offer, err := s.BeginLogin(t.Context(), ann, mcpauth.LoginRequest{Redirect: redirect}, fx.connect)
	if err != nil {
		t.Fatal(err)
	}
	back := oauthtest.LogIn(t, offer.URL, "ann")
	for _, other := range []mcpauth.Subject{bob, mcpauth.Operator, ""} {
		_, err = s.FinishLogin(t.Context(), other, offer.ID, answerOf(back))
		fx.wantCode(err, errcode.ItemNotFound, string(other)+" finishes the attempt of ann")
	}
	fx.must(s.FinishLogin(t.Context(), ann, offer.ID, answerOf(back)))
	_, err = s.FinishLogin(t.Context(), ann, offer.ID, answerOf(back))
	fx.wantCode(err, errcode.ItemNotFound, "again")
	if token, err := fx.token(ann); err != nil || !strings.HasPrefix(token, "at-ann-") {
		t.Errorf("got %q, %v", token, err)
	}
}

// jwt returns an unsigned JWT with claims.
func jwt(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + ".c2ln"
}

// What a server, an issuer or the browser may answer so that there is no login.
func TestLogin_HostileAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(fx *fixture)
		change  func(url.Values)
		code    errcode.Code
	}{
		"the state of another attempt":        {change: func(q url.Values) { q.Set("state", "other") }, code: errcode.Unauthenticated},
		"no state":                            {change: func(q url.Values) { q.Del("state") }, code: errcode.Unauthenticated},
		"another issuer in the answer":        {change: func(q url.Values) { q.Set("iss", "https://evil.example") }, code: errcode.Unauthenticated},
		"no issuer in the answer":             {change: func(q url.Values) { q.Del("iss") }, code: errcode.Unauthenticated},
		"another code":                        {change: func(q url.Values) { q.Set("code", "other") }, code: errcode.Unauthenticated},
		"an error":                            {change: func(q url.Values) { q.Set("error", "access_denied") }, code: errcode.Unauthenticated},
		"metadata of another issuer":          {prepare: metadata("issuer", "https://evil.example"), code: errcode.ToolUnavailable},
		"metadata without PKCE":               {prepare: metadata("code_challenge_methods_supported", nil), code: errcode.ToolUnavailable},
		"a token endpoint without TLS":        {prepare: metadata("token_endpoint", "http://issuer.example/token"), code: errcode.ToolUnavailable},
		"an authorization endpoint of a page": {prepare: metadata("authorization_endpoint", "javascript:alert(1)"), code: errcode.ToolUnavailable},
		"a private token endpoint":            {prepare: metadata("token_endpoint", "https://10.1.2.3/token"), code: errcode.ToolUnavailable},
		"a token for another server":          {prepare: answer("access_token", jwt(`{"aud":"https://other.example/mcp"}`)), code: errcode.Unauthenticated},
		"a token of another issuer":           {prepare: answer("access_token", jwt(`{"iss":"https://evil.example"}`)), code: errcode.Unauthenticated},
		"a token with unreadable claims":      {prepare: answer("access_token", jwt(`{"aud":7}`)), code: errcode.Unauthenticated},
		"a token with a line break":           {prepare: answer("access_token", "a\r\nX-Evil: b"), code: errcode.Unauthenticated},
		"a token that is no bearer token":     {prepare: answer("token_type", "DPoP"), code: errcode.Unauthenticated},
		"a token that the server rejects":     {prepare: answer("access_token", "at-unknown"), code: errcode.Unauthenticated},
		"a token endpoint that redirects": {prepare: func(fx *fixture) {
			fx.upstream.Token = func(w http.ResponseWriter, _ url.Values) bool {
				w.Header().Set("Location", fx.upstream.Issuer.URL()+"/stolen")
				w.WriteHeader(http.StatusTemporaryRedirect)
				return true
			}
		}, code: errcode.Unauthenticated},
		"an error with a token": {prepare: func(fx *fixture) {
			fx.upstream.Token = func(w http.ResponseWriter, _ url.Values) bool {
				http.Error(w, `{"error":"token-canary","access_token":"token-canary"}`, http.StatusBadRequest)
				return true
			}
		}, code: errcode.Unauthenticated},
		"an answer without end": {prepare: func(fx *fixture) {
			fx.upstream.Token = func(w http.ResponseWriter, _ url.Values) bool {
				_, _ = w.Write([]byte(strings.Repeat(" ", 2<<20)))
				return true
			}
		}, code: errcode.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			if tt.prepare != nil {
				fx.upstream.Change(func() { tt.prepare(fx) })
			}
			change := tt.change
			if change == nil {
				change = func(url.Values) {}
			}
			_, err := fx.logInWith(mcpauth.Operator, "op", mcpauth.LoginRequest{Redirect: redirect}, change)
			fx.wantCode(err, tt.code, name)
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the error has what the issuer has sent: %v", err)
			}
			if _, found, _ := fx.server().FindLogin(t.Context(), mcpauth.Operator); found {
				t.Error("a login is stored")
			}
			fx.upstream.Change(func() {
				for _, request := range fx.upstream.Requests {
					if strings.Contains(request, "stolen") {
						t.Error("the redirect was followed")
					}
				}
			})
		})
	}
}

// metadata changes a field of the issuer's metadata; nil removes it.
func metadata(field string, value any) func(*fixture) {
	return func(fx *fixture) {
		fx.upstream.Metadata = func(m map[string]any) {
			if m[field] = value; value == nil {
				delete(m, field)
			}
		}
	}
}

// answer changes a field of the answer of the token endpoint.
func answer(field string, value any) func(*fixture) {
	return func(fx *fixture) { fx.upstream.Answer = func(m map[string]any) { m[field] = value } }
}

// A token that is a JWT may have the configured audience, or the address of the server.
func TestLogin_Audience(t *testing.T) {
	for _, tt := range []struct {
		aud, audience string
		ok            bool
	}{{"api://web", "api://web", true}, {"api://web", "", false}, {"api://other", "api://web", false}} {
		fx := newFixture(t)
		fx.config.Audience = tt.audience
		token := jwt(`{"aud":["account",` + "\"" + tt.aud + `"]}`)
		fx.upstream.Change(func() { answer("access_token", token)(fx) })
		_, err := fx.logIn(mcpauth.Operator, "op")
		rejected := err != nil && strings.Contains(err.Error(), "set audience")
		if rejected == tt.ok { // with the right audience the server rejects the token, which it does not know
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// The issuer of the first login is the only one. Another needs the operator's word for it, and ends
// the logins with the one before.
func TestLogin_IssuerIsPinned(t *testing.T) {
	fx := newFixture(t)
	other := oauthtest.NewServer(t)
	fx.must(fx.logIn(mcpauth.Operator, "op"))
	fx.must(fx.logIn(ann, "ann"))
	fx.upstream.NameIssuer(other.Issuer.URL())
	for _, subject := range []mcpauth.Subject{mcpauth.Operator, ann} {
		_, err := fx.logIn(subject, "x")
		fx.wantCode(err, errcode.AuthorizationRequired, "another issuer")
		if err == nil || !strings.Contains(err.Error(), other.Issuer.URL()) {
			t.Errorf("the error does not name the issuer: %v", err)
		}
	}
	other.Change(func() {
		for _, request := range other.Requests {
			t.Errorf("the other issuer was asked: %s", request)
		}
	})
	request := mcpauth.LoginRequest{Redirect: redirect, Issuer: other.Issuer.URL()}
	_, err := fx.logInWith(ann, "ann", request, func(url.Values) {})
	fx.wantCode(err, errcode.InsufficientPermissions, "a caller accepts another issuer")
	if token, err := fx.token(ann); err != nil || !strings.HasPrefix(token, "at-ann") {
		t.Errorf("the token from before: %q, %v", token, err)
	}
	offer, err := fx.server().BeginLogin(t.Context(), mcpauth.Operator, request, fx.connect)
	if err != nil || offer.Issuer != other.Issuer.URL() {
		t.Errorf("the operator accepts it: %+v, %v", offer, err)
	}
	fx.config.Issuer = fx.upstream.Issuer.URL()
	_, err = fx.server().BeginLogin(t.Context(), mcpauth.Operator, request, fx.connect)
	fx.wantCode(err, errcode.InvalidArguments, "another issuer than the configured one")
}

// What a server names as its issuer is in no command that the operator may copy, unless it is a plain
// address: a shell would read the rest.
func TestLogin_SuggestsNoForeignCommand(t *testing.T) {
	fx := newFixture(t)
	fx.must(fx.logIn(mcpauth.Operator, "op"))
	for _, named := range []string{
		"https://evil.example/;touch${IFS}x", "https://evil.example/$(id)", "https://evil.example/`id`", "https://evil.example/ --no-browser", "https://evil.example/&id", "https://evil.example/'", "https://evil.example/*",
		"https://a@evil.example/", "https://evil.example/\u202e",
	} {
		fx.upstream.NameIssuer(named)
		_, err := fx.logIn(mcpauth.Operator, "op")
		if err == nil || strings.Contains(errcode.Message(err), "--issuer") || strings.Contains(errcode.Message(err), "\u202e") {
			t.Errorf("%q: %v", named, err)
		}
	}
	fx.upstream.NameIssuer("https://other.example/realms/a_b~c")
	if _, err := fx.logIn(mcpauth.Operator, "op"); err == nil || !strings.Contains(err.Error(), "--issuer https://other.example/realms/a_b~c\"") {
		t.Errorf("a plain issuer: %v", err)
	}
}

// The browser is sent back to this machine only.
func TestLogin_Redirects(t *testing.T) {
	fx := newFixture(t)
	for _, to := range []string{
		"", "https://evil.example/callback", "http://127.0.0.1/callback", "http://127.0.0.1:0/callback", "http://127.0.0.1:80/other", "http://127.0.0.1:80/callback?x=1",
		"http://127.0.0.1:80@evil.example/callback", "http://localhost:80/callback", "http://10.0.0.1:80/callback", "https://127.0.0.1:80/callback",
	} {
		_, err := fx.server().BeginLogin(t.Context(), mcpauth.Operator, mcpauth.LoginRequest{Redirect: to}, fx.connect)
		fx.wantCode(err, errcode.InvalidArguments, to)
	}
}

// Attempts of one subject end the oldest of them, not those of others.
func TestLogin_AttemptsAreBounded(t *testing.T) {
	fx := newFixture(t)
	fx.must(fx.logIn(mcpauth.Operator, "op"))
	s := fx.server()
	begin := func(subject mcpauth.Subject) mcpauth.LoginOffer {
		offer, err := s.BeginLogin(t.Context(), subject, mcpauth.LoginRequest{Redirect: redirect}, fx.connect)
		if err != nil {
			t.Fatal(err)
		}
		return offer
	}
	first, other := begin(ann), begin(bob)
	for range 4 {
		begin(ann)
	}
	_, err := s.FinishLogin(t.Context(), ann, first.ID, answerOf(oauthtest.LogIn(t, first.URL, "ann")))
	fx.wantCode(err, errcode.ItemNotFound, "the first of five")
	fx.must(s.FinishLogin(t.Context(), bob, other.ID, answerOf(oauthtest.LogIn(t, other.URL, "bob"))))
}

func TestNew_RejectsUnsafeConfigurations(t *testing.T) {
	logins := mcpauth.NewStore(&memoryValues{}, keystore.Open(t.TempDir()))
	good := mcpauth.Config{Server: "web", URL: "https://a.example/mcp", Logins: logins}
	if _, err := mcpauth.New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*mcpauth.Config){
		"no TLS":                  func(c *mcpauth.Config) { c.URL = "http://a.example/mcp" },
		"no store":                func(c *mcpauth.Config) { c.Logins = nil },
		"an issuer without TLS":   func(c *mcpauth.Config) { c.Issuer = "http://id.example" },
		"a secret for any issuer": func(c *mcpauth.Config) { c.ClientID, c.ClientSecret = "a", "b" },
		"a machine without a secret": func(c *mcpauth.Config) {
			c.Grant, c.ClientID, c.Issuer = mcpauth.ClientCredentials, "a", "https://id.example"
		},
		"an unknown grant": func(c *mcpauth.Config) { c.Grant = "password" },
		"a machine that is each caller": func(c *mcpauth.Config) {
			c.Grant, c.ClientID, c.ClientSecret, c.Issuer, c.PerCaller = mcpauth.ClientCredentials, "a", "b", "https://id.example", true
		},
	} {
		c := good
		change(&c)
		if _, err := mcpauth.New(c); errcode.CodeOf(err) != errcode.InvalidConfig {
			t.Errorf("%s: %v", name, err)
		}
	}
}
