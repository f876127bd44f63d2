package gate_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/tool"
)

// fakeAuthn is a gate.TokenVerifier that accepts the tokens it lists, by service.
type fakeAuthn struct {
	tokens map[string]map[string]gate.VerifiedToken
	asked  []string
}

func (p *fakeAuthn) VerifyToken(_ context.Context, service, token string) (gate.VerifiedToken, error) {
	p.asked = append(p.asked, service)
	if service == "down" {
		return gate.VerifiedToken{}, errcode.New(errcode.ToolUnavailable, "the issuer is unreachable")
	}
	v, ok := p.tokens[service][token]
	if !ok {
		return gate.VerifiedToken{}, errcode.New(errcode.Unauthenticated, "no")
	}
	return v, nil
}

func newFakeAuthn() *fakeAuthn {
	verified := func(claims string, scopes ...string) gate.VerifiedToken {
		return gate.VerifiedToken{Claims: json.RawMessage(claims), Scopes: scopes}
	}
	return &fakeAuthn{tokens: map[string]map[string]gate.VerifiedToken{
		"one": {"good": verified(`{"sub":"u1"}`, "read")},
		"two": {"good": verified(`{"sub":"u2"}`, "read", "write")},
	}}
}

func TestAuthenticate_RequiresValidToken(t *testing.T) {
	const no, later, lacks = errcode.Unauthenticated, errcode.ToolUnavailable, errcode.InsufficientPermissions
	either := &tool.Auth{AnyOf: []string{"one", "two"}}
	tests := []struct {
		name   string
		need   *tool.Auth
		tokens map[string]string
		want   errcode.Code
		claims string // of which services the tool gets
	}{
		{"tool without requirements", nil, map[string]string{"one": "bad"}, "", ""},
		{"no token", either, nil, no, ""},
		{"invalid token", either, map[string]string{"one": "bad"}, no, ""},
		{"token of the second service", either, map[string]string{"two": "good"}, "", "two"},
		{"invalid and valid token", either, map[string]string{"one": "bad", "two": "good"}, "", "two"},
		{"both valid", either, map[string]string{"one": "good", "two": "good"}, "", "one two"},
		{"valid token for an unknown service", either, map[string]string{"three": "good"}, no, ""},
		{"unreachable service", &tool.Auth{AnyOf: []string{"down"}}, map[string]string{"down": "good"}, later, ""},
		{"unreachable service and no token", &tool.Auth{AnyOf: []string{"down"}}, nil, no, ""},
		{"one service unreachable, one valid token", &tool.Auth{AnyOf: []string{"down", "one"}}, map[string]string{"down": "good", "one": "good"}, "", "one"},
		{"scopes", &tool.Auth{Scopes: []string{"read", "write"}, ScopesOf: "two"}, map[string]string{"two": "good"}, "", "two"},
		{"scopes without a token of their service", &tool.Auth{Scopes: []string{"read"}, ScopesOf: "two"}, map[string]string{"one": "good"}, no, ""},
		{"missing scope", &tool.Auth{Scopes: []string{"read", "write"}, ScopesOf: "one"}, map[string]string{"one": "good"}, lacks, ""},
		{"scopes without a service", &tool.Auth{Scopes: []string{"read"}}, map[string]string{"": "good"}, no, ""},
		{"scopes and services", &tool.Auth{AnyOf: []string{"one"}, Scopes: []string{"write"}, ScopesOf: "two"}, map[string]string{"two": "good"}, no, ""},
		{"claim", &tool.Auth{Parameters: map[string][]string{"uid": {"one", "two"}}}, map[string]string{"two": "good"}, "", "two"},
		{"claim without a valid token", &tool.Auth{Parameters: map[string][]string{"uid": {"one"}}}, map[string]string{"two": "good"}, no, ""},
		{"one service for caller, scope and claim", &tool.Auth{AnyOf: []string{"one"}, Scopes: []string{"read"}, ScopesOf: "one", Parameters: map[string][]string{"uid": {"one"}}}, map[string]string{"one": "good"}, "", "one"},
		{"secure arguments only", &tool.Auth{SecureArgs: true}, nil, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			authn := newFakeAuthn()
			got := callWithAuth(t, authn, tt.need, tool.Credentials{Tokens: tt.tokens, Secure: json.RawMessage(`{"s":1}`)})
			if slices.Sort(authn.asked); len(slices.Compact(slices.Clone(authn.asked))) < len(authn.asked) {
				t.Errorf("a token is verified twice: %v", authn.asked)
			}
			if got.Code() != tt.want {
				t.Fatalf("got %q %s, want %q", got.Code(), got.Result.JSON(), tt.want)
			}
			if tt.want != "" {
				if text := string(got.Result.JSON()); !strings.Contains(text, `"toolName":"a"`) || strings.Contains(text, "good") || strings.Contains(text, "bad") {
					t.Errorf("got %s", text)
				}
				return
			}
			var services []string
			for name := range got.seen.Claims {
				services = append(services, name)
			}
			if diff := cmp.Diff(strings.Fields(tt.claims), services, cmpSorted); diff != "" && len(services)+len(tt.claims) > 0 {
				t.Errorf("claims:\n%s", diff)
			}
			if secure := tt.need != nil && tt.need.SecureArgs; (string(got.seen.Secure) == `{"s":1}`) != secure {
				t.Errorf("secure arguments %s, want %v", got.seen.Secure, secure)
			}
		})
	}
}

var cmpSorted = cmp.Transformer("set", func(list []string) map[string]bool {
	set := map[string]bool{}
	for _, s := range list {
		set[s] = true
	}
	return set
})

// authResult is a finished call and the tool.Call that the tool received.
type authResult struct {
	*gate.Admission
	seen tool.Call
}

// callWithAuth calls a tool that requires need with the credentials sent.
func callWithAuth(t *testing.T, authn gate.TokenVerifier, need *tool.Auth, sent tool.Credentials) (got authResult) {
	t.Helper()
	d := definition("a", tool.ReadOnly)
	d.Auth = need
	f := newFixtureWith(t, gate.Config{Authn: authn}, &fakeTool{definition: d, run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
		got.seen = c
		if left := tool.CredentialsOf(ctx); left.Tokens != nil || left.Secure != nil {
			t.Error("the tool gets the caller's credentials")
		}
		return tool.Result{Text: "ok"}, nil
	}})
	r := request("a", `{}`)
	r.Claims = map[string]json.RawMessage{"forged": json.RawMessage(`{"sub":"root"}`)}
	r.Secure = json.RawMessage(`{"forged":1}`)
	list, err := f.Call(tool.WithCredentials(t.Context(), sent), ann, []gate.CallRequest{r}, &fakeRecorder{})
	if err != nil {
		t.Fatal(err)
	}
	got.Admission = list[0]
	return got
}

func TestAuthenticate_DeniesWithoutAuthn(t *testing.T) {
	got := callWithAuth(t, nil, &tool.Auth{AnyOf: []string{"one"}}, tool.Credentials{Tokens: map[string]string{"one": "good"}})
	if got.Code() != errcode.Unauthenticated {
		t.Errorf("got %q", got.Code())
	}
}

// Tokens are not verified for calls that are denied or have invalid arguments.
func TestAuthenticate_RunsAfterValidation(t *testing.T) {
	d := definition("a", tool.ReadOnly)
	d.Auth = &tool.Auth{AnyOf: []string{"one"}}
	d.Input = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	p := newFakeAuthn()
	f := newFixtureWith(t, gate.Config{Authn: p}, &fakeTool{definition: d, run: mustNotRun(t)})
	ctx := tool.WithCredentials(t.Context(), tool.Credentials{Tokens: map[string]string{"one": "bad"}})
	for _, r := range []gate.CallRequest{request("theirs", `{}`), request("a", `{"n":"x"}`), request("fly", `{}`)} {
		if _, err := f.Call(ctx, ann, []gate.CallRequest{r}, &fakeRecorder{}); err != nil || len(p.asked) > 0 {
			t.Errorf("%s: services %v were asked, %v", r.Name, p.asked, err)
		}
	}
	if _, err := f.Call(ctx, ann, []gate.CallRequest{request("a", `{}`)}, &fakeRecorder{}); err != nil || len(p.asked) != 1 {
		t.Errorf("services %v were asked, %v", p.asked, err)
	}
}

// If the service that verified the token is removed or replaced before the call
// starts, the call is decided again.
func TestAuthenticate_DecidesAgainWhenServiceChanges(t *testing.T) {
	d := definition("a", tool.ReadOnly)
	d.Auth = &tool.Auth{AnyOf: []string{"one", "two"}}
	p, configured := newFakeAuthn(), true
	v := p.tokens["one"]["good"]
	v.StillValid = func() bool { return configured }
	p.tokens["one"]["good"] = v
	f := newFixtureWith(t, gate.Config{Authn: p}, &fakeTool{definition: d, run: mustNotRun(t)})
	rec := &fakeRecorder{}
	rec.started = func(calls []*gate.Admission) error {
		if len(rec.lines) == 1 { // between decision and commit
			configured = false
			delete(p.tokens, "one")
		}
		if calls[0].Superseded() {
			return gate.ErrSuperseded
		}
		return nil
	}
	ctx := tool.WithCredentials(t.Context(), tool.Credentials{Tokens: map[string]string{"one": "good"}})
	list, err := f.Call(ctx, ann, []gate.CallRequest{request("a", `{}`)}, rec)
	if err != nil {
		t.Fatal(err)
	}
	if got := list[0]; got.Code() != errcode.Unauthenticated || !strings.Contains(got.Err.Error(), "in the header one_token or two_token") {
		t.Errorf("got %q %v", got.Code(), got.Err)
	}
	wantLines(t, rec.lines, "start a:allowed", "start a:unauthenticated", "finish a:unauthenticated")
}
