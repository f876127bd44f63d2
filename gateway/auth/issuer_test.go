package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/internal/test/oidctest"
	"github.com/rolecall/rolecall/org"
)

// serviceVerifier makes an oidc.Service a TokenVerifier.
type serviceVerifier struct{ *oidc.Service }

func (v serviceVerifier) VerifyToken(ctx context.Context, token string) (json.RawMessage, error) {
	claims, err := v.Verify(ctx, token)
	return json.RawMessage(claims), err
}

// fakeVerifier is a TokenVerifier whose tokens are JWT with the claims in clear text.
type fakeVerifier struct {
	verify  func(ctx context.Context, token string) (json.RawMessage, error)
	asks    bool // introspects every token
	version atomic.Uint64
	asked   atomic.Int64
}

func (v *fakeVerifier) VerifyToken(ctx context.Context, token string) (json.RawMessage, error) {
	v.asked.Add(1)
	return v.verify(ctx, token)
}
func (v *fakeVerifier) Introspects(string) bool { return v.asks }
func (v *fakeVerifier) KeyVersion() uint64      { return v.version.Load() }

// claimsOf is a verify function that accepts every opaque token and takes it for the user.
func claimsOf(exp time.Time) func(context.Context, string) (json.RawMessage, error) {
	return func(_ context.Context, token string) (json.RawMessage, error) {
		return fmt.Appendf(nil, `{"sub":%q,"exp":%d,"groups":["all"]}`, token, exp.Unix()), nil
	}
}

// opaqueIssuer is an issuer of tokens that are not JWTs. All of its users are operators.
func opaqueIssuer(v auth.TokenVerifier) auth.Issuer {
	return auth.Issuer{Name: "corp", URL: "https://id.example.com", User: "sub", Opaque: true, Verifier: v,
		Rules: []auth.ClaimRule{{Claim: "/groups", Value: "all", Scope: auth.ScopeOperator}}}
}

// anyRole is a role lookup that knows every role.
func anyRole(id identity.RoleID) (org.Role, bool) { return org.Role{ID: id, Status: org.Active}, true }

// issuerStore returns a TokenStore with issuers, for the roles that anyRole knows.
func issuerStore(t testing.TB, now func() time.Time, list ...auth.Issuer) *auth.TokenStore {
	t.Helper()
	store, err := auth.NewTokenStore(auth.TokenStoreConfig{Role: anyRole, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.ReplaceIssuers(list); err != nil {
		t.Fatal(err)
	}
	return store
}

// bearer returns a request with a token, from an address.
func bearer(ctx context.Context, token, address string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/mcp", nil)
	r.RemoteAddr = address + ":1234"
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// corpIssuer returns an issuer that verifies with an oidc.Service.
func corpIssuer(t testing.TB, idp *oidctest.Issuer, now func() time.Time) auth.Issuer {
	t.Helper()
	service, err := oidc.New(oidc.Config{Name: "corp", Issuer: idp.URL, Audience: []string{"gw"}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return auth.Issuer{Name: "corp", URL: idp.URL, User: "sub", Verifier: serviceVerifier{service}, Rules: []auth.ClaimRule{
		{Claim: "/groups", Value: "finance", Scope: auth.ScopeRole, Role: "r-finance"},
		{Claim: "/realm_access/roles", Value: "admin", Scope: auth.ScopeOperator},
		{Claim: "/a~1b/c~0d", Value: "x", Scope: auth.ScopeRole, Role: "r-escaped"},
		{Claim: "/groups", Value: "sales", Scope: auth.ScopeRole, Role: "r-sales"},
	}}
}

func TestIssuers_MapClaimsToPrincipals(t *testing.T) {
	idp := oidctest.NewIssuer(t)
	start := time.Now()
	store := issuerStore(t, nil, corpIssuer(t, idp, nil))
	const forbidden, rejected = "forbidden", "rejected"
	for name, c := range map[string]struct{ claims, want string }{
		"a list":                       {`"sub":"ann","groups":["x","finance"]`, "user:corp:ann@r-finance"},
		"a text":                       {`"sub":"ann","groups":"finance"`, "user:corp:ann@r-finance"},
		"the first rule, not claim":    {`"sub":"ann","groups":["sales","finance"]`, "user:corp:ann@r-finance"},
		"below an object":              {`"sub":"ann","realm_access":{"roles":["admin"]}`, "operator"},
		"an escaped pointer":           {`"sub":"ann","a/b":{"c~d":"x"}`, "user:corp:ann@r-escaped"},
		"no claim":                     {`"sub":"ann"`, forbidden},
		"another group":                {`"sub":"ann","groups":["finances","Finance","finance "]`, forbidden},
		"an object with the name":      {`"sub":"ann","groups":{"finance":true}`, forbidden},
		"a list in the list":           {`"sub":"ann","groups":[["finance"]]`, forbidden},
		"true":                         {`"sub":"ann","groups":true`, forbidden},
		"null":                         {`"sub":"ann","groups":null`, forbidden},
		"words in a text":              {`"sub":"ann","groups":"finance sales"`, forbidden},
		"a claim named like a pointer": {`"sub":"ann","/groups":"finance","realm_access/roles":["admin"]`, forbidden},
		"a list in place of an object": {`"sub":"ann","realm_access":[{"roles":["admin"]}]`, forbidden},
		"no user":                      {`"groups":"finance"`, forbidden},
		"a number as user":             {`"sub":7,"groups":"finance"`, rejected},
		"a list as user":               {`"sub":["ann"],"groups":"finance"`, rejected},
		"an empty user":                {`"sub":"","groups":"finance"`, forbidden},
		"a control character":          {`"sub":"a\u0000b","groups":"finance"`, forbidden},
		"a line break":                 {`"sub":"a\nb","groups":"finance"`, forbidden},
		"an invisible character":       {`"sub":"a\u200bb","groups":"finance"`, forbidden},
		"a right-to-left mark":         {`"sub":"a\u202eb","groups":"finance"`, forbidden},
		"a blank at the end":           {`"sub":"ann ","groups":"finance"`, forbidden},
		"a name of 256 bytes":          {`"sub":"` + strings.Repeat("n", 256) + `","groups":"finance"`, "user:corp:" + strings.Repeat("n", 256) + "@r-finance"},
		"a name of 257 bytes":          {`"sub":"` + strings.Repeat("n", 257) + `","groups":"finance"`, forbidden},
		"a name of 10 kB":              {`"sub":"` + strings.Repeat("n", 10<<10) + `","groups":"finance"`, forbidden},
		"the name of the operator":     {`"sub":"operator","groups":"finance"`, "user:corp:operator@r-finance"},
		"a name with a colon":          {`"sub":"x:ann","groups":"finance"`, "user:corp:x:ann@r-finance"},
		"two groups of one name":       {`"sub":"ann","groups":"sales","groups":"finance"`, rejected},
	} {
		t.Run(name, func(t *testing.T) {
			token := idp.SignToken(fmt.Sprintf(`{"iss":%q,"aud":"gw","exp":%d,%s}`, idp.URL, start.Add(time.Hour).Unix(), c.claims))
			p, err := store.Authenticate(bearer(t.Context(), token, "192.0.2.1"))
			got := p.String()
			switch errcode.CodeOf(err) {
			case errcode.InsufficientPermissions:
				got = forbidden
			case errcode.Unauthenticated:
				got = rejected
			}
			if got != c.want || (err != nil) != (p == identity.Principal{}) || p.Kind == identity.Operator && p.User != "corp:ann" {
				t.Errorf("got %s, %v, want %s", p, err, c.want)
			}
		})
	}
}

func TestIssuers_RejectTokens(t *testing.T) {
	idp, other := oidctest.NewIssuer(t), oidctest.NewIssuer(t)
	var passed atomic.Int64
	start := time.Now()
	now := func() time.Time { return start.Add(time.Duration(passed.Load())) }
	store := issuerStore(t, now, corpIssuer(t, idp, now))
	claims := func(changes string) string {
		return fmt.Sprintf(`{"iss":%q,"aud":"gw","sub":"ann","groups":"finance","exp":%d%s}`, idp.URL, start.Add(time.Minute).Unix(), changes)
	}
	replace := func(name, with string) string { return strings.Replace(claims(""), name, with, 1) }
	check := func(name, token string, valid bool) {
		t.Helper()
		p, err := store.Authenticate(bearer(t.Context(), token, "192.0.2.1"))
		if valid && (err != nil || p != identity.ByCaller("corp:ann", "r-finance")) || !valid && (errcode.CodeOf(err) != errcode.Unauthenticated || p != identity.Principal{}) {
			t.Errorf("%s: got %s, %v", name, p, err)
		}
		if err != nil && (errcode.Message(err) != "the bearer token is not valid for this resource" || len(token) > 20 && strings.Contains(err.Error(), token[len(token)-20:])) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := idp.SignToken(claims(""))
	check("valid", good, true)
	check("remembered", good, true)
	for name, token := range map[string]string{
		"a forged signature":              idp.SignWithWrongKey(claims("")),
		"no signature":                    idp.UnsignedToken(claims("")),
		"signed with the public key":      idp.SignWithPublicKey(claims("")),
		"signed by another issuer":        other.SignToken(claims("")),
		"of another issuer":               other.SignToken(strings.ReplaceAll(claims(""), idp.URL, other.URL)),
		"another claim iss":               idp.SignToken(strings.ReplaceAll(claims(""), idp.URL, other.URL)),
		"another audience":                idp.SignToken(replace(`"gw"`, `"gw2"`)),
		"no audience":                     idp.SignToken(replace(`"aud":"gw",`, "")),
		"expired":                         idp.SignToken(fmt.Sprintf(`{"iss":%q,"aud":"gw","sub":"ann","groups":"finance","exp":%d}`, idp.URL, start.Add(-time.Minute).Unix())),
		"no expiry":                       idp.SignToken(fmt.Sprintf(`{"iss":%q,"aud":"gw","sub":"ann","groups":"finance"}`, idp.URL)),
		"not valid yet":                   idp.SignToken(claims(fmt.Sprintf(`,"nbf":%d`, start.Add(time.Minute).Unix()))),
		"the good one without signature":  good[:strings.LastIndexByte(good, '.')+1],
		"the good one with a bit changed": good[:len(good)-6] + "AAAAAA",
		"an opaque token":                 strings.Repeat("x", 40),
		"three empty parts":               "a..",
		"longer than 16 KiB":              strings.Repeat("x", 9<<10) + "." + strings.Repeat("x", 9<<10) + ".x",
	} {
		check(name, token, false)
	}
	passed.Store(int64(2 * time.Minute))
	check("the good one after its expiry", good, false)
	passed.Store(0)
	check("the good one after the clock went back", good, false)
}

// A token that was verified is accepted again without the issuer, until its key is seen to be gone.
func TestIssuers_RotatedKeyEndsRememberedTokens(t *testing.T) {
	idp := oidctest.NewIssuer(t)
	var passed atomic.Int64
	start := time.Now()
	now := func() time.Time { return start.Add(time.Duration(passed.Load())) }
	store := issuerStore(t, now, corpIssuer(t, idp, now))
	token := func(sub string) string {
		return idp.SignToken(fmt.Sprintf(`{"iss":%q,"aud":"gw","sub":%q,"groups":"finance","exp":%d}`, idp.URL, sub, start.Add(time.Hour).Unix()))
	}
	authenticate := func(token string) error {
		_, err := store.Authenticate(bearer(t.Context(), token, "192.0.2.1"))
		return err
	}
	old := token("ann")
	if err := authenticate(old); err != nil {
		t.Fatal(err)
	}
	idp.RotateKey()
	passed.Store(int64(2 * time.Second))
	if err := authenticate(old); err != nil {
		t.Errorf("before the service learns that the key is gone: %v", err)
	}
	if err := authenticate(token("bob")); err != nil {
		t.Errorf("a token with the new key: %v", err)
	}
	if err := authenticate(old); errcode.CodeOf(err) != errcode.Unauthenticated {
		t.Errorf("after the new key was seen: %v", err)
	}
	// Without other tokens, the key is looked for when the memory of the token ends.
	last := token("ann")
	if err := authenticate(last); err != nil {
		t.Fatal(err)
	}
	idp.RotateKey()
	passed.Store(int64(6 * time.Minute))
	if err := authenticate(last); errcode.CodeOf(err) != errcode.Unauthenticated {
		t.Errorf("six minutes after the rotation: %v", err)
	}
}

func TestIssuers_RememberUntilExpiryAndReload(t *testing.T) {
	var passed atomic.Int64
	start := time.Unix(1_800_000_000, 0)
	now := func() time.Time { return start.Add(time.Duration(passed.Load())) }
	v := &fakeVerifier{verify: claimsOf(start.Add(time.Hour))}
	store := issuerStore(t, now, opaqueIssuer(v))
	want := func(after time.Duration, asked int64) {
		t.Helper()
		passed.Store(int64(after))
		if p, err := store.Authenticate(bearer(t.Context(), "ann", "192.0.2.1")); err != nil || p != identity.ByOperator("corp:ann") {
			t.Errorf("%s, %v", p, err)
		}
		if got := v.asked.Load(); got != asked {
			t.Errorf("after %v: asked %d times, want %d", after, got, asked)
		}
	}
	want(0, 1)
	want(5*time.Minute-1, 1)
	want(5*time.Minute, 2)
	v.version.Add(1)
	want(5*time.Minute, 3)
	if err := store.ReplaceIssuers(store.ListIssuers()); err != nil {
		t.Fatal(err)
	}
	want(5*time.Minute, 4)
	v.asks = true
	v.version.Add(1)
	want(5*time.Minute, 5)
	want(6*time.Minute-1, 5)
	want(6*time.Minute, 6)
	v.asks, v.verify = false, claimsOf(start.Add(6*time.Minute+10*time.Second))
	v.version.Add(1)
	want(6*time.Minute, 7)
	want(6*time.Minute+10*time.Second-1, 7)
	want(6*time.Minute+10*time.Second, 8)
	want(6*time.Minute+10*time.Second, 9) // expired within the tolerance of the verifier
	if err := store.ReplaceIssuers(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Authenticate(bearer(t.Context(), "ann", "192.0.2.1")); errcode.CodeOf(err) != errcode.Unauthenticated {
		t.Errorf("after the issuer was removed: %v", err)
	}
}

// A user with many tokens displaces its own, and no others.
func TestIssuers_RememberFairly(t *testing.T) {
	v := &fakeVerifier{}
	v.verify = func(_ context.Context, token string) (json.RawMessage, error) {
		user, _, _ := strings.Cut(token, "-")
		return fmt.Appendf(nil, `{"sub":%q,"exp":%d,"groups":"all"}`, user, time.Now().Add(time.Hour).Unix()), nil
	}
	store := issuerStore(t, nil, opaqueIssuer(v))
	use := func(token string) (asked bool) {
		before := v.asked.Load()
		if _, err := store.Authenticate(bearer(t.Context(), token, "192.0.2.1")); err != nil {
			t.Fatal(err)
		}
		return v.asked.Load() > before
	}
	use("ann-1")
	for i := range 100 {
		use(fmt.Sprint("eve-", i))
	}
	if use("ann-1") || use("eve-99") || !use("eve-0") {
		t.Error("want the tokens of ann and the last one of eve remembered, and the first one of eve forgotten")
	}
	for i := range 5000 {
		use(fmt.Sprintf("user%d-1", i))
	}
	if use("user4999-1") {
		t.Error("the last token is forgotten")
	}
}

// A verification that began before a reload counts for nothing after it.
func TestIssuers_ReloadOvertakesVerification(t *testing.T) {
	v := &fakeVerifier{}
	store := issuerStore(t, nil, opaqueIssuer(v))
	v.verify = func(ctx context.Context, token string) (json.RawMessage, error) {
		if err := store.ReplaceIssuers(nil); err != nil {
			t.Error(err)
		}
		return claimsOf(time.Now().Add(time.Hour))(ctx, token)
	}
	if p, err := store.Authenticate(bearer(t.Context(), "ann", "192.0.2.1")); errcode.CodeOf(err) != errcode.Unauthenticated {
		t.Errorf("got %s, %v", p, err)
	}
}

// A hanging issuer holds a request for a bounded time. It holds up neither static tokens nor the
// tokens of other issuers nor those that it has verified, and senders share its places.
func TestIssuers_HangingIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := &fakeVerifier{}
		hangs.verify = func(ctx context.Context, token string) (json.RawMessage, error) {
			if token == "known" {
				return claimsOf(time.Now().Add(time.Hour))(ctx, token)
			}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		store := issuerStore(t, nil, opaqueIssuer(hangs))
		_, static := gatewaytest.NewToken("me", auth.Token{Scope: auth.ScopeOperator})
		if err := store.ReplaceTokens([]auth.Token{static}); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Authenticate(bearer(t.Context(), "known", "192.0.2.1")); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var all sync.WaitGroup
		var limited, unavailable atomic.Int64
		ask := func(token, address string) {
			all.Go(func() {
				switch _, err := store.Authenticate(bearer(t.Context(), token, address)); errcode.CodeOf(err) {
				case errcode.RateLimited:
					limited.Add(1)
				case errcode.ToolUnavailable:
					unavailable.Add(1)
				default:
					t.Errorf("%s: %v", token, err)
				}
				if took := time.Since(start); took > 5*time.Second {
					t.Errorf("%s waits for %v", token, took)
				}
			})
		}
		for i := range 200 {
			ask(fmt.Sprint("garbage", i), "192.0.2.1")
		}
		synctest.Wait()
		before := hangs.asked.Load()
		ask("bob", "192.0.2.2")
		synctest.Wait()
		if hangs.asked.Load() != before+1 {
			t.Error("the token of another address waits behind those of the first")
		}
		if n := before - 1; n > 16 {
			t.Errorf("the issuer is asked about %d tokens of one address at once", n)
		}
		for _, token := range []string{"rc_me", "known"} {
			if _, err := store.Authenticate(bearer(t.Context(), token, "192.0.2.1")); err != nil || time.Since(start) != 0 {
				t.Errorf("%s: %v after %v", token, err, time.Since(start))
			}
		}
		all.Wait()
		if limited.Load() == 0 || unavailable.Load() == 0 || limited.Load()+unavailable.Load() != 201 {
			t.Errorf("%d limited, %d unavailable", limited.Load(), unavailable.Load())
		}
	})
}

// An address that shows garbage to an issuer that is asked about each token is limited. Another
// one is not, also behind the same proxy.
func TestIssuers_LimitFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &fakeVerifier{asks: true}
		v.verify = func(ctx context.Context, token string) (json.RawMessage, error) {
			if strings.HasPrefix(token, "garbage") {
				return nil, errcode.New(errcode.Unauthenticated, "it is not active")
			}
			return claimsOf(time.Now().Add(time.Hour))(ctx, token)
		}
		store, err := auth.NewTokenStore(auth.TokenStoreConfig{Role: anyRole, TrustedProxies: func() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} }})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.ReplaceIssuers([]auth.Issuer{opaqueIssuer(v)}); err != nil {
			t.Fatal(err)
		}
		request := func(token, address string, forwarded ...string) error {
			r := bearer(t.Context(), token, address)
			r.Header["X-Forwarded-For"] = forwarded
			_, err := store.Authenticate(r)
			return err
		}
		for i := range 1000 {
			if err := request(fmt.Sprint("garbage", i), "192.0.2.1", fmt.Sprint("198.51.100.", i%250)); err == nil {
				t.Fatal("garbage is accepted")
			}
			_ = request(fmt.Sprint("garbage-proxied", i), "10.0.0.7", fmt.Sprintf("198.51.100.%d, 203.0.113.9, 10.0.0.8", i%250))
		}
		if n := v.asked.Load(); n != 40 {
			t.Errorf("the issuer was asked %d times about 2000 tokens of two addresses", n)
		}
		err = request("ann", "192.0.2.1")
		if e, _ := errors.AsType[*errcode.Error](err); errcode.CodeOf(err) != errcode.RateLimited || e.Details["retryAfter"] != 1 {
			t.Errorf("the address of the garbage: %v", err)
		}
		for _, forwarded := range []string{"203.0.113.10", "203.0.113.9, 203.0.113.10"} {
			if err := request("ann-proxied", "10.0.0.7", forwarded); err != nil {
				t.Errorf("another client of the proxy: %v", err)
			}
		}
		if err := request("garbage-last", "10.0.0.7", "203.0.113.9"); errcode.CodeOf(err) != errcode.RateLimited {
			t.Errorf("the client with the garbage: %v", err)
		}
		time.Sleep(time.Second)
		if err := request("ann", "192.0.2.1"); err != nil {
			t.Errorf("a second later: %v", err)
		}
	})
}

// Requests with the same token share one verification.
func TestIssuers_ShareVerification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &fakeVerifier{}
		v.verify = func(ctx context.Context, token string) (json.RawMessage, error) {
			time.Sleep(time.Second)
			return claimsOf(time.Now().Add(time.Hour))(ctx, token)
		}
		store := issuerStore(t, nil, opaqueIssuer(v))
		first, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 50 {
			ctx := t.Context()
			if i == 0 {
				ctx = first
			}
			all.Go(func() {
				if _, err := store.Authenticate(bearer(ctx, "ann", "192.0.2.1")); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		cancel() // the client that came first goes away
		all.Wait()
		if n := v.asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// A token of this program is never shown to an issuer, and without an issuer for them no
// opaque token is.
func TestIssuers_KeepOwnTokens(t *testing.T) {
	v := &fakeVerifier{verify: claimsOf(time.Now().Add(time.Hour))}
	store := issuerStore(t, nil, opaqueIssuer(v))
	for _, token := range []string{"rc_mistyped", "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL290aGVyLmV4YW1wbGUuY29tIn0.x"} {
		if _, err := store.Authenticate(bearer(t.Context(), token, "192.0.2.1")); errcode.CodeOf(err) != errcode.Unauthenticated {
			t.Errorf("%s: %v", token, err)
		}
	}
	jwtOnly := opaqueIssuer(v)
	jwtOnly.Opaque = false
	if err := store.ReplaceIssuers([]auth.Issuer{jwtOnly}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Authenticate(bearer(t.Context(), "opaque", "192.0.2.1")); errcode.CodeOf(err) != errcode.Unauthenticated || v.asked.Load() != 0 {
		t.Errorf("asked %d times: %v", v.asked.Load(), err)
	}
}

// A stream ends when the token of its client would no longer be accepted.
func TestIssuers_Revalidate(t *testing.T) {
	v := &fakeVerifier{verify: claimsOf(time.Now().Add(time.Hour))}
	store := issuerStore(t, nil, opaqueIssuer(v))
	authenticate := auth.Authenticator(store.Authenticate)
	r, err := authenticate.AdmitRequest(bearer(t.Context(), "ann", "192.0.2.1"), auth.ScopesOf(auth.ScopeOperator))
	if err != nil {
		t.Fatal(err)
	}
	if err := authenticate.Revalidate(r); err != nil {
		t.Error(err)
	}
	changed := opaqueIssuer(v)
	changed.Rules[0].Scope, changed.Rules[0].Role = auth.ScopeRole, "reader"
	for name, list := range map[string][]auth.Issuer{"another role": {changed}, "no issuer": nil} {
		if err := store.ReplaceIssuers(list); err != nil {
			t.Fatal(err)
		}
		if err := authenticate.Revalidate(r); err == nil {
			t.Errorf("%s: the stream goes on", name)
		}
	}
}

// A claim that is not a text names no user, also if the issuer was asked about the token.
func TestIssuers_UserMustBeText(t *testing.T) {
	for _, user := range []string{`7`, `true`, `null`, `["ann"]`, `{"ann":1}`, `""`, `"a\u0007"`} {
		v := &fakeVerifier{verify: func(context.Context, string) (json.RawMessage, error) {
			return fmt.Appendf(nil, `{"sub":%s,"groups":"all","exp":%d}`, user, time.Now().Add(time.Hour).Unix()), nil
		}}
		if p, err := issuerStore(t, nil, opaqueIssuer(v)).Authenticate(bearer(t.Context(), "x", "192.0.2.1")); errcode.CodeOf(err) != errcode.InsufficientPermissions {
			t.Errorf("%s: got %s, %v", user, p, err)
		}
	}
}

// The role of a rule must be active.
func TestIssuers_RoleMustBeActive(t *testing.T) {
	v := &fakeVerifier{verify: claimsOf(time.Now().Add(time.Hour))}
	issuer := opaqueIssuer(v)
	issuer.Rules[0].Scope, issuer.Rules[0].Role = auth.ScopeRole, "reader"
	role := org.Role{ID: "reader", Status: org.Active}
	store, err := auth.NewTokenStore(auth.TokenStoreConfig{Role: func(identity.RoleID) (org.Role, bool) { return role, true }})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.ReplaceIssuers([]auth.Issuer{issuer}); err != nil {
		t.Fatal(err)
	}
	want := func(good bool) {
		t.Helper()
		if _, err := store.Authenticate(bearer(t.Context(), "ann", "192.0.2.1")); (err == nil) != good {
			t.Errorf("role %+v: %v", role, err)
		}
	}
	want(true)
	role.Status = org.Deleted
	want(false)
	role = org.Role{ID: "other", Status: org.Active}
	want(false)
	role.ID = "reader"
	want(true)
}

func TestReplaceIssuers_IsAtomic(t *testing.T) {
	v := &fakeVerifier{verify: claimsOf(time.Now().Add(time.Hour))}
	store := issuerStore(t, nil, opaqueIssuer(v))
	change := func(change func(*auth.Issuer)) auth.Issuer {
		i := opaqueIssuer(v)
		i.Name, i.URL, i.Opaque = "other", "https://other.example.com", false
		change(&i)
		return i
	}
	for name, bad := range map[string]auth.Issuer{
		"no name":           change(func(i *auth.Issuer) { i.Name = "" }),
		"a colon":           change(func(i *auth.Issuer) { i.Name = "a:b" }),
		"the same name":     change(func(i *auth.Issuer) { i.Name = "corp" }),
		"no URL":            change(func(i *auth.Issuer) { i.URL = "" }),
		"the same URL":      change(func(i *auth.Issuer) { i.URL = opaqueIssuer(v).URL }),
		"no user":           change(func(i *auth.Issuer) { i.User = "" }),
		"no verifier":       change(func(i *auth.Issuer) { i.Verifier = nil }),
		"opaque twice":      change(func(i *auth.Issuer) { i.Opaque = true }),
		"no scope":          change(func(i *auth.Issuer) { i.Rules[0].Scope = auth.ScopeNone }),
		"the scope metrics": change(func(i *auth.Issuer) { i.Rules[0].Scope = auth.ScopeMetrics }),
		"a role of no id":   change(func(i *auth.Issuer) { i.Rules[0].Scope = auth.ScopeRole }),
		"an operator's id":  change(func(i *auth.Issuer) { i.Rules[0].Role = "reader" }),
	} {
		if err := store.ReplaceIssuers([]auth.Issuer{opaqueIssuer(v), bad}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := store.ReplaceIssuers(make([]auth.Issuer, auth.MaxIssuers+1)); err == nil {
		t.Error("too many issuers: no error")
	}
	if got := store.ListIssuers(); len(got) != 1 || got[0].Name != "corp" {
		t.Errorf("got %+v", got)
	}
}

// A remembered token is not parsed again: each request is authenticated twice, and its token may
// have 16 KB.
func TestIssuer_RememberedTokenCostsLittle(t *testing.T) {
	idp := oidctest.NewIssuer(t)
	store := issuerStore(t, time.Now, corpIssuer(t, idp, time.Now))
	token := idp.SignToken(fmt.Sprintf(`{"iss":%q,"aud":"gw","sub":"bob","groups":["finance"],"filler":%q,"exp":%d}`, idp.URL, strings.Repeat("x", 4096), time.Now().Add(time.Hour).Unix()))
	r := bearer(t.Context(), token, "127.0.0.1")
	if _, err := store.Authenticate(r); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = store.Authenticate(r) }); n > 2 {
		t.Errorf("%v allocations for a remembered token", n)
	}
}
