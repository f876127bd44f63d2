package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
)

// A sender has so many requests in a minute, whatever its token. It slows no other sender, and
// nothing limits the owner of the data directory.
func TestRequestRates_LimitEachSender(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	role := f.AddRole(t, "reader", "workspace", "org_management")
	_, ann := gatewaytest.NewToken("ann", auth.Token{Scope: auth.ScopeRole, Role: role.ID})
	_, bob := gatewaytest.NewToken("bob", auth.Token{Scope: auth.ScopeRole, Role: role.ID})
	_, ops := gatewaytest.NewToken("ops", auth.Token{Scope: auth.ScopeOperator})
	tokens := gatewaytest.NewTokens(t, f, ann, bob, ops)
	var most atomic.Int64
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: tokens.Authenticate, RequestsPerMinute: func() int { return int(most.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	send := func(h http.Handler, path, token string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	want := func(path, token string, status int) {
		t.Helper()
		if w := send(handler, path, token); w.Code != status {
			t.Errorf("%s of %q: %d %s, want %d", path, token, w.Code, w.Body, status)
		}
	}
	for range 10 {
		want("/", "rc_ann", http.StatusOK)
	}
	most.Store(3)
	for range 3 {
		want("/", "rc_ann", http.StatusOK)
	}
	limited := send(handler, "/", "rc_ann")
	seconds, err := strconv.Atoi(limited.Header().Get("Retry-After"))
	if e := gatewaytest.DecodeError(t, limited.Body.String()); limited.Code != http.StatusTooManyRequests || e.Code != errcode.RateLimited || err != nil || seconds < 1 || seconds > 20 {
		t.Errorf("the fourth request: %d %s, Retry-After %d", limited.Code, limited.Body, seconds)
	}
	want("/healthz", "rc_ann", http.StatusTooManyRequests)
	want("/", "rc_bob", http.StatusOK)
	want("/api/v1/roles", "rc_ops", http.StatusOK)
	for range 10 {
		want("/healthz", "", http.StatusOK)
		want("/", "rc_unknown", http.StatusUnauthorized)
		if w := send(auth.TrustLocalOwner(handler), "/", ""); w.Code != http.StatusOK {
			t.Errorf("the owner: %d %s", w.Code, w.Body)
		}
	}
	most.Store(0)
	want("/", "rc_ann", http.StatusOK)
}

// limitedMCP is a gateway with an MCP server that lets a caller send 10 requests a minute.
type limitedMCP struct {
	*gatewaytest.Fixture
	handler http.Handler
	tokens  *auth.TokenStore
	token   string // of the caller
}

func newLimitedMCP(t *testing.T) limitedMCP {
	t.Helper()
	f := newFixture(t, gatewaytest.TeamModel)
	role := f.AddRole(t, "reader", "workspace", "org_management")
	token, ann := gatewaytest.NewToken("ann", auth.Token{Scope: auth.ScopeRole, Role: role.ID})
	tokens := gatewaytest.NewTokens(t, f, ann)
	server, err := mcpserver.New(mcpserver.Config{Runtime: f.Runtime, Streaming: gateway.UntilShutdown})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: tokens.Authenticate, MCP: server, RequestsPerMinute: func() int { return 10 }})
	if err != nil {
		t.Fatal(err)
	}
	return limitedMCP{f, handler, tokens, token}
}

// Messages on a connection with MCP lines count as requests do.
func TestRequestRates_CountMessagesOfConnection(t *testing.T) {
	f := newLimitedMCP(t)
	c := dialUpgrade(t, strings.TrimPrefix(gatewaytest.ServeChecked(t, auth.HostCheck{Tokens: f.tokens}, f.handler), "http://"), f.token)
	answers := 0
	for strings.Contains(c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_files","arguments":{}}}`), `"result"`) {
		if answers++; answers > 10 {
			t.Fatal("messages are not limited")
		}
	}
	if answers < 4 {
		t.Errorf("only %d answers", answers)
	}
}

// What the server checks by itself while it carries out a request does not count.
func TestRequestRates_CountNoChecks(t *testing.T) {
	f := newLimitedMCP(t)
	c := dialUpgrade(t, strings.TrimPrefix(gatewaytest.ServeChecked(t, auth.HostCheck{Tokens: f.tokens}, f.handler), "http://"), f.token)
	for n := range 7 { // with the upgrade and initialize 9 of 10
		if got := c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask_organization","arguments":{"task":"x"}}}`); !strings.Contains(got, `"result"`) || strings.Contains(got, "no longer valid") {
			t.Fatalf("answer %d: %s", n+1, got)
		}
	}
}

// Each request of a batch counts. If one is too many, none of them is carried out.
func TestRequestRates_CountRequestsOfBatch(t *testing.T) {
	f := newLimitedMCP(t)
	post := func(requests int) *httptest.ResponseRecorder {
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_file","arguments":{"path":"a","content":"b"}}},{"jsonrpc":"2.0","method":"notifications/initialized"},`
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("["+strings.TrimSuffix(strings.Repeat(call, requests), ",")+"]"))
		r.Header.Set("Authorization", "Bearer "+f.token)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		return w
	}
	if w := post(6); w.Code != http.StatusOK || strings.Count(w.Body.String(), `"result"`) != 6 {
		t.Errorf("6 of 10: %d %s", w.Code, w.Body)
	}
	before := f.Runtime.JournalStore().LastSeq()
	if w := post(6); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"rate_limited"`) {
		t.Errorf("12 of 10: %d %s", w.Code, w.Body)
	}
	if after := f.Runtime.JournalStore().LastSeq(); after != before {
		t.Errorf("a part of the batch was carried out: %d events", after-before)
	}
}
