package gate_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/tool"
)

// passport is a gate.Authn that vouches for the tokens it lists, by service.
type passport struct {
	tokens map[string]map[string]gate.Verified
	asked  []string
}

func (p *passport) Verify(_ context.Context, service, token string) (gate.Verified, error) {
	p.asked = append(p.asked, service)
	if service == "away" {
		return gate.Verified{}, errcode.New(errcode.ToolUnavailable, "the issuer is away")
	}
	v, ok := p.tokens[service][token]
	if !ok {
		return gate.Verified{}, errcode.New(errcode.Unauthenticated, "no")
	}
	return v, nil
}

func newPassport() *passport {
	verified := func(claims string, scopes ...string) gate.Verified {
		return gate.Verified{Claims: json.RawMessage(claims), Scopes: scopes}
	}
	return &passport{tokens: map[string]map[string]gate.Verified{
		"one": {"good": verified(`{"sub":"u1"}`, "read")},
		"two": {"good": verified(`{"sub":"u2"}`, "read", "write")},
	}}
}

func TestSomebodyHasToVouch(t *testing.T) {
	const no, later, lacks = errcode.Unauthenticated, errcode.ToolUnavailable, errcode.InsufficientPermissions
	either := &tool.Auth{AnyOf: []string{"one", "two"}}
	tests := []struct {
		name   string
		need   *tool.Auth
		tokens map[string]string
		want   errcode.Code
		claims string // of which services the tool gets
	}{
		{"nobody is asked", nil, map[string]string{"one": "bad"}, "", ""},
		{"no token", either, nil, no, ""},
		{"a bad token", either, map[string]string{"one": "bad"}, no, ""},
		{"a token of the other", either, map[string]string{"two": "good"}, "", "two"},
		{"a bad and a good token", either, map[string]string{"one": "bad", "two": "good"}, "", "two"},
		{"both", either, map[string]string{"one": "good", "two": "good"}, "", "one two"},
		{"a token under another's name", either, map[string]string{"three": "good"}, no, ""},
		{"a service that is away", &tool.Auth{AnyOf: []string{"away"}}, map[string]string{"away": "good"}, later, ""},
		{"a service that is away without a token", &tool.Auth{AnyOf: []string{"away"}}, nil, no, ""},
		{"one is away, the other vouches", &tool.Auth{AnyOf: []string{"away", "one"}}, map[string]string{"away": "good", "one": "good"}, "", "one"},
		{"scopes", &tool.Auth{Scopes: []string{"read", "write"}, ScopesOf: "two"}, map[string]string{"two": "good"}, "", "two"},
		{"scopes of another", &tool.Auth{Scopes: []string{"read"}, ScopesOf: "two"}, map[string]string{"one": "good"}, no, ""},
		{"a scope is lacking", &tool.Auth{Scopes: []string{"read", "write"}, ScopesOf: "one"}, map[string]string{"one": "good"}, lacks, ""},
		{"scopes of nobody", &tool.Auth{Scopes: []string{"read"}}, map[string]string{"": "good"}, no, ""},
		{"scopes beside services", &tool.Auth{AnyOf: []string{"one"}, Scopes: []string{"write"}, ScopesOf: "two"}, map[string]string{"two": "good"}, no, ""},
		{"a claim", &tool.Auth{Parameters: map[string][]string{"uid": {"one", "two"}}}, map[string]string{"two": "good"}, "", "two"},
		{"a claim nobody has", &tool.Auth{Parameters: map[string][]string{"uid": {"one"}}}, map[string]string{"two": "good"}, no, ""},
		{"secure arguments alone", &tool.Auth{SecureArgs: true}, nil, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := try(t, newPassport(), tt.need, tool.Credentials{Tokens: tt.tokens, Secure: json.RawMessage(`{"s":1}`)})
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

// tried is a call with what the tool saw of it.
type tried struct {
	*gate.Admission
	seen tool.Call
}

// try calls a tool that asks for need.
func try(t *testing.T, authn gate.Authn, need *tool.Auth, shown tool.Credentials) (got tried) {
	t.Helper()
	d := definition("a", tool.ReadOnly)
	d.Auth = need
	h := openWith(t, gate.Config{Authn: authn}, &fake{d: d, run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
		got.seen = c
		if left := tool.CredentialsOf(ctx); left.Tokens != nil || left.Secure != nil {
			t.Error("the tool gets the caller's credentials")
		}
		return tool.Result{Text: "ok"}, nil
	}})
	r := request("a", `{}`)
	r.Claims = map[string]json.RawMessage{"forged": json.RawMessage(`{"sub":"root"}`)}
	r.Secure = json.RawMessage(`{"forged":1}`)
	list, err := h.Call(tool.WithCredentials(t.Context(), shown), ann, []gate.Request{r}, &book{})
	if err != nil {
		t.Fatal(err)
	}
	got.Admission = list[0]
	return got
}

func TestWithoutAuthnNobodyVouches(t *testing.T) {
	got := try(t, nil, &tool.Auth{AnyOf: []string{"one"}}, tool.Credentials{Tokens: map[string]string{"one": "good"}})
	if got.Code() != errcode.Unauthenticated {
		t.Errorf("got %q", got.Code())
	}
}

// Who may not call a tool, or calls it wrongly, makes nobody look at tokens.
func TestTokensAreLookedAtLast(t *testing.T) {
	d := definition("a", tool.ReadOnly)
	d.Auth = &tool.Auth{AnyOf: []string{"one"}}
	d.Input = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	p := newPassport()
	h := openWith(t, gate.Config{Authn: p}, &fake{d: d, run: mustNotRun(t)})
	ctx := tool.WithCredentials(t.Context(), tool.Credentials{Tokens: map[string]string{"one": "bad"}})
	for _, r := range []gate.Request{request("theirs", `{}`), request("a", `{"n":"x"}`), request("fly", `{}`)} {
		if _, err := h.Call(ctx, ann, []gate.Request{r}, &book{}); err != nil || len(p.asked) > 0 {
			t.Errorf("%s: %v were asked, %v", r.Name, p.asked, err)
		}
	}
	if _, err := h.Call(ctx, ann, []gate.Request{request("a", `{}`)}, &book{}); err != nil || len(p.asked) != 1 {
		t.Errorf("%v were asked, %v", p.asked, err)
	}
}

// A service that is gone, or another one, when the call is about to start has
// vouched for nobody: the decision is made again.
func TestAServiceThatGoesTakesItsWordBack(t *testing.T) {
	d := definition("a", tool.ReadOnly)
	d.Auth = &tool.Auth{AnyOf: []string{"one", "two"}}
	p, there := newPassport(), true
	v := p.tokens["one"]["good"]
	v.StillValid = func() bool { return there }
	p.tokens["one"]["good"] = v
	h := openWith(t, gate.Config{Authn: p}, &fake{d: d, run: mustNotRun(t)})
	b := &book{}
	b.started = func(calls []*gate.Admission) error {
		if len(b.lines) == 1 { // between decision and commit
			there = false
			delete(p.tokens, "one")
		}
		if calls[0].Superseded() {
			return gate.ErrSuperseded
		}
		return nil
	}
	ctx := tool.WithCredentials(t.Context(), tool.Credentials{Tokens: map[string]string{"one": "good"}})
	list, err := h.Call(ctx, ann, []gate.Request{request("a", `{}`)}, b)
	if err != nil {
		t.Fatal(err)
	}
	if got := list[0]; got.Code() != errcode.Unauthenticated || !strings.Contains(got.Err.Error(), "in the header one_token or two_token") {
		t.Errorf("got %q %v", got.Code(), got.Err)
	}
	wantLines(t, b.lines, "start a:allowed", "start a:unauthenticated", "finish a:unauthenticated")
}
