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

func TestAdmit_BySenderAndAccess(t *testing.T) {
	none := errcode.New(errcode.Unauthenticated, "no token")
	for name, c := range map[string]struct {
		sender identity.Principal
		err    error
		want   [3]errcode.Code // for the operator's routes, the callers' and the public ones; "" means admitted
	}{
		"the operator":              {auth.LocalOperator(), nil, [3]errcode.Code{}},
		"a caller":                  {identity.ByCaller("ann", "r"), nil, [3]errcode.Code{errcode.InsufficientPermissions}},
		"an agent":                  {identity.ByAgent("a"), nil, [3]errcode.Code{errcode.InsufficientPermissions, errcode.InsufficientPermissions}},
		"nobody":                    {identity.Principal{}, none, [3]errcode.Code{errcode.Unauthenticated, errcode.Unauthenticated}},
		"an operator with an error": {auth.LocalOperator(), none, [3]errcode.Code{errcode.Unauthenticated, errcode.Unauthenticated}},
	} {
		authenticator := auth.Authenticator(func(*http.Request) (identity.Principal, error) { return c.sender, c.err })
		for i, access := range []auth.RequiredAccess{auth.AccessOperator, auth.AccessCaller, auth.AccessPublic} {
			admitted, err := authenticator.AdmitRequest(httptest.NewRequest(http.MethodGet, "/", nil), access)
			if (err != nil || c.want[i] != "") && errcode.CodeOf(err) != c.want[i] {
				t.Errorf("%s at access %d: %v, want %q", name, access, err, c.want[i])
			}
			want := c.sender
			if c.err != nil {
				want = identity.Principal{}
			}
			if err == nil && auth.SenderOf(admitted) != want {
				t.Errorf("%s at access %d is admitted as %s, want %s", name, access, auth.SenderOf(admitted), want)
			}
		}
	}
}

func TestRevalidate_RejectsAnotherSender(t *testing.T) {
	now, failure := identity.ByCaller("ann", "r"), error(nil)
	authenticator := auth.Authenticator(func(*http.Request) (identity.Principal, error) { return now, failure })
	r, err := authenticator.AdmitRequest(httptest.NewRequest(http.MethodGet, "/", nil), auth.AccessCaller)
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
