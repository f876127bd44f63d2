package mcpauth_test

import (
	"context"
	"iter"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/keystore"
	"github.com/rolecall/rolecall/internal/test/oauthtest"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
	"github.com/rolecall/rolecall/toolgroups"
)

// memoryValues is a mcpauth.Values in memory.
type memoryValues struct {
	mu     sync.Mutex
	values map[toolgroups.GroupOwner][]byte
	fail   error // of writes
}

func (m *memoryValues) ReadValue(_ context.Context, owner toolgroups.GroupOwner) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[owner], nil
}

func (m *memoryValues) WriteValue(_ context.Context, owner toolgroups.GroupOwner, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	if value == nil {
		delete(m.values, owner)
		return nil
	}
	m.values[owner] = value
	return nil
}

func (m *memoryValues) ListOwners(context.Context) iter.Seq2[toolgroups.GroupOwner, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	var owners []toolgroups.GroupOwner
	for owner := range m.values {
		owners = append(owners, owner)
	}
	return func(yield func(toolgroups.GroupOwner, error) bool) {
		for _, owner := range owners {
			if !yield(owner, nil) {
				return
			}
		}
	}
}

// text returns all that is stored.
func (m *memoryValues) text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	for owner, value := range m.values {
		b.WriteString(string(owner) + " " + string(value) + "\n")
	}
	return b.String()
}

// fixture is a server that requires OAuth, and the logins at it.
type fixture struct {
	*testing.T
	upstream *oauthtest.Server
	values   *memoryValues
	keys     string // directory
	logins   *mcpauth.Store
	config   mcpauth.Config
}

func newFixture(t *testing.T) *fixture {
	fx := &fixture{T: t, upstream: oauthtest.NewServer(t), values: &memoryValues{values: map[toolgroups.GroupOwner][]byte{}}, keys: t.TempDir()}
	fx.config = mcpauth.Config{Server: "web", URL: fx.upstream.URL(), PerCaller: true}
	fx.restart()
	return fx
}

// restart opens what is stored again, as another process.
func (fx *fixture) restart() {
	fx.logins = mcpauth.NewStore(fx.values, keystore.Open(fx.keys))
	fx.Cleanup(fx.logins.Close)
}

// server returns the server as it is configured.
func (fx *fixture) server() *mcpauth.Server {
	fx.Helper()
	c := fx.config
	c.Logins = fx.logins
	s, err := mcpauth.New(c)
	if err != nil {
		fx.Fatal(err)
	}
	return s
}

// connect is a mcpauth.Connect.
func (fx *fixture) connect(ctx context.Context, a mcpauth.Authorizer) error {
	return mcpclient.Connect(ctx, mcpclient.Config{Name: "web", URL: fx.config.URL, Auth: fx.server()}, a)
}

const redirect = "http://127.0.0.1:54321/callback"

// logIn logs a subject in as a user of the issuer.
func (fx *fixture) logIn(subject mcpauth.Subject, user string) (mcpauth.Login, error) {
	fx.Helper()
	return fx.logInWith(subject, user, mcpauth.LoginRequest{Redirect: redirect}, func(url.Values) {})
}

// logInWith logs in with a request and a changed answer.
func (fx *fixture) logInWith(subject mcpauth.Subject, user string, q mcpauth.LoginRequest, change func(url.Values)) (mcpauth.Login, error) {
	fx.Helper()
	s := fx.server()
	offer, err := s.BeginLogin(fx.Context(), subject, q, fx.connect)
	if err != nil {
		return mcpauth.Login{}, err
	}
	back := oauthtest.LogIn(fx, offer.URL, user)
	change(back)
	return s.FinishLogin(fx.Context(), subject, offer.ID, answerOf(back))
}

// answerOf returns the answer in a query.
func answerOf(back url.Values) mcpauth.Answer {
	return mcpauth.Answer{Code: back.Get("code"), State: back.Get("state"), Issuer: back.Get("iss"), Error: back.Get("error")}
}

// must fails the test unless a login succeeded.
func (fx *fixture) must(login mcpauth.Login, err error) mcpauth.Login {
	fx.Helper()
	if err != nil {
		fx.Fatal(err)
	}
	return login
}

// token returns the token that a subject has now.
func (fx *fixture) token(subject mcpauth.Subject) (string, error) {
	fx.Helper()
	source, err := fx.server().Authorizer(subject).TokenSource(fx.Context())
	if err != nil {
		return "", err
	}
	token, err := source.Token()
	if err != nil {
		return "", err
	}
	return token.AccessToken, nil
}

// wantCode checks the code of an error.
func (fx *fixture) wantCode(err error, code errcode.Code, what string) {
	fx.Helper()
	if errcode.CodeOf(err) != code {
		fx.Errorf("%s: got %v, want the code %s", what, err, code)
	}
}
