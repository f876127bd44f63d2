package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// waitingRole makes a role with a tool that waits, and says so on began, until
// release is closed.
func waitingRole(t *testing.T, h *house) (role org.Role, began, release chan struct{}) {
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
	h.group(t, "waiting", wait)
	return h.role(t, "waiter", "waiting"), began, release
}

// byUser gives the API for callers of a role whom the header User names.
func byUser(t *testing.T, h *house, role identity.RoleID, server *mcpserver.Server) *house {
	t.Helper()
	who := func(r *http.Request) (identity.Principal, error) {
		return identity.ByCaller(identity.User(r.Header.Get("User")), role), nil
	}
	handler, err := gateway.New(gateway.Config{Runtime: h.rt, Authenticate: who, MCP: server})
	if err != nil {
		t.Fatal(err)
	}
	return &house{rt: h.rt, store: h.store, handler: handler}
}

// A caller has so many calls under way, by the API and MCP together.
func TestACallerOfTheAPIHasSoManyCallsAtOnce(t *testing.T) {
	for name, few := range map[string]bool{"without MCP": false, "with MCP": true} {
		t.Run(name, func(t *testing.T) {
			operator := open(t, team)
			role, began, release := waitingRole(t, operator)
			var server *mcpserver.Server
			most := 64
			if few {
				most = 3
				var err error
				if server, err = mcpserver.New(mcpserver.Config{Runtime: operator.rt, Calls: most}); err != nil {
					t.Fatal(err)
				}
				defer server.Close()
			}
			h := byUser(t, operator, role.ID, server)
			ann, bob := http.Header{"User": {"ann"}}, http.Header{"User": {"bob"}}
			answers := make(chan int, most)
			for i := range most {
				path := []string{"/api/tool/wait/invoke", "/roles/waiter/api/tool/wait/invoke"}[i%2]
				go func() { answers <- h.send(t, "POST "+path, `{}`, ann).Code }()
				<-began
			}
			for _, path := range []string{"/api/tool/wait/invoke", "/roles/waiter/api/tool/wait/invoke", "/api/tool/nope/invoke"} {
				if w := h.send(t, "POST "+path, `{}`, ann); w.Code != http.StatusTooManyRequests || gjson.Get(w.Body.String(), "status").Str != "Too Many Requests" || !strings.Contains(gjson.Get(w.Body.String(), "error").Str, "at once") {
					t.Errorf("one too many at %s: %d %s", path, w.Code, w.Body)
				}
			}
			list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
			if w := h.send(t, "POST /mcp", list, ann); few && w.Code != http.StatusTooManyRequests {
				t.Errorf("over MCP: %d %s", w.Code, w.Body)
			}
			if w := h.send(t, "POST /mcp", list, bob); few && w.Code != http.StatusOK {
				t.Errorf("another caller over MCP: %d %s", w.Code, w.Body)
			}
			if w := h.send(t, "POST /api/tool/nope/invoke", `{}`, bob); w.Code != http.StatusNotFound {
				t.Errorf("another caller: %d %s", w.Code, w.Body)
			}
			close(release)
			for range most {
				if code := <-answers; code != http.StatusOK {
					t.Errorf("a call within the limit: %d", code)
				}
			}
			if w := h.send(t, "POST /api/tool/nope/invoke", `{}`, ann); w.Code != http.StatusNotFound {
				t.Errorf("when they have ended: %d %s", w.Code, w.Body)
			}
		})
	}
}
