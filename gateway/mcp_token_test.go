package gateway_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// upgradedConn is a client on a connection that was upgraded to lines.
type upgradedConn struct {
	net.Conn
	lines *bufio.Reader
}

func dialUpgrade(t *testing.T, address, token string) *upgradedConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	p := &upgradedConn{conn, bufio.NewReader(conn)}
	fmt.Fprintf(conn, "GET /roles/reader/mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", address, token, wire.MCPProtocol)
	answer, err := http.ReadResponse(p.lines, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%+v %v", answer, err)
	}
	p.ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	return p
}

// ask sends a request and returns the answer, or "" if the connection has
// ended.
func (p *upgradedConn) ask(line string) string {
	fmt.Fprintln(p, line)
	answer, _ := p.lines.ReadString('\n') // "" on an error
	return answer
}

// An upgraded connection ends when its token is revoked, expires or gets another
// role.
func TestMCP_ConnectionEndsWithToken(t *testing.T) {
	roleID := func(name string) identity.RoleID { return identity.RoleID(identity.DeriveID(name, "role")) }
	for why, end := range map[string]func(*auth.TokenStore, auth.Token, *atomic.Int64){
		"revoked": func(all *auth.TokenStore, _ auth.Token, _ *atomic.Int64) { _ = all.ReplaceTokens(nil) },
		"expired": func(_ *auth.TokenStore, _ auth.Token, hours *atomic.Int64) { hours.Store(2) },
		"changed role": func(all *auth.TokenStore, k auth.Token, _ *atomic.Int64) {
			k.Role = roleID("other")
			_ = all.ReplaceTokens([]auth.Token{k})
		},
	} {
		t.Run(why, func(t *testing.T) {
			f := newFixture(t, gatewaytest.TeamModel)
			set := toolgroups.SetOf(toolgroups.Workspace)
			for _, name := range []string{"reader", "other"} {
				if _, err := f.Runtime.CreateRole(t.Context(), tool.Call{ID: identity.CallID(name), By: identity.ByOperator("test")}, org.RoleSpec{Name: name, Prompt: "p", Use: &set}); err != nil {
					t.Fatal(err)
				}
			}
			token, known := gatewaytest.NewToken("ci", auth.Token{Scope: auth.ScopeRole, Role: roleID("reader"), Expires: gatewaytest.TestTime.Add(time.Hour)})
			var hours atomic.Int64
			now := func() time.Time { return gatewaytest.TestTime.Add(time.Duration(hours.Load()) * time.Hour) }
			all, err := auth.NewTokenStore(auth.TokenStoreConfig{Role: f.Runtime.Org().RoleByID, Now: now})
			if err != nil {
				t.Fatal(err)
			}
			if err := all.ReplaceTokens([]auth.Token{known}); err != nil {
				t.Fatal(err)
			}
			server, err := mcpserver.New(mcpserver.Config{Runtime: f.Runtime, Streaming: gateway.UntilShutdown})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = server.Close() })
			handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: all.Authenticate, MCP: server})
			if err != nil {
				t.Fatal(err)
			}
			c := dialUpgrade(t, strings.TrimPrefix(gatewaytest.ServeChecked(t, auth.HostCheck{Tokens: all}, handler), "http://"), token)
			const list = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_files","arguments":{}}}`
			if got := c.ask(list); !strings.Contains(got, `"result"`) {
				t.Fatalf("with a valid token: got %q", got)
			}
			end(all, known, &hours)
			if got := c.ask(list); strings.Contains(got, `"result"`) {
				t.Errorf("with a token that is %s: got %q", why, got)
			}
			if got := c.ask(list); got != "" {
				t.Errorf("the connection is still open: %q", got)
			}
		})
	}
}
