package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/test/oidctest"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/toolgroups"
)

// loopbackWithin is a network without groups that has the address of the tests.
func loopbackWithin(f *sessionFixture) auth.Network {
	return auth.Network{From: netip.MustParsePrefix("127.0.0.0/8"), Within: f.Runtime.Org().LimitTo(toolgroups.SetOf())}
}

// browserSignIn adapts an oidc.Service.
type browserSignIn struct{ *oidc.Service }

func (b browserSignIn) VerifyToken(ctx context.Context, token string) (json.RawMessage, error) {
	claims, err := b.Verify(ctx, token)
	return json.RawMessage(claims), err
}

func (b browserSignIn) AuthorizationURL(ctx context.Context, a auth.SignInAttempt) (string, error) {
	return b.Service.AuthorizationURL(ctx, oidc.Authorization(a))
}

func (b browserSignIn) ExchangeCode(ctx context.Context, a auth.SignInAttempt, code, answered string) (string, error) {
	return b.Service.ExchangeCode(ctx, oidc.Authorization(a), code, answered)
}

// newSignInFixture is withSignIn with a new issuer.
func newSignInFixture(t *testing.T) (*sessionFixture, *oidctest.SignInIssuer) {
	t.Helper()
	idp := oidctest.NewSignInIssuer(t)
	return withSignIn(t, idp), idp
}

// withSignIn returns a gateway whose users sign in with an issuer. Those of its group staff
// have the role of the fixture.
func withSignIn(t *testing.T, idp *oidctest.SignInIssuer) *sessionFixture {
	t.Helper()
	f, issuer := signInIssuer(t, idp)
	if err := f.tokens.ReplaceIssuers([]auth.Issuer{issuer}); err != nil {
		t.Fatal(err)
	}
	return f
}

// signInIssuer returns a gateway, and the issuer of withSignIn.
func signInIssuer(t *testing.T, idp *oidctest.SignInIssuer) (*sessionFixture, auth.Issuer) {
	t.Helper()
	f := newSessionFixture(t)
	service := func(c oidc.Config) *oidc.Service {
		c.Name, c.Issuer = "corp", idp.URL
		made, err := oidc.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	return f, auth.Issuer{
		Name: "corp", URL: idp.URL, User: "sub", Rules: []auth.ClaimRule{{Claim: "/groups", Value: "staff", Scope: auth.ScopeRole, Role: f.role.ID}},
		Verifier: browserSignIn{service(oidc.Config{Audience: []string{"api"}})},
		SignIn:   browserSignIn{service(oidc.Config{Audience: []string{idp.Client}, SignIn: &oidc.SignInClient{ID: idp.Client, Secret: idp.Secret}})},
	}
}

// visitIssuer begins to sign in and lets the issuer answer. It returns the address to which the
// issuer sends the browser.
func (b *browser) visitIssuer(query string) *url.URL {
	b.f.t.Helper()
	answer, text := b.send("/ui/login"+query, "")
	if answer.StatusCode != http.StatusSeeOther {
		b.f.t.Fatalf("/ui/login%s: %d %s", query, answer.StatusCode, text)
	}
	answer, text = b.send("GET "+answer.Header.Get("Location"), "")
	back, err := answer.Location()
	if err != nil {
		b.f.t.Fatalf("the issuer: %v %s", err, text)
	}
	return back
}

// A user signs in with an issuer, comes to the page that was asked for, and has the role that
// the claims have.
func TestSignIn_WithIssuer(t *testing.T) {
	idp := oidctest.NewSignInIssuer(t)
	for _, idp.NamesIssuer = range []bool{false, true} {
		f := withSignIn(t, idp)
		b := f.browser()
		back := b.visitIssuer("?to=/console%3Ftask=1")
		answer, text := b.send("GET "+back.String(), "")
		if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/console?task=1" || answer.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Fatalf("callback: %d %v %s", answer.StatusCode, answer.Header, text)
		}
		if cookies := strings.Join(answer.Header.Values("Set-Cookie"), "\n"); !strings.Contains(cookies, "SameSite=Lax") || strings.Contains(cookies, "eyJ") {
			t.Errorf("cookies %s", cookies)
		}
		me := gjson.Parse(b.want(200, "/ui/session", ""))
		if me.Get("user").Str != "corp:ann" || me.Get("role").Str != "reader" {
			t.Errorf("the user is %s", me)
		}
		if at, _ := time.Parse(time.RFC3339, me.Get("expires").Str); time.Until(at) > idp.Lasts {
			t.Errorf("the session outlasts its token: %v", at)
		}
		b.csrf = me.Get("csrf").Str
		b.want(200, "POST /api/v1/can", "{}")
		b.want(403, "/api/v1/roles", "")
		if err := f.tokens.ReplaceIssuers(nil); err != nil {
			t.Fatal(err)
		}
		b.want(401, "/api/v1/tools", "")
	}
}

// A session ends with its token, also if the browser goes on.
func TestSignIn_EndsWithToken(t *testing.T) {
	f, idp := newSignInFixture(t)
	idp.Lasts = 10 * time.Minute
	b := f.browser()
	b.want(303, "GET "+b.visitIssuer("").String(), "")
	b.want(200, "/api/v1/tools", "")
	f.later.Add(int64(11 * time.Minute))
	b.want(401, "/api/v1/tools", "")
}

// hostileSignIn is an issuer that keeps the codes that it is sent.
type hostileSignIn struct {
	auth.BrowserSignIn
	codes []string
}

func (h *hostileSignIn) ExchangeCode(_ context.Context, _ auth.SignInAttempt, code, _ string) (string, error) {
	h.codes = append(h.codes, code)
	return "", errcode.New(errcode.Unauthenticated, "no")
}

// An issuer that sends its user on to another issuer is not sent the code of that one, also if that one does not name
// itself in its answers. With the code it could sign in as the user.
func TestSignIn_CodeOfOtherIssuer(t *testing.T) {
	corp := oidctest.NewSignInIssuer(t)
	f, issuer := signInIssuer(t, corp)
	hostile, other := &hostileSignIn{BrowserSignIn: issuer.SignIn}, issuer
	other.Name, other.URL, other.SignIn = "hostile", "http://127.0.0.1:1", hostile
	if err := f.tokens.ReplaceIssuers([]auth.Issuer{issuer, other}); err != nil {
		t.Fatal(err)
	}
	attacker, user := f.browser(), f.browser()
	begin := func(b *browser, name string) *url.URL {
		answer, _ := b.send("/ui/login?issuer="+name, "")
		to, err := answer.Location()
		if err != nil {
			t.Fatal(err)
		}
		return to
	}
	atCorp, q := begin(attacker, "corp"), begin(user, "hostile").Query()
	sentOn := atCorp.Query()
	sentOn.Set("state", q.Get("state"))
	atCorp.RawQuery = sentOn.Encode()
	answer, text := user.send("GET "+atCorp.String(), "")
	back, err := answer.Location()
	if err != nil || back.Query().Get("code") == "" {
		t.Fatalf("the issuer: %v %s", err, text)
	}
	user.want(401, "GET "+back.String(), "")
	if len(hostile.codes) > 0 {
		t.Errorf("the other issuer was sent the codes %q", hostile.codes)
	}
	own := f.browser()
	own.want(303, "GET "+own.visitIssuer("?issuer=corp").String(), "")
	own.want(200, "/api/v1/tools", "")
}

// What an issuer signs for this program is not accepted in place of a token of the API.
func TestSignIn_TokenIsNoBearer(t *testing.T) {
	f, idp := newSignInFixture(t)
	var token string
	idp.Sign = func(claims string) string { token = idp.SignToken(claims); return token }
	b, api := f.browser(), f.browser()
	api.want(401, "/api/v1/tools", "", "Authorization", "Bearer x")
	b.want(303, "GET "+b.visitIssuer("").String(), "")
	b.want(200, "/api/v1/tools", "")
	api.want(401, "/api/v1/tools", "", "Authorization", "Bearer "+token)
	if answer := api.signIn(token); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a session from an ID token: %d", answer.StatusCode)
	}
}

// with returns an address with another value of a parameter, "" to remove it.
func with(back *url.URL, name, value string) string {
	changed, q := *back, back.Query()
	q.Set(name, value)
	if value == "" {
		q.Del(name)
	}
	changed.RawQuery = q.Encode()
	return "GET " + changed.String()
}

// An answer that is not of this attempt, this browser or this issuer begins no session.
func TestSignIn_RejectsAnswers(t *testing.T) {
	idp := oidctest.NewSignInIssuer(t)
	for name, try := range map[string]func(*sessionFixture, *oidctest.SignInIssuer, *browser) string{
		"wrong state": func(_ *sessionFixture, _ *oidctest.SignInIssuer, b *browser) string {
			return with(b.visitIssuer(""), "state", "x")
		},
		"no state": func(_ *sessionFixture, _ *oidctest.SignInIssuer, b *browser) string {
			return with(b.visitIssuer(""), "state", "")
		},
		"two states": func(_ *sessionFixture, _ *oidctest.SignInIssuer, b *browser) string {
			back := b.visitIssuer("")
			return "GET " + back.String() + "&state=x"
		},
		"no code": func(_ *sessionFixture, _ *oidctest.SignInIssuer, b *browser) string {
			return with(b.visitIssuer(""), "code", "")
		},
		"wrong code": func(_ *sessionFixture, _ *oidctest.SignInIssuer, b *browser) string {
			return with(b.visitIssuer(""), "code", "x")
		},
		"error": func(_ *sessionFixture, _ *oidctest.SignInIssuer, b *browser) string {
			return with(b.visitIssuer(""), "error", "access_denied")
		},
		"wrong issuer": func(_ *sessionFixture, _ *oidctest.SignInIssuer, b *browser) string {
			return with(b.visitIssuer(""), "iss", "https://evil.example.com")
		},
		"issuer is missing": func(_ *sessionFixture, idp *oidctest.SignInIssuer, b *browser) string {
			idp.NamesIssuer = true
			return with(b.visitIssuer(""), "iss", "")
		},
		"another browser": func(f *sessionFixture, _ *oidctest.SignInIssuer, b *browser) string {
			victim := f.browser()
			b.visitIssuer("")
			return "GET " + victim.visitIssuer("").String()
		},
		"code of another attempt": func(f *sessionFixture, _ *oidctest.SignInIssuer, b *browser) string {
			return with(b.visitIssuer(""), "code", f.browser().visitIssuer("").Query().Get("code"))
		},
		"too late": func(f *sessionFixture, _ *oidctest.SignInIssuer, b *browser) string {
			back := b.visitIssuer("")
			f.later.Add(int64(11 * time.Minute))
			return "GET " + back.String()
		},
		"issuer removed": func(f *sessionFixture, _ *oidctest.SignInIssuer, b *browser) string {
			back := b.visitIssuer("")
			_ = f.tokens.ReplaceIssuers(nil)
			return "GET " + back.String()
		},
		"wrong nonce":       broken("nonce", "another"),
		"no nonce":          broken("nonce", nil),
		"for another":       broken("aud", "another"),
		"for several":       broken("aud", []string{"gw", "another"}),
		"of another client": broken("azp", "another"),
		"expired":           broken("exp", 1),
		"of another issuer": broken("iss", "https://evil.example.com"),
		"wrong key":         signed(func(i *oidctest.SignInIssuer) func(string) string { return i.SignWithWrongKey }),
		"unsigned":          signed(func(i *oidctest.SignInIssuer) func(string) string { return i.UnsignedToken }),
		"public key":        signed(func(i *oidctest.SignInIssuer) func(string) string { return i.SignWithPublicKey }),
		"no token":          signed(func(*oidctest.SignInIssuer) func(string) string { return func(string) string { return "" } }),
	} {
		t.Run(name, func(t *testing.T) {
			idp.NamesIssuer, idp.Break, idp.Sign = false, nil, nil
			f := withSignIn(t, idp)
			b := f.browser()
			answer, text := b.send(try(f, idp, b), "")
			if answer.StatusCode != http.StatusUnauthorized || strings.Contains(text, "eyJ") {
				t.Errorf("%d %s", answer.StatusCode, text)
			}
			b.want(401, "/ui/session", "")
		})
	}
}

// broken returns an attempt whose ID token has another value of a claim, nil for none.
func broken(claim string, value any) func(*sessionFixture, *oidctest.SignInIssuer, *browser) string {
	return func(_ *sessionFixture, idp *oidctest.SignInIssuer, b *browser) string {
		idp.Break = func(claims map[string]any) {
			claims[claim] = value
			if value == nil {
				delete(claims, claim)
			}
		}
		return "GET " + b.visitIssuer("").String()
	}
}

// signed returns an attempt whose ID token is signed in another way.
func signed(by func(*oidctest.SignInIssuer) func(string) string) func(*sessionFixture, *oidctest.SignInIssuer, *browser) string {
	return func(_ *sessionFixture, idp *oidctest.SignInIssuer, b *browser) string {
		idp.Sign = by(idp)
		return "GET " + b.visitIssuer("").String()
	}
}

// A code and an attempt are good for one session, also for one who has copied the cookies.
func TestSignIn_IsNotReplayed(t *testing.T) {
	f, _ := newSignInFixture(t)
	b := f.browser()
	back := b.visitIssuer("")
	at, _ := url.Parse(f.url)
	copied := b.client.Jar.Cookies(at)
	b.want(303, "GET "+back.String(), "")
	b.want(401, "GET "+back.String(), "") // the browser has removed its attempt
	thief := f.browser()
	thief.client.Jar.SetCookies(at, copied)
	thief.want(401, "GET "+back.String(), "")
	thief.want(401, "/api/v1/tools", "")
}

// The form of the page learns the names of the issuers, before anybody has signed in.
func TestSignIn_ListsIssuers(t *testing.T) {
	f, _ := newSignInFixture(t)
	if got := strings.TrimSpace(f.browser().want(200, "/ui/issuers", "")); got != `{"issuers":["corp"]}` {
		t.Errorf("got %s", got)
	}
	if err := f.tokens.ReplaceIssuers(nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(f.browser().want(200, "/ui/issuers", "")); got != `{"issuers":[]}` {
		t.Errorf("without issuers: %s", got)
	}
}

// A user without a role gets no session, and neither does one whose issuer has no sign-in.
func TestSignIn_NeedsRole(t *testing.T) {
	f, idp := newSignInFixture(t)
	idp.Break = func(claims map[string]any) { claims["groups"] = []string{"guests"} }
	b := f.browser()
	b.want(403, "GET "+b.visitIssuer("").String(), "")
	b.want(401, "/ui/session", "")
	b.want(404, "/ui/login?issuer=other", "")
}

// A browser whose sign-in fails comes to the page with the code of the error and nothing of the
// request. A program gets the error.
func TestSignIn_FailureIsExplainedToBrowsers(t *testing.T) {
	f, _ := newSignInFixture(t)
	b := f.browser()
	for path, want := range map[string]string{
		"/ui/callback?error=%3Cb%3E&state=x&code=evil": "../#/sign-in-failed?code=unauthenticated",
		"/ui/login?issuer=other":                       "../#/sign-in-failed?code=route_not_found",
	} {
		page, _ := b.send(path, "", "Accept", "text/html")
		program, _ := b.send(path, "")
		if page.StatusCode != http.StatusSeeOther || page.Header.Get("Location") != want || program.StatusCode < 400 {
			t.Errorf("%s: browser %d to %q, program %d", path, page.StatusCode, page.Header.Get("Location"), program.StatusCode)
		}
	}
}

// The browser is sent to local paths only.
func TestSignIn_NoOpenRedirect(t *testing.T) {
	f, _ := newSignInFixture(t)
	b := f.browser()
	for _, to := range []string{
		"https://evil.example.com", "//evil.example.com", `/\evil.example.com`, `\\evil.example.com`, "evil", "/a\r\nSet-Cookie: x=1", "/\t/evil.example.com",
		"/ /evil.example.com", "javascript:alert(1)", "http:/evil", "/" + strings.Repeat("a", 600), "/ä", "/%", "?x", "///evil.example.com", "/a\x00",
	} {
		answer, text := b.send("/ui/login?to="+url.QueryEscape(to), "")
		if answer.StatusCode != http.StatusBadRequest || len(answer.Cookies()) > 0 {
			t.Errorf("%q: %d %s", to, answer.StatusCode, text)
		}
	}
}

// Attempts that never finish take no room: one that began before them finishes.
func TestSignIn_ManyAttemptsNeverFinish(t *testing.T) {
	f, _ := newSignInFixture(t)
	b, flood := f.browser(), f.browser()
	back := b.visitIssuer("")
	for range short.Count(300, 10_000) {
		flood.want(303, "/ui/login", "")
	}
	b.want(303, "GET "+back.String(), "")
	b.want(200, "/ui/session", "")
}

// An address whose attempts fail waits.
func TestSignIn_LimitsFailures(t *testing.T) {
	f, _ := newSignInFixture(t)
	b := f.browser()
	limited := 0
	for range 30 {
		if answer, _ := b.send(with(b.visitIssuer(""), "code", "x"), ""); answer.StatusCode == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited == 0 {
		t.Error("30 wrong codes, and none was rejected as one too many")
	}
}
