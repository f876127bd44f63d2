package gateway_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// loginKeeper keeps logins by their subject, for the servers web and other.
type loginKeeper struct{ logins []wire.MCPLogin }

func (k *loginKeeper) ListServers(context.Context) ([]wire.MCPServer, error) {
	return []wire.MCPServer{{Name: "other", Logins: slices.Clone(k.logins)}, {Name: "web", Logins: slices.Clone(k.logins)}}, nil
}

func (k *loginKeeper) BeginLogin(_ context.Context, server string, by identity.Principal, q wire.MCPLoginRequest) (wire.MCPLoginOffer, error) {
	return wire.MCPLoginOffer{ID: by.String(), URL: q.Redirect, Issuer: server}, nil
}

func (k *loginKeeper) FinishLogin(_ context.Context, server string, by identity.Principal, id string, _ wire.MCPLoginAnswer) (wire.MCPLogin, error) {
	if id != by.String() {
		return wire.MCPLogin{}, errcode.New(errcode.ItemNotFound, "an attempt of another")
	}
	k.logins = append(k.logins, wire.MCPLogin{Subject: by.String(), Issuer: server})
	return k.logins[len(k.logins)-1], nil
}

func (k *loginKeeper) Logout(_ context.Context, _ string, by identity.Principal) (wire.MCPLogin, error) {
	at := slices.IndexFunc(k.logins, func(l wire.MCPLogin) bool { return l.Subject == by.String() })
	if at < 0 {
		return wire.MCPLogin{}, errcode.New(errcode.ItemNotFound, "no login")
	}
	l := k.logins[at]
	k.logins = slices.Delete(k.logins, at, at+1)
	return l, nil
}

// newLoginClients returns clients of the operator, of two callers in a role with a tool of the
// server web, and of one in a role without.
func newLoginClients(t *testing.T) map[string]*client.Client {
	t.Helper()
	f := newFixture(t, gatewaytest.TeamModel)
	read, err := tool.New("read", "reads", func(context.Context, struct{}) (string, error) { return "", nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := grouptest.RegisterGroup(f.Runtime.GroupManager(), modules.OwnerOf("web"), toolgroups.Group{ID: "web", Description: "d", Tools: []tool.Tool{read}}); err != nil {
		t.Fatal(err)
	}
	senders := map[string]identity.Principal{"operator": identity.ByOperator("op")}
	for user, group := range map[string]toolgroups.GroupID{"ann": "web", "bob": "web", "eve": "console"} {
		use := toolgroups.SetOf(group)
		role, err := f.Runtime.CreateRole(t.Context(), tool.Call{By: identity.ByOperator("op")}, org.RoleSpec{Name: "role of " + user, Use: &use})
		if err != nil {
			t.Fatal(err)
		}
		senders[user] = identity.ByCaller(identity.UserName(user), role.ID)
	}
	keeper, clients := &loginKeeper{}, map[string]*client.Client{}
	for name, sender := range senders {
		handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Logins: keeper, Authenticate: func(*http.Request) (identity.Principal, error) { return sender, nil }})
		if err != nil {
			t.Fatal(err)
		}
		clients[name] = client.NewLocal(auth.TrustLocalOwner(gatewaytest.WithOpenAPICheck(t, handler)))
	}
	return clients
}

// serversOf returns what a sender lists, as server:logins.
func serversOf(t *testing.T, api *client.Client) string {
	t.Helper()
	var list []string
	for s, err := range api.ListMCPServers(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		text := s.Name + ":"
		for _, l := range s.Logins {
			name, _, _ := strings.Cut(l.Subject, "@")
			text += " " + name
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// A login is that of the sender. A caller finds the servers of which its role has a tool, and its own
// logins; everything else is answered like a server that does not exist.
func TestMCPLogin_IsOfItsSender(t *testing.T) {
	clients := newLoginClients(t)
	request, ctx := client.MCPLoginRequest{Redirect: "http://127.0.0.1:1/callback"}, t.Context()
	offers := map[string]client.MCPLoginOffer{}
	for _, user := range []string{"ann", "bob", "operator"} {
		offer, err := clients[user].BeginLogin(ctx, "web", request)
		if err != nil {
			t.Fatal(err)
		}
		offers[user] = offer
	}
	if _, err := clients["bob"].FinishLogin(ctx, "web", offers["ann"].ID, client.MCPLoginAnswer{Code: "c"}); errcode.CodeOf(err) != errcode.ItemNotFound {
		t.Errorf("bob finishes the login of ann: %v", err)
	}
	for _, user := range []string{"ann", "bob", "operator"} {
		if _, err := clients[user].FinishLogin(ctx, "web", offers[user].ID, client.MCPLoginAnswer{Code: "c"}); err != nil {
			t.Errorf("%s: %v", user, err)
		}
	}
	for user, want := range map[string]string{
		"ann": "web: user:ann", "bob": "web: user:bob", "eve": "", "operator": "other: user:ann user:bob operator, web: user:ann user:bob operator",
	} {
		if got := serversOf(t, clients[user]); got != want {
			t.Errorf("%s lists %q, want %q", user, got, want)
		}
	}
	for user, server := range map[string]string{"eve": "web", "ann": "other"} {
		_, hidden := clients[user].BeginLogin(ctx, server, request)
		_, missing := clients[user].BeginLogin(ctx, "nowhere", request)
		if errcode.CodeOf(hidden) != errcode.ItemNotFound || strings.ReplaceAll(hidden.Error(), server, "nowhere") != missing.Error() {
			t.Errorf("%s at %s: %v, and %v of one that does not exist", user, server, hidden, missing)
		}
		if _, err := clients[user].FinishLogin(ctx, server, offers["ann"].ID, client.MCPLoginAnswer{}); errcode.CodeOf(err) != errcode.ItemNotFound {
			t.Errorf("%s finishes at %s: %v", user, server, err)
		}
		if _, err := clients[user].Logout(ctx, server); errcode.CodeOf(err) != errcode.ItemNotFound {
			t.Errorf("%s logs out of %s: %v", user, server, err)
		}
	}
	if login, err := clients["ann"].Logout(ctx, "web"); err != nil || !strings.HasPrefix(login.Subject, "user:ann@") {
		t.Errorf("got %+v, %v", login, err)
	}
	if got := serversOf(t, clients["bob"]); got != "web: user:bob" {
		t.Errorf("after the logout of ann, bob lists %q", got)
	}
}
