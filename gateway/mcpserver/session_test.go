package mcpserver_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/mcpserver"
)

func TestSession_LimitsSessionsPerSender(t *testing.T) {
	f := fixtureConfig{config: mcpserver.Config{Sessions: 3}}.open(t)
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	other := f.initialize(t, "bob@tester", "/mcp", nil)
	var ids []string
	for range 5 {
		ids = append(ids, f.initialize(t, "ann@tester", "/mcp", nil))
	}
	for i, id := range append(ids, other) {
		want := http.StatusOK
		sender := "ann@tester"
		switch {
		case i < 2: // ended to make room
			want = http.StatusNotFound
		case id == other:
			sender = "bob@tester"
		}
		if got := f.post(t, sender, "/mcp", list, map[string]string{"Mcp-Session-Id": id}); got.status != want {
			t.Errorf("session %d: %d %s, want %d", i, got.status, got.body, want)
		}
	}
}

func TestSession_EndsWhenIdle(t *testing.T) {
	f := fixtureConfig{config: mcpserver.Config{SessionTimeout: time.Millisecond}}.open(t)
	id := f.initialize(t, "ann@tester", "/mcp", nil)
	for {
		got := f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": id})
		if got.status == http.StatusNotFound {
			return
		}
	}
}

func TestSession_BoundToSender(t *testing.T) {
	f := openFixture(t)
	id := f.initialize(t, "ann@tester", "/mcp", nil)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"}}}`
	if got := f.post(t, "ann@tester", "/mcp", call, map[string]string{"Mcp-Session-Id": id}); got.status != http.StatusOK {
		t.Fatalf("its sender: %d %s", got.status, got.body)
	}
	unknown := f.post(t, "bob@tester", "/mcp", call, map[string]string{"Mcp-Session-Id": "no-such-session"})
	for name, c := range map[string]struct{ sender, path string }{
		"another user":                    {"bob@tester", "/mcp"},
		"another role":                    {"ann@boss", "/mcp"},
		"the operator":                    {"operator", "/roles/tester/mcp"},
		"at a group of the role":          {"ann@tester", "/mcp/probe"},
		"another user at the role's path": {"eve@tester", "/roles/tester/mcp"},
	} {
		for _, body := range []string{call, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`} {
			got := f.post(t, c.sender, c.path, body, map[string]string{"Mcp-Session-Id": id})
			if got.status != unknown.status || !strings.Contains(got.body, "there is no such session") {
				t.Errorf("%s: %d %s, want what an unknown session gets: %d %s", name, got.status, got.body, unknown.status, unknown.body)
			}
		}
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			r, _ := http.NewRequestWithContext(t.Context(), method, f.url+c.path, nil)
			if got := f.send(t, c.sender, r, map[string]string{"Mcp-Session-Id": id}); got.status != http.StatusNotFound {
				t.Errorf("%s, %s: %d %s", name, method, got.status, got.body)
			}
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, f.url+"/mcp", nil)
	if got := f.send(t, "ann@tester", r, map[string]string{"Mcp-Session-Id": id}); got.status != http.StatusNoContent {
		t.Errorf("its sender ends it: %d %s", got.status, got.body)
	}
	if got := f.post(t, "ann@tester", "/mcp", call, map[string]string{"Mcp-Session-Id": id}); got.status != http.StatusNotFound {
		t.Errorf("after its end: %d %s", got.status, got.body)
	}
}

func TestSession_NotifiesToolListChanged(t *testing.T) {
	f := openFixture(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			f.setGroups(t, "tester", "probe")
			notified := make(chan struct{}, 16)
			session := f.connect(t, "ann@tester", "/mcp", version, &sdk.ClientOptions{
				ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { notified <- struct{}{} },
			})
			if got := toolNames(t, session); got != testerTools {
				t.Fatal(got)
			}
			for { // the stream may open only after the first change
				f.setGroups(t, "tester", "console")
				if got := toolNames(t, session); got != f.groupTools("console") {
					t.Errorf("after the change: %s", got)
				}
				if receivedSoon(notified) {
					break
				}
				f.setGroups(t, "tester", "probe")
			}
			var gone *jsonrpc.Error
			if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "say", Arguments: raw(`{"text":"x"}`)}); !errors.As(err, &gone) || gone.Code != jsonrpc.CodeInvalidParams || gone.Message != "Unknown tool: say" {
				t.Errorf("a revoked tool: %v", err)
			}
		})
	}
}

func TestSession_EndsWithRole(t *testing.T) {
	f := openFixture(t)
	id := f.initialize(t, "operator", "/roles/clerk/mcp", nil)
	if _, err := f.rt.DeleteRole(operator, f.roles["clerk"], false); err != nil {
		t.Fatal(err)
	}
	got := f.post(t, "operator", "/roles/clerk/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": id})
	if got.status != http.StatusNotFound || !strings.Contains(got.body, string(errcode.RoleNotFound)) {
		t.Errorf("%d %s", got.status, got.body)
	}
	f.role(t, "clerk", "console") // a new role with the same name
	got = f.post(t, "operator", "/roles/clerk/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": id})
	if got.status != http.StatusNotFound || !strings.Contains(got.body, "no such session") {
		t.Errorf("the session of the role that was deleted: %d %s", got.status, got.body)
	}
}

func TestSession_OnlySenderCancelsCall(t *testing.T) {
	f := openFixture(t)
	mine, other := f.initialize(t, "ann@tester", "/mcp", nil), f.initialize(t, "bob@tester", "/mcp", nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait"}}`, map[string]string{"Mcp-Session-Id": mine})
	}()
	waitFor(t, "the tool starts", f.probe.began)
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"enough"}}`
	f.post(t, "bob@tester", "/mcp", cancel, map[string]string{"Mcp-Session-Id": other})
	if got := f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"}}}`, map[string]string{"Mcp-Session-Id": mine}); got.status != http.StatusBadRequest {
		t.Errorf("a duplicate id: %d %s", got.status, got.body)
	}
	if got := f.post(t, "ann@tester", "/mcp", cancel, map[string]string{"Mcp-Session-Id": mine}); got.status != http.StatusAccepted {
		t.Errorf("cancelled: %d %s", got.status, got.body)
	}
	waitFor(t, "the tool is cancelled", f.probe.ended)
	waitFor(t, "the request ends", done)
}
