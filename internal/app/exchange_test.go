package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/test/oauthtest"
	"github.com/rolecall/rolecall/internal/test/oidctest"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// exchangeFixture is an organization whose callers sign in with an issuer, and a server whose tokens
// are exchanged for those.
type exchangeFixture struct {
	*fixture
	idp      *oidctest.Issuer
	upstream *oauthtest.Server
	url      string
	key      string // path of the client's key
}

// exchangeScript makes an agent of the role staff call the server.
const exchangeScript = `
role("root", function* () {
  const brief = { objective: "o", constraints: [], inputs: "i", outputs: "o", completion_criteria: "c" };
  yield call("spawn_agent_with_task", { roleId: "staff", taskBrief: brief, initialMessage: "go" });
  return (yield receive()).payload;
});
role("staff", function* () {
  try { return "agent: " + JSON.stringify(yield call("tracker__whoami", {})); } catch (e) { return "failed: " + e; }
});`

func newExchangeFixture(t *testing.T) *exchangeFixture {
	fx := &exchangeFixture{fixture: openConnected(t, Options{Serve: true}), idp: oidctest.NewIssuer(t), upstream: oauthtest.NewServer(t), key: filepath.Join(t.TempDir(), "key.pem")}
	fx.rotateKey()
	fx.configure()
	h, err := fx.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	fx.url = server.URL + "/mcp"
	return fx
}

// rotateKey writes another key of the client, which the issuer of the server knows.
func (fx *exchangeFixture) rotateKey() {
	fx.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		fx.t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		fx.t.Fatal(err)
	}
	if err := os.WriteFile(fx.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		fx.t.Fatal(err)
	}
	fx.upstream.Change(func() { fx.upstream.Keys["rolecall"] = key.Public() })
}

// configure applies the configuration, with the key as it is.
func (fx *exchangeFixture) configure() {
	fx.t.Helper()
	docs := []string{
		"{kind: organization, name: o, model: m}", "{kind: model, name: m, type: script, file: agents.js}",
		fmt.Sprintf("{kind: mcpServer, name: tracker, url: %q, auth: {oauth: {grant: clientCredentials, clientId: rolecall, clientKey: '${file:%s}', issuer: %q}}, credentials: {per: caller, exchange: {issuer: corp}}}",
			fx.upstream.URL(), fx.key, fx.upstream.Issuer.URL()),
		"{kind: role, name: staff, description: Works., toolGroups: [org_management, tracker]}",
		"{kind: role, name: ci}", issuerDoc(fx.idp.URL, "staff"),
	}
	cfg, err := config.ReadFiles([]yamldoc.File{{Path: "org.yaml", Data: []byte(strings.Join(docs, "\n---\n"))}, {Path: "agents.js", Data: []byte(exchangeScript), Named: true}}, nil)
	if err != nil {
		fx.t.Fatal(err)
	}
	if _, err := fx.reconfigure(fx.t.Context(), cfg); err != nil {
		fx.t.Fatal(err)
	}
}

// token returns a token of a user for an hour. The issuer of the server exchanges it if known is true.
func (fx *exchangeFixture) token(user string, known bool) string {
	token := fx.idp.SignToken(fmt.Sprintf(`{"iss":%q,"aud":"gw","sub":%q,"groups":["staff"],"exp":%d}`, fx.idp.URL, user, time.Now().Add(time.Hour).Unix()))
	if known {
		fx.upstream.Change(func() { fx.upstream.Subjects[token] = user })
	}
	return token
}

// call calls a tool over MCP with a token, and returns all that is answered.
func (fx *exchangeFixture) call(token, name string, args map[string]any) string {
	fx.t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(fx.t.Context(), &sdk.StreamableClientTransport{Endpoint: fx.url, HTTPClient: &http.Client{Transport: bearer{token}}}, nil)
	if err != nil {
		fx.t.Fatal(err)
	}
	defer session.Close()
	r, err := session.CallTool(fx.t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return err.Error()
	}
	text, _ := json.Marshal(r)
	return string(text)
}

// The token with which a person authenticates at the gateway is exchanged for one of the server, for
// calls of the person and of the agents that work for it. No token gets anywhere else.
func TestExchange_FromGatewayToServer(t *testing.T) {
	fx := newExchangeFixture(t)
	ann, bob, eve := fx.token("ann", true), fx.token("bob", true), fx.token("eve", false)
	for token, want := range map[string]string{ann: "ann", bob: "bob", eve: "authorization_required"} {
		if got := fx.call(token, "tracker__whoami", nil); !strings.Contains(got, want) {
			t.Errorf("a call with the token of %s: %s", want, got)
		}
		if got := fx.call(token, "ask_organization", map[string]any{"task": "who am I?"}); !strings.Contains(got, want) {
			t.Errorf("a task of %s: %s", want, got)
		}
	}
	everything := fx.logs.String() + strings.Join(fx.upstream.Tokens(), "\n")
	for e, err := range fx.store.FollowEvents(t.Context(), 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(e)
		everything += string(text)
	}
	for _, token := range []string{ann, bob, eve} {
		if strings.Contains(everything, token) {
			t.Error("a token of a person is in the record, in the log or at the server")
		}
	}
	if strings.Contains(fx.logs.String(), "at-ann-") {
		t.Error("a token for the server is in the log")
	}
}

// Another key of the client is used once the configuration has been read again, and the tokens of
// callers are not kept over that.
func TestExchange_KeyRotates(t *testing.T) {
	fx := newExchangeFixture(t)
	ann := fx.token("ann", true)
	if got := fx.call(ann, "tracker__whoami", nil); !strings.Contains(got, "ann") {
		t.Fatal(got)
	}
	fx.rotateKey()
	fx.upstream.Revoke(true)
	fx.configure()
	if got := fx.call(ann, "tracker__whoami", nil); !strings.Contains(got, "ann") {
		t.Error(got)
	}
}
