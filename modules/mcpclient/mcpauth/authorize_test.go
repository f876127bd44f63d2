package mcpauth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
)

// expiring logs the operator and ann in with tokens that have to be refreshed before each use.
func (fx *fixture) expiring() {
	fx.Helper()
	fx.upstream.Change(func() { fx.upstream.Lasts = 5 * time.Second })
	fx.must(fx.logIn(mcpauth.Operator, "op"))
	fx.must(fx.logIn(ann, "ann"))
	fx.upstream.Change(func() { fx.upstream.Lasts = time.Hour })
}

// Refresh tokens are used once, so that a second refresh at the same time would end the login.
func TestRefresh_StormIsOneRefresh(t *testing.T) {
	fx := newFixture(t)
	fx.expiring()
	var all sync.WaitGroup
	tokens := make([]string, 64)
	for i := range tokens {
		server := fx.server() // a module and its successor share the logins
		all.Go(func() {
			source, err := server.Authorizer(ann).TokenSource(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			token, err := source.Token()
			if err != nil {
				t.Error(err)
				return
			}
			tokens[i] = token.AccessToken
		})
	}
	all.Wait()
	for _, token := range tokens {
		if token != tokens[0] || !strings.HasPrefix(token, "at-ann-") {
			t.Errorf("got %q and %q", tokens[0], token)
		}
	}
	fx.upstream.Change(func() {
		if fx.upstream.Refreshes != 1 {
			t.Errorf("%d refreshes", fx.upstream.Refreshes)
		}
	})
}

// A request that was sent with an older token than the newest one is sent again with the newest one.
func TestRefresh_OlderTokenNeedsNone(t *testing.T) {
	fx := newFixture(t)
	fx.must(fx.logIn(mcpauth.Operator, "op"))
	used, err := fx.token(mcpauth.Operator)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		request := httptest.NewRequest(http.MethodPost, fx.upstream.URL(), nil)
		request.Header.Set("Authorization", "Bearer "+used)
		response := &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{"Www-Authenticate": {"Bearer"}}, Body: http.NoBody}
		if err := fx.server().Authorizer(mcpauth.Operator).Authorize(t.Context(), request, response); err != nil {
			t.Error(err)
		}
	}
	fx.upstream.Change(func() {
		if fx.upstream.Refreshes != 1 {
			t.Errorf("%d refreshes", fx.upstream.Refreshes)
		}
	})
	if token, err := fx.token(mcpauth.Operator); err != nil || token == used {
		t.Errorf("got %q, %v", token, err)
	}
}

// A refreshed token is on disk before it is used: a process that is killed then has the newest
// refresh token, unless it was killed before the answer was stored.
func TestRefresh_StoredBeforeUse(t *testing.T) {
	fx := newFixture(t)
	fx.expiring()
	fx.upstream.Change(func() { fx.upstream.Lasts = 5 * time.Second })
	for range 3 {
		if _, err := fx.token(ann); err != nil {
			t.Fatal(err)
		}
		fx.restart() // nothing is written at the end
	}
	fx.values.mu.Lock()
	fx.values.fail = errors.New("the disk is full")
	fx.values.mu.Unlock()
	token, err := fx.token(ann)
	fx.wantCode(err, errcode.ToolUnavailable, "a token that cannot be stored")
	if token != "" {
		t.Errorf("it is used: %q", token)
	}
	fx.values.mu.Lock()
	fx.values.fail = nil
	fx.values.mu.Unlock()
	fx.restart() // killed after the answer and before it was stored; this issuer accepts a refresh token once
	_, err = fx.token(ann)
	fx.wantCode(err, errcode.AuthorizationRequired, "after a kill during the refresh")
	if token, err := fx.token(mcpauth.Operator); err != nil || !strings.HasPrefix(token, "at-op-") {
		t.Errorf("the operator: %q, %v", token, err)
	}
}

// An issuer that does not refresh ends the login for good; it is not asked again.
func TestRefresh_RejectedEndsLogin(t *testing.T) {
	fx := newFixture(t)
	fx.expiring()
	fx.upstream.Revoke(true)
	for range 3 {
		_, err := fx.token(ann)
		fx.wantCode(err, errcode.AuthorizationRequired, "a revoked login")
		fx.restart()
	}
	fx.upstream.Change(func() {
		if fx.upstream.Refreshes != 1 {
			t.Errorf("%d refreshes", fx.upstream.Refreshes)
		}
	})
	if login, found, err := fx.server().FindLogin(t.Context(), ann); err != nil || !found || !login.Ended {
		t.Errorf("got %+v, %t, %v", login, found, err)
	}
	fx.must(fx.logIn(ann, "ann"))
	if _, err := fx.token(ann); err != nil {
		t.Errorf("after another login: %v", err)
	}
}

// What an issuer may answer to a refresh.
func TestRefresh_HostileAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(http.ResponseWriter)
		code   errcode.Code
	}{
		"an outage":          {func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, errcode.ToolUnavailable},
		"too many requests":  {func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) }, errcode.ToolUnavailable},
		"no document":        {func(w http.ResponseWriter) { _, _ = w.Write([]byte("hello")) }, errcode.ToolUnavailable},
		"no token":           {func(w http.ResponseWriter) { writeJSON(w, `{}`) }, errcode.ToolUnavailable},
		"a foreign audience": {func(w http.ResponseWriter) { writeJSON(w, `{"access_token":"`+jwt(`{"aud":"x"}`)+`"}`) }, errcode.AuthorizationRequired},
		"a redirect": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "/stolen")
			w.WriteHeader(http.StatusPermanentRedirect)
		}, errcode.ToolUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			fx.expiring()
			requests := 0
			fx.upstream.Change(func() {
				fx.upstream.Token = func(w http.ResponseWriter, _ url.Values) bool {
					requests++
					tt.answer(w)
					return true
				}
			})
			_, err := fx.token(ann)
			fx.wantCode(err, tt.code, name)
			_, err = fx.token(ann)
			fx.wantCode(err, tt.code, "again")
			fx.upstream.Change(func() {
				if requests != 1 {
					t.Errorf("%d requests without a pause", requests)
				}
				for _, request := range fx.upstream.Requests {
					if strings.Contains(request, "stolen") {
						t.Error("the redirect was followed")
					}
				}
			})
		})
	}
}

func writeJSON(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(text))
}

// A token that the server rejects before it expires is refreshed. Scopes that a call lacks are
// requested by the next login, with those that were granted before.
func TestAuthorizer_RejectedRequests(t *testing.T) {
	fx := newFixture(t)
	fx.upstream.NeedScopes("read")
	fx.must(fx.logIn(mcpauth.Operator, "op"))
	fx.upstream.Revoke(false)
	if err := fx.connect(t.Context(), fx.server().Authorizer(mcpauth.Operator)); err != nil {
		t.Errorf("with a token that can be refreshed: %v", err)
	}
	fx.upstream.NeedScopes("admin")
	err := fx.connect(t.Context(), fx.server().Authorizer(mcpauth.Operator))
	fx.wantCode(err, errcode.AuthorizationRequired, "without the scope")
	login := fx.must(fx.logIn(mcpauth.Operator, "op"))
	if got := slices.Sorted(slices.Values(login.Scopes)); !slices.Equal(got, []string{"admin", "read"}) {
		t.Errorf("got the scopes %s", got)
	}
	if err := fx.connect(t.Context(), fx.server().Authorizer(mcpauth.Operator)); err != nil {
		t.Error(err)
	}
}

// machineFixture is a fixture with client credentials.
func machineFixture(t *testing.T) *fixture {
	fx := newFixture(t)
	fx.upstream.Change(func() { fx.upstream.Clients["robot"] = "s3cret-canary" })
	fx.config.Grant, fx.config.PerCaller = mcpauth.ClientCredentials, false
	fx.config.ClientID, fx.config.ClientSecret, fx.config.Issuer = "robot", "s3cret-canary", fx.upstream.Issuer.URL()
	return fx
}

func TestMachine_GetsTokens(t *testing.T) {
	fx := machineFixture(t)
	a := fx.server().Authorizer(mcpauth.Operator)
	if err := fx.connect(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	fx.upstream.NeedScopes("read")
	if err := fx.connect(t.Context(), a); err != nil {
		t.Errorf("with another scope: %v", err)
	}
	fx.upstream.Revoke(true)
	fx.wantCode(fx.connect(t.Context(), a), errcode.ToolUnavailable, "a new token that is rejected")
	if err := fx.connect(t.Context(), fx.server().Authorizer(mcpauth.Operator)); err != nil {
		t.Errorf("with another token: %v", err)
	}
	if stored := fx.values.text(); stored != "" {
		t.Errorf("stored: %s", stored)
	}
	_, err := fx.logIn(mcpauth.Operator, "op")
	fx.wantCode(err, errcode.Conflict, "a login")
}

// The secret of the client is not sent to an issuer that the server names.
func TestMachine_HostileServers(t *testing.T) {
	for name, tt := range map[string]func(*fixture){
		"another issuer":     func(fx *fixture) { fx.upstream.NameIssuer("https://evil.example") },
		"a wrong secret":     func(fx *fixture) { fx.upstream.Clients["robot"] = "other" },
		"a foreign audience": answer("access_token", jwt(`{"aud":"x"}`)),
	} {
		t.Run(name, func(t *testing.T) {
			fx := machineFixture(t)
			fx.upstream.Change(func() { tt(fx) })
			a := fx.server().Authorizer(mcpauth.Operator)
			err := fx.connect(t.Context(), a)
			fx.wantCode(err, errcode.ToolUnavailable, name)
			if err != nil && (strings.Contains(err.Error(), "canary") || strings.Contains(errcode.Message(err), "evil")) {
				t.Errorf("got %v", err)
			}
			if source, _ := a.TokenSource(t.Context()); source != nil {
				t.Error("there is a token")
			}
		})
	}
}
