// Package gatewaytest provides what the tests of the packages in gateway share: a
// runtime with a gateway for it (Fixture), ways to serve it and to send requests,
// models that play fixed agents, tools with declared parameters, and a fake for
// the auth services that verify their callers' tokens.
package gatewaytest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/parameter"
	"github.com/rolecall/rolecall/tool"
)

// Declared is a tool with declared parameters. Its result is a row of its
// argument values, or a fixed text.
type Declared struct {
	definition tool.Definition
	set        *parameter.Set
	answer     string // the fixed result; "" for the argument values
}

// Declare returns a tool whose result is answer, or its argument values if
// answer is "". A call needs a valid token for one of the services in anyOf,
// unless it is nil. Parameters may use claims of the services my_auth and
// other-auth.
func Declare(t testing.TB, name, answer string, anyOf []string, specs ...parameter.Spec) Declared {
	t.Helper()
	set, problems := parameter.Compile(parameter.Options{Services: []string{"my_auth", "other-auth"}}, specs, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	d := tool.Definition{Name: name, Description: name + " of the tests", Input: set.Schema(), Declared: set}
	if anyOf != nil || set.Services() != nil || set.Secure() {
		d.Auth = &tool.Auth{AnyOf: anyOf, Parameters: set.Services(), SecureArgs: set.Secure()}
	}
	return Declared{d, set, answer}
}

// WithStates returns the same tool, available only in these workflow states.
func (d Declared) WithStates(states ...string) Declared {
	d.definition.States = states
	return d
}

// Definition implements tool.Tool.
func (d Declared) Definition() tool.Definition { return d.definition }

// Call implements tool.Tool.
func (d Declared) Call(_ context.Context, c tool.Call) (tool.Result, error) {
	values, err := d.set.Parse(c.Args, func(service string) (json.RawMessage, bool) { claims, ok := c.Claims[service]; return claims, ok }, c.Secure)
	if err != nil {
		return tool.Failure(c.Name, err), nil
	}
	if d.answer != "" {
		return tool.Result{Text: d.answer}, nil
	}
	row, err := json.Marshal(values.Bind())
	return tool.Result{Structured: json.RawMessage(`[{"row":` + string(row) + `}]`)}, err
}

// FakeAuthn implements gate.Authn. It accepts the token "good SERVICE" for each
// service and returns the subject "ann of SERVICE".
type FakeAuthn struct{}

// VerifyToken implements gate.Authn.
func (FakeAuthn) VerifyToken(_ context.Context, service, token string) (gate.Verified, error) {
	if token != "good "+service {
		return gate.Verified{}, errcode.New(errcode.Unauthenticated, "a bad token")
	}
	return gate.Verified{Claims: json.RawMessage(`{"sub":"ann of ` + service + `"}`)}, nil
}
