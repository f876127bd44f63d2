// Package gatewaytest provides what the tests of the packages in gateway share. It has
// a runtime with a gateway (Fixture), and ways to serve it and to send requests. It
// has models that play fixed agents, tools with declared parameters, and a fake of the
// auth services that verify tokens.
package gatewaytest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/tool"
)

// DeclaredTool is a tool with declared parameters. Its result is a row of its argument
// values, or a fixed text.
type DeclaredTool struct {
	definition tool.Definition
	set        *parameter.Set
	answer     string // the fixed result; "" for the argument values
}

// NewDeclaredTool returns a tool whose result is answer, or its argument values if
// answer is "". A call needs a valid token for one of the services in anyOf, unless it
// is nil. Parameters may use claims of the services my_auth and other-auth.
func NewDeclaredTool(t testing.TB, name, answer string, anyOf []string, specs ...parameter.Spec) DeclaredTool {
	t.Helper()
	set, problems := parameter.CompileSet(parameter.Options{Services: []string{"my_auth", "other-auth"}}, specs, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	d := tool.Definition{Name: name, Description: name + " of the tests", Input: set.Schema(), Declared: set}
	if anyOf != nil || set.ClaimServices() != nil || set.HasSecure() {
		d.Auth = &tool.Auth{AnyOf: anyOf, Parameters: set.ClaimServices(), SecureArgs: set.HasSecure()}
	}
	return DeclaredTool{d, set, answer}
}

// WithStates returns the same tool, available only in these workflow states.
func (d DeclaredTool) WithStates(states ...string) DeclaredTool {
	d.definition.States = states
	return d
}

// Definition implements tool.Tool.
func (d DeclaredTool) Definition() tool.Definition { return d.definition }

// Call implements tool.Tool.
func (d DeclaredTool) Call(_ context.Context, c tool.Call) (tool.Result, error) {
	values, err := d.set.ParseArguments(c.Args, func(service string) (json.RawMessage, bool) { claims, ok := c.Claims[service]; return claims, ok }, c.Secure)
	if err != nil {
		return tool.Failure(c.Name, err), nil
	}
	if d.answer != "" {
		return tool.Result{Text: d.answer}, nil
	}
	row, err := json.Marshal(values.BindValues())
	return tool.Result{Structured: json.RawMessage(`[{"row":` + string(row) + `}]`)}, err
}

// FakeAuthn implements gate.TokenVerifier. It accepts the token "good SERVICE" for each
// service and returns the subject "ann of SERVICE".
type FakeAuthn struct{}

// VerifyToken implements gate.TokenVerifier.
func (FakeAuthn) VerifyToken(_ context.Context, service, token string) (gate.VerifiedToken, error) {
	if token != "good "+service {
		return gate.VerifiedToken{}, errcode.New(errcode.Unauthenticated, "a bad token")
	}
	return gate.VerifiedToken{Claims: json.RawMessage(`{"sub":"ann of ` + service + `"}`)}, nil
}
