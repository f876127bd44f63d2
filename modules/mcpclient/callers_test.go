package mcpclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/keystore"
	"github.com/rolecall/rolecall/internal/test/oauthtest"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
	"github.com/rolecall/rolecall/tool"
)

// oauthFixture is a module of a server that requires OAuth.
type oauthFixture struct {
	*fixture
	upstream *oauthtest.Server
	server   *mcpauth.Server
	config   mcpclient.Config
}

// newOAuthFixture loads the module. It has no tools before the operator logs in.
func newOAuthFixture(t *testing.T, perCaller bool) *oauthFixture {
	fx := &oauthFixture{fixture: newFixture(t), upstream: oauthtest.NewServer(t)}
	logins := mcpauth.NewStore(fx.store, keystore.Open(t.TempDir()))
	t.Cleanup(logins.Close)
	var err error
	if fx.server, err = mcpauth.New(mcpauth.Config{Server: "web", URL: fx.upstream.URL(), PerCaller: perCaller, Logins: logins}); err != nil {
		t.Fatal(err)
	}
	fx.config = mcpclient.Config{Name: "web", URL: fx.upstream.URL(), Auth: fx.server, SubjectOf: func(c tool.Call) (mcpauth.Subject, bool) {
		return mcpauth.Subject(c.By.String()), c.By.Kind == identity.Caller
	}}
	fx.load(fx.config)
	return fx
}

// logIn logs a subject in as a user of the issuer.
func (fx *oauthFixture) logIn(subject mcpauth.Subject, user string) {
	fx.Helper()
	connect := func(ctx context.Context, a mcpauth.Authorizer) error { return mcpclient.Connect(ctx, fx.config, a) }
	offer, err := fx.server.BeginLogin(fx.Context(), subject, mcpauth.LoginRequest{Redirect: "http://127.0.0.1:5/callback"}, connect)
	if err != nil {
		fx.Fatal(err)
	}
	back := oauthtest.LogIn(fx, offer.URL, user)
	if _, err := fx.server.FinishLogin(fx.Context(), subject, offer.ID, mcpauth.Answer{Code: back.Get("code"), State: back.Get("state"), Issuer: back.Get("iss")}); err != nil {
		fx.Fatal(err)
	}
}

// logInOperator logs the operator in and waits for the tools.
func (fx *oauthFixture) logInOperator() {
	fx.Helper()
	fx.logIn(mcpauth.Operator, "op")
	fx.waitFor("the tools are listed", func() bool { return fx.hasTool("web__whoami") })
}

// callBy calls a tool for a user. The result is a text, or the code and message of the error.
func (fx *oauthFixture) callBy(user, name string) string {
	fx.Helper()
	call := tool.Call{Name: name, Args: json.RawMessage(`{}`)}
	if user != "" {
		call.By = identity.ByCaller(identity.UserName(user), "r1")
	}
	r, err := fx.handle(name).Tool.Call(fx.Context(), call)
	if err != nil {
		return string(errcode.CodeOf(err)) + ": " + errcode.Message(err)
	}
	return r.Text
}

func subjectOf(user string) mcpauth.Subject {
	return mcpauth.Subject(identity.ByCaller(identity.UserName(user), "r1").String())
}

func TestOAuth_ToolsComeWithLogin(t *testing.T) {
	fx := newOAuthFixture(t, false)
	if got := fx.tools("web"); len(got) != 0 {
		t.Errorf("before the login: %v", got)
	}
	fx.logInOperator()
	fx.want(fx.callBy("ann", "web__whoami"), "op")
	if _, err := fx.server.Logout(t.Context(), mcpauth.Operator); err != nil {
		t.Fatal(err)
	}
	fx.want(fx.callBy("ann", "web__whoami"), "authorization_required: web__whoami did not run")
	if !fx.hasTool("web__whoami") {
		t.Error("an accepted tool is gone")
	}
	fx.logIn(mcpauth.Operator, "op")
	fx.want(fx.callBy("ann", "web__whoami"), "op")
}

// The token of a person is used for calls of that person only, also when many call at once.
func TestOAuth_EachCallerHasOwnToken(t *testing.T) {
	fx := newOAuthFixture(t, true)
	fx.logInOperator()
	for _, user := range []string{"ann", ""} {
		fx.want(fx.callBy(user, "web__whoami"), "authorization_required: web__whoami did not run")
	}
	users := []string{"ann", "bob", "eve"}
	for _, user := range users[:2] {
		fx.logIn(subjectOf(user), user)
	}
	var all sync.WaitGroup
	for i := range 48 {
		user := users[i%3]
		all.Go(func() {
			got := fx.callBy(user, "web__whoami")
			if user == "eve" && strings.HasPrefix(got, "authorization_required: ") {
				return
			}
			if got != user {
				t.Errorf("a call for %s returned %s", user, got)
			}
		})
	}
	all.Wait()
	if _, err := fx.server.Logout(t.Context(), subjectOf("ann")); err != nil {
		t.Fatal(err)
	}
	fx.want(fx.callBy("ann", "web__whoami"), "authorization_required: ")
	fx.want(fx.callBy("bob", "web__whoami"), "bob")
}

// A call that lacks a scope says so to its person. After another login it succeeds.
func TestOAuth_StepUp(t *testing.T) {
	fx := newOAuthFixture(t, true)
	fx.upstream.NeedScopes("read", "write")
	fx.logInOperator()
	fx.logIn(subjectOf("ann"), "ann")
	fx.want(fx.callBy("ann", "web__whoami"), "authorization_required: web__whoami did not run")
	fx.logIn(subjectOf("ann"), "ann")
	fx.want(fx.callBy("ann", "web__whoami"), "ann")
}

// A token that the server sends back is hidden, before and after a refresh.
func TestOAuth_TokensAreHidden(t *testing.T) {
	fx := newOAuthFixture(t, true)
	fx.logInOperator()
	fx.logIn(subjectOf("ann"), "ann")
	for range 2 {
		if got := fx.callBy("ann", "web__leak"); got != "your token is ***" {
			t.Errorf("got %s", got)
		}
		fx.upstream.Revoke(false)
	}
}

// A call whose token is rejected was not carried out. It is sent once more, with a refreshed token;
// without one, its outcome is known.
func TestOAuth_RejectedTokenOfCall(t *testing.T) {
	fx := newOAuthFixture(t, true)
	fx.logInOperator()
	fx.logIn(subjectOf("ann"), "ann")
	fx.want(fx.callBy("ann", "web__whoami"), "ann")
	fx.upstream.Revoke(false)
	fx.want(fx.callBy("ann", "web__whoami"), "ann")
	fx.upstream.Change(func() {
		fx.upstream.Token = func(w http.ResponseWriter, _ url.Values) bool { w.WriteHeader(http.StatusBadGateway); return true }
	})
	fx.upstream.Revoke(false)
	fx.want(fx.callBy("ann", "web__whoami"), "tool_unavailable: ") // and not tool_interrupted
}

// A token that is rejected after its refresh is not refreshed again for a while.
func TestOAuth_RejectedAgain(t *testing.T) {
	fx := newOAuthFixture(t, true)
	fx.logInOperator()
	fx.logIn(subjectOf("ann"), "ann")
	fx.want(fx.callBy("ann", "web__whoami"), "ann")
	fx.upstream.Change(func() { fx.upstream.Answer = func(m map[string]any) { m["access_token"] = "unknown-token" } })
	fx.upstream.Revoke(false)
	for range 3 {
		fx.want(fx.callBy("ann", "web__whoami"), "tool_unavailable: ")
	}
	fx.upstream.Change(func() {
		if n := fx.upstream.RefreshesOf["ann"]; n != 1 {
			t.Errorf("%d refreshes", n)
		}
	})
}

// A session at the server may remember its user, so another login has another connection.
func TestOAuth_LoginHasNewConnection(t *testing.T) {
	fx := newOAuthFixture(t, true)
	fx.logInOperator()
	fx.logIn(subjectOf("ann"), "ann")
	fx.want(fx.callBy("ann", "web__whoami"), "ann")
	fx.want(fx.callBy("ann", "web__whoami"), "ann")
	before := fx.upstream.Connections()
	fx.logIn(subjectOf("ann"), "anna")
	fx.want(fx.callBy("ann", "web__whoami"), "anna")
	if got := fx.upstream.Connections() - before; got != 2 { // of the login and of the call
		t.Errorf("%d connections", got)
	}
}

// More people than connections: those that are unused longest end. Each call has its own token.
func TestOAuth_ManyCallers(t *testing.T) {
	fx := newOAuthFixture(t, true)
	fx.logInOperator()
	for i := range 70 {
		user := fmt.Sprint("user", i)
		fx.logIn(subjectOf(user), user)
		if got := fx.callBy(user, "web__whoami"); got != user {
			t.Errorf("a call for %s returned %s", user, got)
		}
	}
	fx.want(fx.callBy("user0", "web__whoami"), "user0")
}
