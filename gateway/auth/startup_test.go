package auth_test

import (
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/org/hosts"
)

// The startup token opens the gateway in a browser: it is exchanged for a cookie
// that scripts cannot read and other pages cannot send.
func TestStartup_TokenIsExchangedForCookie(t *testing.T) {
	f := newFixture(t)
	tokens := gatewaytest.NewTokens(t, f)
	url := gatewaytest.ServeAPI(t, f, auth.HostCheck{Tokens: tokens, Origins: []hosts.Origin{{Scheme: "http", Host: hosts.Authority{Name: "app.example.com"}}}})
	if status, _, _ := gatewaytest.SendRaw(t, http.MethodGet, url+"/?token=", nil, nil); status != http.StatusUnauthorized {
		t.Errorf("an empty token without a startup token: %d, want 401", status)
	}
	token := tokens.StartupToken()
	if status, _, _ := gatewaytest.SendRaw(t, http.MethodGet, url+"/api/v1/roles", gatewaytest.BearerHeader(token), nil); status != http.StatusOK {
		t.Errorf("in a header: %d, want 200", status)
	}
	for name, path := range map[string]string{
		"another path": "/api/v1/roles?token=" + token, "a wrong token": "/?token=" + token + "x", "two tokens": "/?token=" + token + "&token=" + token,
	} {
		if status, header, _ := gatewaytest.SendRaw(t, http.MethodGet, url+path, nil, nil); status != http.StatusUnauthorized || header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d, cookie %q, want 401 and none", name, status, header.Get("Set-Cookie"))
		}
	}
	status, header, _ := gatewaytest.SendRaw(t, http.MethodGet, url+"/?token="+token, nil, nil)
	cookie, err := http.ParseSetCookie(header.Get("Set-Cookie"))
	if status != http.StatusSeeOther || header.Get("Location") != "/" || err != nil {
		t.Fatalf("got %d to %q, cookie %v", status, header.Get("Location"), err)
	}
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || strings.Contains(cookie.Value, token) {
		t.Errorf("cookie %s", cookie)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Jar: jar}).Get(url + "/?token=" + token)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var index wire.Index
	if err := json.NewDecoder(answer.Body).Decode(&index); err != nil || answer.Request.URL.RawQuery != "" || len(index.Routes) < 20 {
		t.Errorf("a browser ends at %s with %+v, %v", answer.Request.URL, index, err)
	}
	own, foreign := url, "http://app.example.com"
	for _, c := range []struct {
		name, method string
		header       http.Header
		want         int
	}{
		{"a request of its own page", "GET", http.Header{}, 200},
		{"a typed address", "GET", http.Header{"Sec-Fetch-Site": {"none"}}, 200},
		{"a link from elsewhere", "GET", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}}, 200},
		{"an image in a page of another server on this host", "GET", http.Header{"Sec-Fetch-Site": {"same-site"}, "Sec-Fetch-Mode": {"no-cors"}}, 403},
		{"a request of an allowed origin", "GET", http.Header{"Origin": {foreign}}, 403},
		{"a change of its own page", "POST", http.Header{"Origin": {own}}, 201},
		{"a change without an origin", "POST", http.Header{}, 403},
		{"a change of an allowed origin", "POST", http.Header{"Origin": {foreign}}, 403},
		{"the cookie and an invalid one", "GET", http.Header{"Cookie": {"rolecall=x; rolecall=" + cookie.Value}}, 200},
		{"an invalid cookie", "GET", http.Header{"Cookie": {"rolecall=x"}}, 401},
		{"the token as a cookie", "GET", http.Header{"Cookie": {"rolecall=" + token}}, 401},
		{"the cookie as a token", "GET", gatewaytest.BearerHeader(cookie.Value), 401},
	} {
		if c.header.Get("Cookie") == "" {
			c.header.Set("Cookie", "rolecall="+cookie.Value)
		}
		if status, _, body := gatewaytest.SendRaw(t, c.method, url+"/api/v1/roles", c.header, strings.NewReader(`{"name":"made"}`)); status != c.want {
			t.Errorf("%s: %d %s, want %d", c.name, status, body, c.want)
		}
	}
	tokens.StartupToken()
	if status, _, _ := gatewaytest.SendRaw(t, http.MethodGet, url+"/api/v1/roles", gatewaytest.BearerHeader(token), nil); status != http.StatusUnauthorized {
		t.Errorf("after a new startup token was created: %d, want 401", status)
	}
}
