package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// tokenHandler returns the handler of an API with MCP, and its tokens: one of an operator,
// and one in a role that may use all groups.
func tokenHandler(t *testing.T, f *gatewaytest.Fixture) (handler http.Handler, all *auth.TokenStore, operator, boss string) {
	t.Helper()
	use := toolgroups.AllGroups()
	role, err := f.Runtime.CreateRole(t.Context(), tool.Call{By: identity.ByOperator("test")}, org.RoleSpec{Name: "boss", Use: &use, Grant: &use})
	if err != nil {
		t.Fatal(err)
	}
	operator, known := gatewaytest.NewToken("ops", auth.Token{Scope: auth.ScopeOperator})
	boss, held := gatewaytest.NewToken("ann", auth.Token{Scope: auth.ScopeRole, Role: role.ID})
	all = gatewaytest.NewTokens(t, f, known, held)
	server, err := mcpserver.New(mcpserver.Config{Runtime: f.Runtime, Streaming: gateway.UntilShutdown})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	handler, err = gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: all.Authenticate, MCP: server, StartTask: f.Runtime.StartTask})
	if err != nil {
		t.Fatal(err)
	}
	return handler, all, operator, boss
}

// postJSON returns a request with a token, which an MCP client would send like this.
func postJSON(t *testing.T, path, token string, body io.Reader) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, body)
	r.Header = gatewaytest.BearerHeader(token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	return r
}

// A request whose token is removed while its body arrives has no effect.
func TestRequest_TokenRemovedBeforeEndOfBody(t *testing.T) {
	for path, body := range map[string]string{
		"/api/v1/roles": `{"name":"late"}`,
		"/api/v1/tasks": `{"text":"late"}`,
		"/roles/boss/api/tool/create_role/invoke": `{"name":"late","rolePrompt":"p","toolGroups":[]}`,
		"/roles/boss/mcp":                         `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"console_print","arguments":{"text":"late"}}}`,
	} {
		for _, removed := range []bool{false, true} {
			f := newFixture(t, gatewaytest.TeamModel)
			handler, all, operator, _ := tokenHandler(t, f)
			before := f.Runtime.JournalStore().LastSeq()
			in, out := io.Pipe()
			w, answered := httptest.NewRecorder(), make(chan struct{})
			go func() {
				defer close(answered)
				handler.ServeHTTP(w, postJSON(t, path, operator, in))
			}()
			if _, err := io.WriteString(out, body[:1]); err != nil { // it is read once the sender is admitted
				t.Fatal(err)
			}
			if removed {
				if err := all.ReplaceTokens(nil); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := io.WriteString(out, body[1:]); err != nil {
				t.Fatal(err)
			}
			out.Close()
			<-answered
			if changed := f.Runtime.JournalStore().LastSeq() != before; changed == removed || (w.Code == http.StatusUnauthorized) != removed {
				t.Errorf("%s, token removed %t: changed %t, %d %s", path, removed, changed, w.Code, w.Body)
			}
		}
	}
}

// A call of ask_organization whose token is removed while the task runs gets neither the
// result nor the progress.
func TestMCP_AskEndsWithToken(t *testing.T) {
	for _, removed := range []bool{false, true} {
		m, release := blockedTeamModel()
		f := newFixture(t, m)
		handler, all, _, boss := tokenHandler(t, f)
		w, answered := httptest.NewRecorder(), make(chan struct{})
		go func() {
			defer close(answered)
			handler.ServeHTTP(w, postJSON(t, "/mcp", boss, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask_organization","arguments":{"task":"x"},"_meta":{"progressToken":1}}}`)))
		}()
		for e, err := range f.Runtime.JournalStore().FollowEvents(t.Context(), 0, true) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Body != nil && e.Body.EventType() == "task_started" {
				break
			}
		}
		if removed {
			if err := all.ReplaceTokens(nil); err != nil {
				t.Fatal(err)
			}
		}
		close(release)
		<-answered
		if got := w.Body.String(); strings.Contains(got, "unauthenticated") != removed || strings.Contains(got, `"isError":true`) != removed {
			t.Errorf("token removed %t: %s", removed, got)
		} else if more := strings.Contains(got, "calls create_role"); more == removed {
			t.Errorf("token removed %t: progress after it %t: %s", removed, more, got)
		}
	}
}
