package gateway_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// mcpFixture serves MCP on loopback and on a socket. The header User
// authenticates a request as that caller in the role reader; other requests are
// the operator's.
type mcpFixture struct {
	*gatewaytest.Fixture
	url, dir string
	shutdown func() // stops both servers and waits for them
}

func newMCPFixture(t *testing.T) *mcpFixture {
	t.Helper()
	f := &mcpFixture{Fixture: newFixture(t, gatewaytest.TeamModel), dir: t.TempDir()}
	set := toolgroups.SetOf(toolgroups.Workspace)
	role, err := f.Runtime.CreateRole(t.Context(), tool.Call{ID: "role", By: identity.ByOperator("test")}, org.RoleSpec{Name: "reader", Prompt: "p", Use: &set})
	if err != nil {
		t.Fatal(err)
	}
	server, err := mcpserver.New(mcpserver.Config{Runtime: f.Runtime, Streaming: gateway.UntilShutdown})
	if err != nil {
		t.Fatal(err)
	}
	authenticate := func(r *http.Request) (identity.Principal, error) {
		if user := r.Header.Get("User"); user != "" {
			return identity.ByCaller(identity.UserName(user), role.ID), nil
		}
		return identity.ByOperator("operator"), nil
	}
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: authenticate, MCP: server})
	if err != nil {
		t.Fatal(err)
	}
	f.serve(t, handler)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// serve serves on loopback and on the socket until shutdown.
func (f *mcpFixture) serve(t *testing.T, handler http.Handler) {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket, err := gateway.ListenUnix(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- gateway.Serve(ctx, tcp, handler, nil) }()
	go func() { ended <- gateway.Serve(ctx, socket, auth.TrustLocalOwner(handler), nil) }()
	f.url = "http://" + tcp.Addr().String()
	down := false
	f.shutdown = func() {
		if down {
			return
		}
		down = true
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(f.shutdown)
}

// userTransport sends requests as a user.
type userTransport string

func (u userTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User", string(u))
	return http.DefaultTransport.RoundTrip(r)
}

func TestMCP_ServesRoutes(t *testing.T) {
	f := newMCPFixture(t)
	for _, path := range []string{"/mcp", "/mcp/workspace", "/roles/reader/mcp"} {
		c := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, nil)
		session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: f.url + path, HTTPClient: &http.Client{Transport: userTransport("ann")}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		list, err := session.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 4 {
			t.Errorf("%s: %+v %v", path, list, err)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
	for path, code := range map[string]errcode.Code{"/mcp": errcode.InvalidArguments, "/roles/nobody/mcp": errcode.RoleNotFound} {
		got, err := http.Post(f.url+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(got.Body)
		got.Body.Close()
		if !strings.Contains(string(body), `"code":"`+string(code)+`"`) {
			t.Errorf("the operator at %s: %d %s", path, got.StatusCode, body)
		}
	}
}

// Open streams of sessions do not delay the shutdown of the gateway.
func TestMCP_StreamsEndOnShutdown(t *testing.T) {
	f := newMCPFixture(t)
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		c := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {}})
		session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: f.url + "/mcp", MaxRetries: -1, HTTPClient: &http.Client{Transport: userTransport("ann")}}, &sdk.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
	}
	began := time.Now()
	f.shutdown()
	if took := time.Since(began); took >= 5*time.Second { // shutdownTimeout
		t.Errorf("the streams were closed by force, after %v", took)
	}
}

func TestClientMCP_RelaysOverSocket(t *testing.T) {
	f := newMCPFixture(t)
	c, err := client.Dial(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.ServeMCP(t.Context(), "nobody", "", strings.NewReader(""), io.Discard); errcode.CodeOf(err) != errcode.RoleNotFound {
		t.Errorf("an unknown role: %v", err)
	}
	in, write := io.Pipe()
	read, out := io.Pipe()
	carried := make(chan error, 1)
	go func() {
		carried <- c.ServeMCP(t.Context(), "reader", "", in, out)
		out.Close()
	}()
	hello := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	if _, err := io.WriteString(write, hello+"\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(read)
	if !lines.Scan() || !strings.Contains(lines.Text(), `"serverInfo"`) {
		t.Fatalf("answered %s %v", lines.Text(), lines.Err())
	}
	f.shutdown()
	if err := <-carried; errcode.CodeOf(err) != errcode.ToolUnavailable {
		t.Errorf("the gateway ended before the input: %v", err)
	}
	write.Close()
}

func TestClientMCP_EndsWithInput(t *testing.T) {
	f := newMCPFixture(t)
	c, err := client.Dial(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var out strings.Builder
	in := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","id":1,"method":"tools/list"}` // without a final newline
	if err := c.ServeMCP(t.Context(), "reader", "", strings.NewReader(in), &out); err != nil || !strings.Contains(out.String(), `"read_file"`) {
		t.Errorf("%s %v", out.String(), err)
	}
	if err := client.NewLocal(f.Handler).ServeMCP(t.Context(), "reader", "", strings.NewReader(""), io.Discard); err != client.ErrNotServed {
		t.Errorf("in process: %v", err)
	}
}

// A client that expects a workspace is connected only to a process whose default it is, and
// only through the socket. Its roots then count.
func TestClientMCP_Workspace(t *testing.T) {
	f := newMCPFixture(t)
	c, err := client.Dial(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ws := t.TempDir()
	serve := func(workspace string) errcode.Code {
		return errcode.CodeOf(c.ServeMCP(t.Context(), "reader", workspace, strings.NewReader(""), io.Discard))
	}
	if got := serve(ws); got != errcode.Conflict {
		t.Errorf("without a default workspace: %q", got)
	}
	dir, err := f.Runtime.ResolveWorkspace(ws)
	if err != nil {
		t.Fatal(err)
	}
	policy := runtime.WorkspacePolicy{Default: runtime.Workspace{Path: dir, ReadOnly: true}}
	if err := f.Runtime.ApplyConfig(runtime.OrgConfig{Workspaces: policy, KeepRoles: true}); err != nil {
		t.Fatal(err)
	}
	for workspace, want := range map[string]errcode.Code{"": "", ws + ":ro": "", ws: errcode.Conflict, ws + "/x:ro": errcode.Conflict, "/:ro": errcode.Conflict, "%": errcode.Conflict} {
		if got := serve(workspace); got != want {
			t.Errorf("%q: %q, want %q", workspace, got, want)
		}
	}
	for _, user := range []string{"", "ann"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/roles/reader/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"rolecall-mcp"}, "Rolecall-Workspace": {url.QueryEscape(ws + ":ro")}, "User": {user}}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("user %q over TCP: %d", user, answer.StatusCode)
		}
	}
}
