package gateway_test

import (
	"crypto/sha256"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// today is when the tests of tokens take place.
var today = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// known makes Tokens for roles of a house at the moment today.
func known(t testing.TB, h *house, list ...gateway.Token) *gateway.Tokens {
	t.Helper()
	tokens, err := gateway.NewTokens(gateway.TokensConfig{Role: h.rt.Org().FindRole, Now: func() time.Time { return today }})
	if err != nil {
		t.Fatal(err)
	}
	if err := tokens.Replace(list); err != nil {
		t.Fatal(err)
	}
	return tokens
}

// holder gives the token of a name, and what a gateway knows of it.
func holder(name string, token gateway.Token) (string, gateway.Token) {
	token.Name, token.Digest = name, sha256.Sum256([]byte("rc_"+name))
	return "rc_" + name, token
}

// reached serves a house behind a door on loopback and gives its URL.
func reached(t testing.TB, h *house, door gateway.HostCheck) string {
	t.Helper()
	handler, err := gateway.New(gateway.Config{Runtime: h.rt, Authenticate: door.Tokens.Authenticate, Version: "v0"})
	if err != nil {
		t.Fatal(err)
	}
	return atDoor(t, door, handler)
}

// atDoor serves a handler behind a door on loopback and gives its URL.
func atDoor(t testing.TB, door gateway.HostCheck, handler http.Handler) string {
	t.Helper()
	l, err := gateway.ListenTCP("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, l, door.Wrap(handler))
	return "http://" + l.Addr().String()
}

// answerTo sends a request as it is, follows nothing, and gives status, header
// and body.
func answerTo(t testing.TB, method, url string, header http.Header, body io.Reader) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		if name == "Host" {
			r.Host = values[0]
			continue
		}
		r.Header[name] = values
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

func TestWhoPresentsWhatIsWho(t *testing.T) {
	h := open(t, team)
	reader, gone := h.role(t, "reader", "workspace"), h.role(t, "gone", "workspace")
	if _, err := h.client().DeleteRole(t.Context(), string(gone.ID), false); err != nil {
		t.Fatal(err)
	}
	var list []gateway.Token
	add := func(name string, token gateway.Token) {
		_, token = holder(name, token)
		list = append(list, token)
	}
	add("id", gateway.Token{Role: string(reader.ID)})
	add("name", gateway.Token{Role: "reader", Expires: today.Add(time.Second)})
	add("me", gateway.Token{Operator: true})
	add("late", gateway.Token{Operator: true, Expires: today})
	add("gone", gateway.Token{Role: "gone"})
	add("never", gateway.Token{Role: "never"})
	add("rooted", gateway.Token{Role: org.RootRole})
	add("mcp", gateway.Token{Operator: true, Audience: "http://GW.example.com:80/mcp/"})
	tokens := known(t, h, list...)
	const nobody = ""
	for _, c := range []struct {
		name   string
		header []string
		url    string
		want   string // "" is nobody, by invalid_token
	}{
		{"a role by id", []string{"Bearer rc_id"}, "", "user:id@" + string(reader.ID)},
		{"a role by name", []string{"bearer  rc_name"}, "", "user:name@" + string(reader.ID)},
		{"the operator", []string{"BEARER rc_me"}, "", "operator"},
		{"one that expired at this moment", []string{"Bearer rc_late"}, "", nobody},
		{"a deleted role", []string{"Bearer rc_gone"}, "", nobody},
		{"a role that never was", []string{"Bearer rc_never"}, "", nobody},
		{"root is no role to act in", []string{"Bearer rc_rooted"}, "", nobody},
		{"an unknown token", []string{"Bearer rc_idx"}, "", nobody},
		{"a digest", []string{"Bearer " + strings.Repeat("0", 64)}, "", nobody},
		{"two headers", []string{"Bearer rc_me", "Bearer rc_me"}, "", nobody},
		{"no token", []string{"Bearer "}, "", nobody},
		{"no space", []string{"Bearerrc_me"}, "", nobody},
		{"nothing", []string{""}, "", nobody},
		{"another scheme", []string{"Basic rc_me"}, "", nobody},
		{"two tokens", []string{"Bearer rc_me rc_me"}, "", nobody},
		{"two in one header", []string{"Bearer rc_me, Bearer rc_me"}, "", nobody},
		{"more than a token", []string{"Bearer rc_me\x00"}, "", nobody},
		{"a long one", []string{"Bearer " + strings.Repeat("a", 5000)}, "", nobody},
		{"in its audience", []string{"Bearer rc_mcp"}, "http://gw.example.com/mcp", "operator"},
		{"below its audience", []string{"Bearer rc_mcp"}, "http://gw.example.com/mcp/tools?x=1", "operator"},
		{"beside its audience", []string{"Bearer rc_mcp"}, "http://gw.example.com/mcpx", nobody},
		{"above its audience", []string{"Bearer rc_mcp"}, "http://gw.example.com/", nobody},
		{"out of its audience by dots", []string{"Bearer rc_mcp"}, "http://gw.example.com/mcp/../api/v1/roles", nobody},
		{"out of its audience by escaped dots", []string{"Bearer rc_mcp"}, "http://gw.example.com/mcp/%2e%2e/api/v1/roles", nobody},
		{"its audience escaped otherwise", []string{"Bearer rc_mcp"}, "http://gw.example.com/m%63p", nobody},
		{"at another host", []string{"Bearer rc_mcp"}, "http://gw.example.com.evil.example/mcp", nobody},
		{"at another port", []string{"Bearer rc_mcp"}, "http://gw.example.com:8080/mcp", nobody},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.url == "" {
				c.url = "http://127.0.0.1:7464/api/v1/tools"
			}
			r, err := http.NewRequest(http.MethodGet, c.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header["Authorization"] = c.header
			for _, marked := range []bool{false, true} { // a token that is not taken is passed over for nobody
				p, err := authenticateAs(tokens, r, marked)
				if c.want != nobody && (err != nil || p.String() != c.want) {
					t.Errorf("got %s, %v, want %s", p, err, c.want)
				}
				if c.want == nobody && (p != identity.Principal{} || errcode.Of(err) != errcode.Unauthenticated) {
					t.Errorf("got %s, %v, want nobody", p, err)
				}
			}
		})
	}
}

// authenticateAs asks who sends a request, on the socket if marked.
func authenticateAs(tokens *gateway.Tokens, r *http.Request, marked bool) (p identity.Principal, err error) {
	var handler http.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { p, err = tokens.Authenticate(r) })
	if marked {
		handler = gateway.TrustLocalOwner(handler)
	}
	handler.ServeHTTP(nil, r)
	return p, err
}

func TestWithoutATokenOnlyTheSocketIsTheOperators(t *testing.T) {
	h := open(t, team)
	tokens := known(t, h)
	r, err := http.NewRequest(http.MethodGet, "http://127.0.0.1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := authenticateAs(tokens, r, false); p != (identity.Principal{}) || errcode.Of(err) != errcode.Unauthenticated {
		t.Errorf("got %s, %v, want nobody", p, err)
	}
	if p, err := authenticateAs(tokens, r, true); p.Kind != identity.Operator || err != nil {
		t.Errorf("marked: got %s, %v, want the operator", p, err)
	}
	var zero gateway.Tokens
	for _, header := range []http.Header{bearer("rc_x"), {}, {"Cookie": {"rolecall="}}} {
		r.Header = header
		if p, err := authenticateAs(&zero, r, false); p != (identity.Principal{}) || errcode.Of(err) != errcode.Unauthenticated {
			t.Errorf("zero Tokens: got %s, %v, want nobody", p, err)
		}
	}
}

func TestListsOfTokensAreTakenWholeOrNotAtAll(t *testing.T) {
	h := open(t, team)
	_, good := holder("good", gateway.Token{Operator: true})
	tokens := known(t, h, good)
	_, other := holder("other", gateway.Token{Operator: true})
	change := func(f func(*gateway.Token)) []gateway.Token {
		changed := other
		f(&changed)
		return []gateway.Token{changed, good}
	}
	for name, list := range map[string][]gateway.Token{
		"no name":              change(func(t *gateway.Token) { t.Name = "" }),
		"a name twice":         change(func(t *gateway.Token) { t.Name = "good" }),
		"no digest":            change(func(t *gateway.Token) { t.Digest = [32]byte{} }),
		"a digest twice":       change(func(t *gateway.Token) { t.Digest = good.Digest }),
		"nobody":               change(func(t *gateway.Token) { t.Operator = false }),
		"two":                  change(func(t *gateway.Token) { t.Role = "reader" }),
		"an audience":          change(func(t *gateway.Token) { t.Audience = "/mcp" }),
		"an audience of dots":  change(func(t *gateway.Token) { t.Audience = "http://a/b/../c" }),
		"more than are taken":  make([]gateway.Token, gateway.MaxTokens+1),
		"an audience and user": change(func(t *gateway.Token) { t.Audience = "http://me@a/" }),
	} {
		if err := tokens.Replace(list); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	who := func(token string) identity.Kind {
		r, err := http.NewRequest(http.MethodGet, "http://a/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = bearer(token)
		p, _ := tokens.Authenticate(r)
		return p.Kind
	}
	if who("rc_good") != identity.Operator || who("rc_other") != identity.None {
		t.Error("a list that was refused has changed something")
	}
	if err := tokens.Replace([]gateway.Token{other}); err != nil || who("rc_good") != identity.None || who("rc_other") != identity.Operator {
		t.Errorf("replaced: %v, or the old token is taken", err)
	}
	if _, err := gateway.NewTokens(gateway.TokensConfig{}); err == nil || !strings.Contains(err.Error(), "TokensConfig.Role") {
		t.Errorf("got %v, want an error that names TokensConfig.Role", err)
	}
}

// What the refusal of a token says, over the wire, is the same for all.
func TestRefusalsOfTokensReadAlike(t *testing.T) {
	h := open(t, team)
	_, late := holder("late", gateway.Token{Operator: true, Expires: today.Add(-time.Hour)})
	_, gone := holder("gone", gateway.Token{Role: "gone"})
	_, mcp := holder("mcp", gateway.Token{Operator: true, Audience: "http://127.0.0.1/mcp"})
	url := reached(t, h, gateway.HostCheck{Tokens: known(t, h, late, gone, mcp)}) + "/api/v1/tools"
	var first string
	for _, token := range []string{"rc_unknown", "rc_late", "rc_gone", "rc_mcp", "%", strings.Repeat("a", 5000)} {
		status, header, body := answerTo(t, http.MethodGet, url, bearer(token), nil)
		if got := refused(t, body); status != http.StatusUnauthorized || got.Code != errcode.Unauthenticated {
			t.Errorf("%.20s: %d %s, want 401 unauthenticated", token, status, body)
		}
		if got := header.Get("WWW-Authenticate"); got != `Bearer realm="rolecall", error="invalid_token"` {
			t.Errorf("%.20s: WWW-Authenticate %s", token, got)
		}
		if first == "" {
			first = body
		}
		if body != first {
			t.Errorf("%.20s: got %s, others get %s", token, body, first)
		}
	}
	status, header, _ := answerTo(t, http.MethodGet, url+"?token=rc_late", nil, nil)
	if got := header.Get("WWW-Authenticate"); status != http.StatusUnauthorized || got != `Bearer realm="rolecall"` {
		t.Errorf("without a token: %d, WWW-Authenticate %q", status, got)
	}
}

func TestNewTokensDifferAndAreTokens(t *testing.T) {
	h := open(t, team)
	a, digest := gateway.NewToken()
	b, _ := gateway.NewToken()
	if a == b || len(a) < 40 || digest != sha256.Sum256([]byte(a)) {
		t.Errorf("got %s and %s", a, b)
	}
	tokens := known(t, h, gateway.Token{Name: "x", Digest: digest, Operator: true})
	r, err := http.NewRequest(http.MethodGet, "http://a/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = bearer(a)
	if p, err := tokens.Authenticate(r); err != nil || p.Kind != identity.Operator {
		t.Errorf("got %s, %v", p, err)
	}
}
