package auth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/identity"
)

// callerIssuer is an issuer of opaque tokens whose users have the role r1. A token is the name of its
// user, a dot and anything.
func callerIssuer(v *fakeVerifier) auth.Issuer {
	v.verify = func(_ context.Context, token string) (json.RawMessage, error) {
		user, _, _ := strings.Cut(token, ".")
		return fmt.Appendf(nil, `{"sub":%q,"exp":%d,"groups":["all"]}`, user, time.Now().Add(time.Hour).Unix()), nil
	}
	i := opaqueIssuer(v)
	i.Rules = []auth.ClaimRule{{Claim: "/groups", Value: "all", Scope: auth.ScopeRole, Role: "r1"}}
	return i
}

// keepingStore returns a TokenStore that keeps tokens while keep is true.
func keepingStore(t *testing.T, keep *bool, list ...auth.Issuer) *auth.TokenStore {
	t.Helper()
	store, err := auth.NewTokenStore(auth.TokenStoreConfig{Role: anyRole, KeepTokens: func() bool { return *keep }})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.ReplaceIssuers(list); err != nil {
		t.Fatal(err)
	}
	return store
}

func TestSubjectToken_IsOfItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, keep := &fakeVerifier{}, true
		store := keepingStore(t, &keep, callerIssuer(v))
		authenticate := func(token string) {
			if _, err := store.Authenticate(bearer(t.Context(), token, "192.0.2.1")); err != nil {
				t.Fatal(err)
			}
		}
		ann, bob := identity.ByCaller("corp:ann", "r1"), identity.ByCaller("corp:bob", "r1")
		want := func(p identity.Principal, token, what string) {
			t.Helper()
			if got, ok := store.SubjectToken(p); got.Token != token || ok != (token != "") {
				t.Errorf("%s: got %q, want %q", what, got.Token, token)
			}
		}
		want(ann, "", "before a request")
		authenticate("ann.1")
		within := ann
		within.Within = "net"
		want(within, "ann.1", "in a network")
		for what, p := range map[string]identity.Principal{
			"another person": bob, "another role": identity.ByCaller("corp:ann", "r2"), "a configured token": identity.ByCaller("ann", "r1"),
			"the operator": identity.ByOperator("corp:ann"), "an agent": identity.ByAgent("corp:ann"), "none": {},
		} {
			want(p, "", what)
		}
		authenticate("ann.2")
		authenticate("bob.1")
		want(ann, "ann.2", "after another token")
		got, _ := store.SubjectToken(ann)
		if text := fmt.Sprintf("%v %+v %#v %s", got, got, got, got); strings.Contains(text, "ann.2") {
			t.Errorf("the token is printed: %s", text)
		}
		if got.Issuer != "corp" || got.URL != "https://id.example.com" || got.IDToken {
			t.Errorf("issuer %s, URL %s, ID token %v", got.Issuer, got.URL, got.IDToken)
		}
		v.version.Add(1)
		want(ann, "", "after the issuer has other keys")
		authenticate("ann.2")
		want(ann, "ann.2", "after another verification")
		time.Sleep(61 * time.Minute)
		want(ann, "", "after its end")
		authenticate("ann.2")
		if err := store.ReplaceIssuers([]auth.Issuer{callerIssuer(v)}); err != nil {
			t.Fatal(err)
		}
		want(ann, "", "after a reload")
	})
}

// Without a reader no token is kept. A token that was verified before is, once there is one.
func TestSubjectToken_OnlyIfNeeded(t *testing.T) {
	keep := false
	store := keepingStore(t, &keep, callerIssuer(&fakeVerifier{}))
	for _, want := range []bool{false, true} {
		keep = want
		if _, err := store.Authenticate(bearer(t.Context(), "ann.1", "192.0.2.1")); err != nil {
			t.Fatal(err)
		}
		if _, ok := store.SubjectToken(identity.ByCaller("corp:ann", "r1")); ok != want {
			t.Errorf("kept: %v, want %v", ok, want)
		}
	}
}

// The number of tokens is bounded: the one that ends first is removed.
func TestSubjectToken_Bound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keep := true
		store := keepingStore(t, &keep, callerIssuer(&fakeVerifier{}))
		const most = 4096
		for i := range most + 10 {
			if i == 5 {
				time.Sleep(time.Second)
			}
			if _, err := store.Authenticate(bearer(t.Context(), fmt.Sprintf("u%d.1", i), "192.0.2.1")); err != nil {
				t.Fatal(err)
			}
		}
		kept := 0
		for i := range most + 10 {
			_, ok := store.SubjectToken(identity.ByCaller(identity.UserName(fmt.Sprintf("corp:u%d", i)), "r1"))
			if ok {
				kept++
			}
			if ok && i < 5 {
				t.Errorf("the token of user %d, which ends first, is kept", i)
			}
		}
		if kept != most {
			t.Errorf("%d tokens are kept", kept)
		}
	})
}
