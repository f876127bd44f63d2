package toolboxapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/tool"
)

// addWaitingRole registers a role and a tool that sends on began and waits
// until release is closed.
func addWaitingRole(t *testing.T, f *gatewaytest.Fixture) (role org.Role, began, release chan struct{}) {
	t.Helper()
	began, release = make(chan struct{}), make(chan struct{})
	wait, err := tool.New("wait", "waits", func(context.Context, struct{}) (string, error) {
		began <- struct{}{}
		<-release
		return "waited", nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.AddGroup(t, "waiting", wait)
	return f.AddRole(t, "waiter", "waiting"), began, release
}

// asUsers returns a fixture for callers of a role; the header User names the
// caller.
func asUsers(t *testing.T, f *gatewaytest.Fixture, role identity.RoleID, server *mcpserver.Server) *gatewaytest.Fixture {
	t.Helper()
	authenticate := func(r *http.Request) (identity.Principal, error) {
		return identity.ByCaller(identity.UserName(r.Header.Get("User")), role), nil
	}
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: authenticate, MCP: server})
	if err != nil {
		t.Fatal(err)
	}
	return &gatewaytest.Fixture{Runtime: f.Runtime, Store: f.Store, Handler: handler}
}

// The limit of concurrent calls holds for the API and MCP together.
func TestToolbox_LimitsConcurrentCalls(t *testing.T) {
	for name, few := range map[string]bool{"without MCP": false, "with MCP": true} {
		t.Run(name, func(t *testing.T) {
			operator := gatewaytest.NewFixture(t, persisttest.Open(t), gatewaytest.ModelFunc(gatewaytest.TeamModel))
			role, began, release := addWaitingRole(t, operator)
			var server *mcpserver.Server
			most := 64
			if few {
				most = 3
				var err error
				if server, err = mcpserver.New(mcpserver.Config{Runtime: operator.Runtime, MaxCalls: most}); err != nil {
					t.Fatal(err)
				}
				defer server.Close()
			}
			f := asUsers(t, operator, role.ID, server)
			ann, bob := http.Header{"User": {"ann"}}, http.Header{"User": {"bob"}}
			answers := make(chan int, most)
			for i := range most {
				path := []string{"/api/tool/wait/invoke", "/roles/waiter/api/tool/wait/invoke"}[i%2]
				go func() { answers <- f.SendRequest(t, "POST "+path, `{}`, ann).Code }()
				<-began
			}
			for _, path := range []string{"/api/tool/wait/invoke", "/roles/waiter/api/tool/wait/invoke", "/api/tool/nope/invoke"} {
				if w := f.SendRequest(t, "POST "+path, `{}`, ann); w.Code != http.StatusTooManyRequests || gjson.Get(w.Body.String(), "status").Str != "Too Many Requests" || !strings.Contains(gjson.Get(w.Body.String(), "error").Str, "at once") {
					t.Errorf("over the limit at %s: %d %s", path, w.Code, w.Body)
				}
			}
			list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
			if w := f.SendRequest(t, "POST /mcp", list, ann); few && w.Code != http.StatusTooManyRequests {
				t.Errorf("over MCP: %d %s", w.Code, w.Body)
			}
			if w := f.SendRequest(t, "POST /mcp", list, bob); few && w.Code != http.StatusOK {
				t.Errorf("another caller over MCP: %d %s", w.Code, w.Body)
			}
			if w := f.SendRequest(t, "POST /api/tool/nope/invoke", `{}`, bob); w.Code != http.StatusNotFound {
				t.Errorf("another caller: %d %s", w.Code, w.Body)
			}
			close(release)
			for range most {
				if code := <-answers; code != http.StatusOK {
					t.Errorf("a call within the limit: %d", code)
				}
			}
			if w := f.SendRequest(t, "POST /api/tool/nope/invoke", `{}`, ann); w.Code != http.StatusNotFound {
				t.Errorf("after the calls have ended: %d %s", w.Code, w.Body)
			}
		})
	}
}
