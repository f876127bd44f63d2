package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/org"
)

// sessionFixture is a gateway on loopback with the tokens rc_ann of a role, rc_op of the
// operator and rc_far, which is for /mcp only.
type sessionFixture struct {
	*gatewaytest.Fixture
	t      *testing.T
	tokens *auth.TokenStore
	list   []auth.Token
	role   org.Role
	url    string
	later  atomic.Int64 // nanoseconds that the clock of the tokens is ahead
}

func newSessionFixture(t *testing.T) *sessionFixture {
	t.Helper()
	f := &sessionFixture{Fixture: newFixture(t, gatewaytest.TeamModel), t: t}
	f.role = f.AddRole(t, "reader", "workspace")
	now := func() time.Time { return time.Now().Add(time.Duration(f.later.Load())) }
	tokens, err := auth.NewTokenStore(auth.TokenStoreConfig{Role: f.Runtime.Org().RoleByID, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	_, ann := gatewaytest.NewToken("ann", auth.Token{Scope: auth.ScopeRole, Role: f.role.ID, Expires: time.Now().Add(20 * time.Hour)})
	_, op := gatewaytest.NewToken("op", auth.Token{Scope: auth.ScopeOperator})
	_, far := gatewaytest.NewToken("far", auth.Token{Scope: auth.ScopeRole, Role: f.role.ID, Audience: "http://127.0.0.1/mcp"})
	f.tokens, f.list = tokens, []auth.Token{ann, op, far}
	f.replace(f.list...)
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: tokens.Authenticate, Sessions: tokens, StartTask: f.Runtime.StartTask})
	if err != nil {
		t.Fatal(err)
	}
	f.url = gatewaytest.ServeChecked(t, auth.HostCheck{Tokens: tokens}, gatewaytest.WithOpenAPICheck(t, handler))
	return f
}

func (f *sessionFixture) replace(list ...auth.Token) {
	f.t.Helper()
	if err := f.tokens.ReplaceTokens(list); err != nil {
		f.t.Fatal(err)
	}
}

// browser keeps cookies and sends the origin of the gateway, as its pages do.
type browser struct {
	f      *sessionFixture
	client *http.Client
	csrf   string
}

func (f *sessionFixture) browser() *browser {
	jar, _ := cookiejar.New(nil)
	return &browser{f: f, client: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// send sends a request to a path of the gateway or to a URL, with headers as pairs.
func (b *browser) send(path, body string, header ...string) (*http.Response, string) {
	b.f.t.Helper()
	method, target, ok := strings.Cut(path, " ")
	if !ok {
		method, target = http.MethodGet, path
	}
	if strings.HasPrefix(target, "/") {
		target = b.f.url + target
	}
	r, err := http.NewRequestWithContext(b.f.t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		b.f.t.Fatal(err)
	}
	if method != http.MethodGet {
		r.Header.Set("Origin", b.f.url)
		r.Header.Set(auth.CSRFHeader, b.csrf)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Del(header[i])
		if header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	answer, err := b.client.Do(r)
	if err != nil {
		b.f.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.f.t.Fatal(err)
	}
	return answer, string(text)
}

// signIn begins a session with a token and keeps its CSRF text.
func (b *browser) signIn(token string) *http.Response {
	b.f.t.Helper()
	answer, text := b.send("POST /ui/session", fmt.Sprintf(`{"token":%q}`, token))
	b.csrf = gjson.Get(text, "csrf").Str
	return answer
}

// want fails the test unless a request is answered with a status.
func (b *browser) want(status int, path, body string, header ...string) string {
	b.f.t.Helper()
	answer, text := b.send(path, body, header...)
	if answer.StatusCode != status {
		b.f.t.Errorf("%s %v: %d %s, want %d", path, header, answer.StatusCode, text, status)
	}
	return text
}

// A session has the rights of its token on the same routes, in an opaque cookie that pages
// cannot read.
func TestSession_HasRightsOfToken(t *testing.T) {
	f := newSessionFixture(t)
	ann, op, nobody := f.browser(), f.browser(), f.browser()
	answer := ann.signIn("rc_ann")
	var cookie string
	for _, c := range answer.Cookies() {
		if c.Name == "rolecall_session" {
			cookie = c.Raw
			if len(c.Value) < 43 || strings.Contains(c.Value, "ann") {
				t.Errorf("the value of the cookie: %q", c.Value)
			}
		}
	}
	if answer.StatusCode != http.StatusOK || !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") || strings.Contains(cookie, "Domain") {
		t.Errorf("%d, cookie %q", answer.StatusCode, cookie)
	}
	op.signIn("rc_op")
	me := gjson.Parse(ann.want(200, "/ui/session", ""))
	if me.Get("user").Str != "ann" || me.Get("role").Str != "reader" || me.Get("operator").Bool() || me.Get("csrf").Str != ann.csrf || !me.Get("expires").Exists() {
		t.Errorf("ann is %s", me)
	}
	if me := gjson.Parse(op.want(200, "/ui/session", "")); !me.Get("operator").Bool() {
		t.Errorf("op is %s", me)
	}
	ann.want(200, "/api/v1/tools", "")
	ann.want(403, "/api/v1/roles", "")
	op.want(200, "/api/v1/roles", "")
	nobody.want(401, "/api/v1/tools", "")
	nobody.want(401, "/ui/session", "")
	ann.want(200, "POST /api/v1/can", `{}`)
	for _, token := range []string{"rc_far", "rc_nothing", "", "x", "header.payload.signature"} {
		if answer := nobody.signIn(token); answer.StatusCode != http.StatusUnauthorized || len(answer.Cookies()) > 0 {
			t.Errorf("token %q: %d, %v", token, answer.StatusCode, answer.Cookies())
		}
	}
	ann.want(401, "/api/v1/tools", "", "Authorization", "Bearer rc_nothing") // a rejected token is never ignored
	start := f.browser()
	start.signIn(f.tokens.StartupToken())
	start.want(200, "/api/v1/roles", "")
	f.tokens.StartupToken() // replaces it
	start.want(401, "/api/v1/roles", "")
}

// What changes something needs a page of this gateway, and the text that only this page reads.
func TestSession_RejectsForgedRequests(t *testing.T) {
	f := newSessionFixture(t)
	op, other := f.browser(), f.browser()
	op.signIn("rc_op")
	other.signIn("rc_op")
	const path, body = "POST /api/v1/roles?dryRun=1", `{"name":"made","rolePrompt":"p"}`
	op.want(403, path, body, auth.CSRFHeader, "")
	op.want(403, path, body, auth.CSRFHeader, "x")
	op.want(403, path, body, auth.CSRFHeader, other.csrf)
	op.want(403, path, body, "Origin", "")
	op.want(403, path, body, "Origin", "null")
	op.want(403, path, body, "Origin", "https://evil.example.com")
	op.want(403, path, body, "Origin", strings.Replace(f.url, "127.0.0.1", "localhost", 1))
	op.want(403, "DELETE /ui/session", "", auth.CSRFHeader, "")
	op.want(403, "/api/v1/roles", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors")
	op.want(200, path, body)
	op.want(403, "POST /ui/session", `{"token":"rc_ann"}`, "Origin", "") // another page cannot sign in
	op.want(403, "POST /ui/session", `{"token":"rc_ann"}`, "Origin", "https://evil.example.com")
}

// A session ends when its page ends it, with its token and its role, and after a time. A token
// that comes back does not bring it back.
func TestSession_Ends(t *testing.T) {
	for name, end := range map[string]func(*sessionFixture, *browser){
		"by the page":   func(_ *sessionFixture, b *browser) { b.want(204, "DELETE /ui/session", "") },
		"token removed": func(f *sessionFixture, _ *browser) { f.replace(f.list[1:]...); f.replace(f.list...) },
		"token expired": func(f *sessionFixture, _ *browser) { f.replace(expired(f.list)...) },
		"idle":          func(f *sessionFixture, _ *browser) { f.later.Add(int64(31 * time.Minute)) },
		"role deleted": func(f *sessionFixture, _ *browser) {
			if _, err := f.LocalClient().DeleteRole(f.t.Context(), string(f.role.ID), false); err != nil {
				f.t.Fatal(err)
			}
		},
		"after 12 hours": func(f *sessionFixture, b *browser) {
			for range 12*3 - 1 {
				f.later.Add(int64(20 * time.Minute))
				b.want(200, "/api/v1/tools", "")
			}
			f.later.Add(int64(20 * time.Minute))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newSessionFixture(t)
			b := f.browser()
			b.signIn("rc_ann")
			b.want(200, "/api/v1/tools", "")
			at, _ := url.Parse(f.url)
			kept := b.client.Jar.Cookies(at)
			end(f, b)
			b.client.Jar.SetCookies(at, kept) // as one who has copied it
			b.want(401, "/api/v1/tools", "")
			b.want(401, "/ui/session", "")
		})
	}
}

// expired returns tokens that have expired.
func expired(list []auth.Token) (past []auth.Token) {
	for _, token := range list {
		token.Expires = time.Now().Add(-time.Hour)
		past = append(past, token)
	}
	return past
}

// A sign-in always makes a new id, and ends the session that the browser had. A cookie from
// elsewhere never becomes a session.
func TestSession_IsNotFixed(t *testing.T) {
	f := newSessionFixture(t)
	at, _ := url.Parse(f.url)
	victim, attacker := f.browser(), f.browser()
	attacker.signIn("rc_ann")
	planted := attacker.client.Jar.Cookies(at)
	victim.client.Jar.SetCookies(at, planted)
	victim.signIn("rc_op")
	victim.want(200, "/api/v1/roles", "")
	attacker.want(401, "/api/v1/tools", "")
	attacker.client.Jar.SetCookies(at, planted)
	attacker.want(401, "/api/v1/roles", "")
	stranger := f.browser()
	stranger.client.Jar.SetCookies(at, []*http.Cookie{{Name: "rolecall_session", Value: "rc_chosen"}})
	stranger.signIn("rc_ann")
	stranger.client.Jar.SetCookies(at, []*http.Cookie{{Name: "rolecall_session", Value: "rc_chosen", Path: "/"}})
	stranger.want(401, "/api/v1/tools", "")
}

// A user has 16 sessions: the oldest gives way. Those of others stay, also when all are taken.
func TestSession_NumberIsBounded(t *testing.T) {
	users := short.Count(5, 300) // 256 of them take all places
	f := newSessionFixture(t)
	list := f.list
	for i := range users {
		_, token := gatewaytest.NewToken(fmt.Sprint("user", i), auth.Token{Scope: auth.ScopeRole, Role: f.role.ID})
		list = append(list, token)
	}
	f.replace(list...)
	first := f.browser()
	first.signIn("rc_ann")
	begin := func(token string) *http.Cookie {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://127.0.0.1/ui/session", nil)
		r.Header.Set("Origin", "http://127.0.0.1")
		w := httptest.NewRecorder()
		if _, _, err := f.tokens.BeginSession(w, r, token); err != nil {
			t.Fatal(err)
		}
		return w.Result().Cookies()[0]
	}
	alive := func(c *http.Cookie) bool {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1/", nil)
		r.AddCookie(c)
		_, ok := f.tokens.FindSession(r)
		return ok
	}
	oldest := begin("rc_op")
	for range 15 {
		begin("rc_op")
	}
	if !alive(oldest) {
		t.Error("the 16th session of a user ended the first")
	}
	if begin("rc_op"); alive(oldest) {
		t.Error("a user has 17 sessions")
	}
	kept := 0
	var cookies []*http.Cookie
	for i := range users {
		for range 16 {
			cookies = append(cookies, begin(fmt.Sprint("rc_user", i)))
		}
	}
	for _, c := range cookies {
		if alive(c) {
			kept++
		}
	}
	if kept == 0 || kept > 4096 {
		t.Errorf("%d sessions are alive, want at most 4096", kept)
	}
	first.want(200, "/api/v1/tools", "") // a user with one session loses none
}

// The cookie of a session counts for networks as a token does.
func TestSession_InNetwork(t *testing.T) {
	f := newSessionFixture(t)
	b := f.browser()
	b.signIn("rc_ann")
	if err := f.tokens.ReplaceNetworks([]auth.Network{loopbackWithin(f)}); err != nil {
		t.Fatal(err)
	}
	if text := b.want(200, "/api/v1/tools", ""); len(gjson.Get(text, "items").Array()) > 0 {
		t.Errorf("from a network without groups: %s", text)
	}
	if answer := f.browser().signIn("rc_op"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("the operator from a network with a limit: %d", answer.StatusCode)
	}
}
