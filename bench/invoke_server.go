package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// serverEnv names the environment variable with the kind of server that this program is,
// started again by runInvoke: invokeBare or invokeGateway.
const serverEnv = "ROLECALL_BENCH_SERVER"

// serverProfileEnv names the environment variable with the file for the gateway's CPU profile.
const serverProfileEnv = "ROLECALL_BENCH_PROFILE"

const (
	invokeBare    = "bare"
	invokeGateway = "gateway"
)

// The tools of the gateway. Both do the same; changingTool is declared to change something, so
// each of its calls waits for its records.
const (
	readingTool  = toolName
	changingTool = "change_forecast"
)

// What a JSON answer of the servers contains. The bare server sends the same bytes.
var invokeAnswer = `{"result":"\"sunny in Vienna\""}` + "\n"

// invokeAddress is where a server answers, and the tokens that it takes.
type invokeAddress struct{ URL, Static, Issued string }

// serveInvoke runs the server that the environment names until its standard input ends. It
// reports whether there is one.
func serveInvoke() bool {
	var at invokeAddress
	switch os.Getenv(serverEnv) {
	case invokeBare:
		url, _, err := startServer(http.HandlerFunc(answerBare))
		at.URL = must(url, err)
	case invokeGateway:
		if name := os.Getenv(serverProfileEnv); name != "" {
			defer must(startProfile(name))()
		}
		at = must(startGateway())
	default:
		return false
	}
	must(0, json.NewEncoder(os.Stdout).Encode(at))
	must(io.Copy(io.Discard, os.Stdin))
	return true
}

// answerBare is the floor: net/http and encoding/json, no token, no role, no check and no record.
func answerBare(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var in weatherInput
	if err = errors.Join(err, json.Unmarshal(body, &in)); err != nil || in.City == "" {
		http.Error(w, "malformed body", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, invokeAnswer)
}

// startGateway serves the API of an organization in memory as rolecall serve does over TCP, with
// the garbage collector set as there.
func startGateway() (invokeAddress, error) {
	debug.SetGCPercent(200)
	fx, err := newFixture(memory.New(), scriptedModel{})
	if err != nil {
		return invokeAddress{}, err
	}
	change, err := tool.New(changingTool, toolText, forecast, &tool.Options{Effect: tool.Mutating})
	if err != nil {
		return invokeAddress{}, err
	}
	if _, err := grouptest.RegisterGroup(fx.GroupManager(), "changes", toolgroups.Group{ID: "changes", Tools: []tool.Tool{change}}); err != nil {
		return invokeAddress{}, err
	}
	use := toolgroups.SetOf("weather", "changes")
	role, err := fx.CreateRole(context.Background(), tool.Call{ID: "clerk", By: operator}, org.RoleSpec{Name: "clerk", Prompt: rolePrompt, Use: &use})
	if err != nil {
		return invokeAddress{}, err
	}
	fx.role = role.ID
	at, tokens, err := fx.newTokens()
	if err != nil {
		return invokeAddress{}, err
	}
	mcp, err := mcpserver.New(mcpserver.Config{Runtime: fx.Runtime, Streaming: gateway.UntilShutdown})
	if err != nil {
		return invokeAddress{}, err
	}
	handler, err := gateway.New(gateway.Config{Runtime: fx.Runtime, Authenticate: tokens.Authenticate, MCP: mcp, Sessions: tokens})
	if err != nil {
		return invokeAddress{}, err
	}
	l, err := gateway.ListenTCP("127.0.0.1:0", true, nil)
	if err != nil {
		return invokeAddress{}, err
	}
	at.URL = "http://" + l.Addr().String()
	go func() {
		must(0, gateway.Serve(context.Background(), l, auth.HostCheck{Tokens: tokens}.Wrap(handler), nil))
	}()
	return at, nil
}

// newTokens returns a token of the configuration and one of an issuer, for callers in the
// fixture's role, and the store that takes them.
func (fx *fixture) newTokens() (at invokeAddress, tokens *auth.TokenStore, err error) {
	if tokens, err = auth.NewTokenStore(auth.TokenStoreConfig{Role: fx.Org().RoleByID}); err != nil {
		return at, nil, err
	}
	at.Static = auth.TokenPrefix + rand.Text()
	err = tokens.ReplaceTokens([]auth.Token{{Name: "ann", Digest: sha256.Sum256([]byte(at.Static)), Scope: auth.ScopeRole, Role: fx.role}})
	if err != nil {
		return at, nil, err
	}
	var issuer auth.Issuer
	if issuer, at.Issued, err = newBenchIssuer(fx.role); err != nil {
		return at, nil, err
	}
	return at, tokens, tokens.ReplaceIssuers([]auth.Issuer{issuer})
}

// newBenchIssuer starts an issuer of OpenID Connect and returns it with a token of bob, who has
// the role.
func newBenchIssuer(role identity.RoleID) (auth.Issuer, string, error) {
	const audience = "bench"
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return auth.Issuer{}, "", err
	}
	provider := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "k", Algorithm: gooidc.RS256}}}
	url, _, err := startServer(provider)
	if err != nil {
		return auth.Issuer{}, "", err
	}
	provider.SetIssuer(url)
	service, err := oidc.New(oidc.Config{Name: "issuer", Issuer: url, Audience: []string{audience}})
	if err != nil {
		return auth.Issuer{}, "", err
	}
	claims := fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":"bob","team":"weather","exp":%d}`, url, audience, time.Now().Add(time.Hour).Unix())
	return auth.Issuer{
		Name: "issuer", URL: url, User: "sub", Verifier: issuerKeys{service},
		Rules: []auth.ClaimRule{{Claim: "/team", Value: "weather", Scope: auth.ScopeRole, Role: role}},
	}, oidctest.SignIDToken(key, "k", gooidc.RS256, claims), nil
}

// issuerKeys implements auth.TokenVerifier.
type issuerKeys struct{ *oidc.Service }

// VerifyToken implements auth.TokenVerifier.
func (v issuerKeys) VerifyToken(ctx context.Context, token string) (json.RawMessage, error) {
	claims, err := v.Verify(ctx, token)
	return json.RawMessage(claims), err
}
