package auth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/identity"
)

func TestAdmit_BySenderAndScopes(t *testing.T) {
	const denied, unknown = errcode.InsufficientPermissions, errcode.Unauthenticated
	none := errcode.New(errcode.Unauthenticated, "no token")
	for name, c := range map[string]struct {
		sender identity.Principal
		err    error
		want   [5]errcode.Code // for the sets of scopes below; "" means admitted
	}{
		"the operator":              {auth.LocalOperator(), nil, [5]errcode.Code{denied}},
		"a caller":                  {identity.ByCaller("ann", "r"), nil, [5]errcode.Code{denied, denied, "", denied}},
		"a monitor":                 {identity.ByMonitor("prometheus"), nil, [5]errcode.Code{denied, denied, denied}},
		"an agent":                  {identity.ByAgent("a"), nil, [5]errcode.Code{denied, denied, denied, denied}},
		"of an unknown kind":        {identity.Principal{Kind: 99}, nil, [5]errcode.Code{denied, denied, denied, denied}},
		"nobody":                    {identity.Principal{}, none, [5]errcode.Code{unknown, unknown, unknown, unknown}},
		"an operator with an error": {auth.LocalOperator(), none, [5]errcode.Code{unknown, unknown, unknown, unknown}},
	} {
		authenticator := auth.Authenticator(func(*http.Request) (identity.Principal, error) { return c.sender, c.err })
		for i, scopes := range []auth.ScopeSet{
			0, auth.ScopesOf(auth.ScopeOperator), auth.ScopesOf(auth.ScopeOperator, auth.ScopeRole), auth.ScopesOf(auth.ScopeOperator, auth.ScopeMetrics),
			auth.ScopesOf(auth.ScopeOperator, auth.ScopeRole, auth.ScopeMetrics, auth.ScopeNone),
		} {
			admitted, err := authenticator.AdmitRequest(httptest.NewRequest(http.MethodGet, "/", nil), scopes)
			if (err != nil || c.want[i] != "") && errcode.CodeOf(err) != c.want[i] {
				t.Errorf("%s at the scopes %q: %v, want %q", name, scopes, err, c.want[i])
			}
			want := c.sender
			if c.err != nil {
				want = identity.Principal{}
			}
			if err == nil && auth.SenderOf(admitted) != want {
				t.Errorf("%s at the scopes %q is admitted as %s, want %s", name, scopes, auth.SenderOf(admitted), want)
			}
		}
	}
}

func TestRevalidate_RejectsAnotherSender(t *testing.T) {
	now, failure := identity.ByCaller("ann", "r"), error(nil)
	authenticator := auth.Authenticator(func(*http.Request) (identity.Principal, error) { return now, failure })
	r, err := authenticator.AdmitRequest(httptest.NewRequest(http.MethodGet, "/", nil), auth.ScopesOf(auth.ScopeOperator, auth.ScopeRole))
	if err != nil {
		t.Fatal(err)
	}
	if err := authenticator.Revalidate(r); err != nil {
		t.Errorf("the same sender: %v", err)
	}
	now = identity.ByCaller("ann", "other")
	if err := authenticator.Revalidate(r); errcode.CodeOf(err) != errcode.Unauthenticated {
		t.Errorf("in another role: %v", err)
	}
	failure = errors.New("expired")
	if err := authenticator.Revalidate(r); !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}
}
