// Package gatewaytest owns what the tests of both protocols of the gateway call
// as clients of MCP Toolbox do: declared tools, and services that vouch for who
// calls them.
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

// Declared is a tool with declared parameters whose result says what it got, or
// is always the same.
type Declared struct {
	definition tool.Definition
	set        *parameter.Set
	answer     string // of the result, when it is always the same
}

// Declare makes a tool with the result answer, "" is what it got. One of anyOf has
// to vouch for who calls it, if there is one; its parameters may ask my_auth and
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

// In gives the same tool, available in some workflow states alone.
func (d Declared) In(states ...string) Declared {
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

// FakeAuthn are services that vouch for tokens that are "good SERVICE": they are
// of "ann of SERVICE".
type FakeAuthn struct{}

// Verify implements gate.Authn.
func (FakeAuthn) Verify(_ context.Context, service, token string) (gate.Verified, error) {
	if token != "good "+service {
		return gate.Verified{}, errcode.New(errcode.Unauthenticated, "a bad token")
	}
	return gate.Verified{Claims: json.RawMessage(`{"sub":"ann of ` + service + `"}`)}, nil
}
