package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/keystore"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
)

// suiteLogin logs in to the server of a conformance scenario, as a person does: its authorization
// server sends every browser back at once.
type suiteLogin struct {
	url     string
	logins  *mcpauth.Store
	server  *mcpauth.Server
	machine bool // no login is needed
}

// machineScenarios begins the names of the scenarios in which a machine logs in.
const machineScenarios = "auth/client-credentials-"

// newSuiteLogin returns the login of a scenario, with the client that its context names.
func newSuiteLogin(ctx context.Context, url, scenario, dir string, values mcpauth.Values) (*suiteLogin, error) {
	var client struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Issuer string `json:"issuer"`
		Key    string `json:"private_key_pem"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &client); err != nil {
			return nil, fmt.Errorf("decode the context of %s: %w", scenario, err)
		}
	}
	l := &suiteLogin{url: url, logins: mcpauth.NewStore(values, keystore.Open(dir))}
	c := mcpauth.Config{Server: "suite", URL: url, Logins: l.logins, ClientMetadataURL: "https://conformance-test.local/client-metadata.json"}
	if client.ID != "" {
		c.ClientID, c.ClientSecret, c.Issuer = client.ID, client.Secret, client.Issuer
	}
	if strings.HasPrefix(scenario, machineScenarios) {
		c.Grant, c.ClientMetadataURL, l.machine = mcpauth.ClientCredentials, "", true
		c.ClientKey = client.Key
		issuer, err := namedIssuer(ctx, url)
		if err != nil {
			return nil, err
		}
		c.Issuer = issuer
	}
	var err error
	l.server, err = mcpauth.New(c)
	return l, err
}

// namedIssuer returns the issuer that a server names. The context of a machine's scenario leaves
// it out, but a machine sends its secret to an issuer that its operator has configured only.
func namedIssuer(ctx context.Context, server string) (string, error) {
	at := strings.Replace(server, "/mcp", "/.well-known/oauth-protected-resource/mcp", 1)
	found, err := oauthex.GetProtectedResourceMetadata(ctx, at, server, nil)
	if err != nil {
		return "", err
	}
	return found.AuthorizationServers[0], nil
}

// logIn logs the operator in. When the server names another issuer than before, the operator
// trusts it.
func (l *suiteLogin) logIn(ctx context.Context, issuer string) error {
	if l.machine {
		return nil
	}
	connect := func(ctx context.Context, a mcpauth.Authorizer) error {
		return mcpclient.Connect(ctx, mcpclient.Config{Name: "suite", URL: l.url, Auth: l.server}, a)
	}
	request := mcpauth.LoginRequest{Redirect: "http://127.0.0.1:3000/callback", Issuer: issuer}
	offer, err := l.server.BeginLogin(ctx, mcpauth.Operator, request, connect)
	if e, ok := errors.AsType[*errcode.Error](err); ok && issuer == "" {
		if named, ok := e.Details["issuer"].(string); ok {
			return l.logIn(ctx, named)
		}
	}
	if err != nil {
		return err
	}
	answer, err := visit(ctx, offer.URL)
	if err != nil {
		return err
	}
	login, err := l.server.FinishLogin(ctx, mcpauth.Operator, offer.ID, answer)
	fmt.Fprintf(os.Stderr, "login: %+v %v\n", login, err)
	return err
}

// visit opens a page as a browser does, and returns the answer with which it is sent back.
func visit(ctx context.Context, page string) (a mcpauth.Answer, err error) {
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return a, err
	}
	response, err := client.Do(r)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	back, err := response.Location()
	if err != nil {
		return a, fmt.Errorf("the authorization server answered %s: %w", response.Status, err)
	}
	q := back.Query()
	return mcpauth.Answer{Code: q.Get("code"), State: q.Get("state"), Issuer: q.Get("iss"), Error: q.Get("error")}, nil
}
