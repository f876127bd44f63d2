package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/keystore"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// loginsAt returns the logins of a runtime of its own.
func loginsAt(t *testing.T) *mcpauth.Store {
	t.Helper()
	dir := t.TempDir()
	store, err := persist.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := runtime.New(runtime.Config{Store: store, Groups: toolgroups.NewManager(toolgroups.ReservedIDs()...),
		Model: func(string) (model.Model, error) { return nil, errors.New("no model in this test") }})
	if err != nil {
		t.Fatal(err)
	}
	logins := mcpauth.NewStore(rt.OwnerStore(), keystore.Open(dir))
	t.Cleanup(func() {
		logins.Close()
		if err := errors.Join(rt.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return logins
}

// browse opens a page as the browser of a user, which follows redirects until it is sent back to
// redirect.
func browse(t *testing.T, page, redirect, user string) mcpauth.Answer {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for range 10 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-User", user)
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		next, err := response.Location()
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatalf("%s answered %s: %v", page, response.Status, err)
		}
		if page = next.String(); strings.HasPrefix(page, redirect) {
			q := next.Query()
			return mcpauth.Answer{Code: q.Get("code"), State: q.Get("state"), Issuer: q.Get("iss"), Error: q.Get("error")}
		}
	}
	t.Fatal("the issuer redirects in circles")
	return mcpauth.Answer{}
}

// rejectToken makes an Authorizer refresh its token, as a server that rejects it does.
func rejectToken(t *testing.T, a mcpauth.Authorizer) {
	t.Helper()
	source, err := a.TokenSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	token, err := source.Token()
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	token.SetAuthHeader(request)
	response := &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{"Www-Authenticate": {"Bearer"}}, Body: http.NoBody}
	if err := a.Authorize(t.Context(), request, response); err != nil {
		t.Fatal(err)
	}
	if newer, err := source.Token(); err != nil || newer.AccessToken == token.AccessToken {
		t.Errorf("the token was not refreshed: %v", err)
	}
}

// rolecall logs in to rolecall: oidc-provider registers the client, logs people in, and issues
// tokens for the server, which the server checks. Machines have client credentials.
func TestMCPLogin_OIDCProvider(t *testing.T) {
	issuer := startIssuer(t)
	fx := newServeFixture(t, fmt.Sprintf(issuerConfig, issuer))
	gateway, _ := fx.serve(t)
	const redirect = "http://127.0.0.1:54321/callback"
	logins := loginsAt(t)
	c := mcpauth.Config{Server: "other", URL: gateway + "/mcp", PerCaller: true, Audience: "rolecall", Logins: logins}
	people, err := mcpauth.New(c)
	if err != nil {
		t.Fatal(err)
	}
	connect := func(ctx context.Context, a mcpauth.Authorizer) error {
		return mcpclient.Connect(ctx, mcpclient.Config{Name: "other", URL: c.URL, Auth: people}, a)
	}
	for _, user := range []string{"ann", "bob"} {
		subject := mcpauth.Subject("user:" + user + "@r1")
		if user == "ann" {
			subject = mcpauth.Operator
		}
		offer, err := people.BeginLogin(t.Context(), subject, mcpauth.LoginRequest{Redirect: redirect}, connect)
		if err != nil {
			t.Fatal(err)
		}
		login, err := people.FinishLogin(t.Context(), subject, offer.ID, browse(t, offer.URL, redirect, user))
		if err != nil || login.Issuer != issuer {
			t.Fatalf("got %+v, %v", login, err)
		}
		rejectToken(t, people.Authorizer(subject))
		if err := connect(t.Context(), people.Authorizer(subject)); err != nil {
			t.Errorf("with the refreshed token of %s: %v", user, err)
		}
	}
	c.PerCaller, c.Grant, c.ClientID, c.ClientSecret, c.Issuer = false, mcpauth.ClientCredentials, "finance-job", "secret-of-finance-job", issuer
	machine, err := mcpauth.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := connect(t.Context(), machine.Authorizer(mcpauth.Operator)); err != nil {
		t.Errorf("with client credentials: %v", err)
	}
	c.Audience = ""
	if machine, err = mcpauth.New(c); err != nil {
		t.Fatal(err)
	}
	if err := connect(t.Context(), machine.Authorizer(mcpauth.Operator)); err == nil || !strings.Contains(err.Error(), "audience") {
		t.Errorf("with a token for another audience: %v", err)
	}
}
