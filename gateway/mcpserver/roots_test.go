//lint:file-ignore SA1019 the SDK marks roots as deprecated; clients of all revisions but the newest have them

package mcpserver_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// rootsFixture serves the role files, whose callers work in dir. The directory has the
// folders a and b, and a file. Each folder has a file named like it.
type rootsFixture struct {
	*fixture
	dir, outside string
	warnings     *buffer.SyncBuffer
	session      *sdk.ClientSession
	client       *sdk.Client
}

func openRootsFixture(t *testing.T) *rootsFixture {
	t.Helper()
	fx := &rootsFixture{dir: t.TempDir(), outside: t.TempDir(), warnings: new(buffer.SyncBuffer)}
	var err error
	if fx.dir, err = filepath.EvalSymlinks(fx.dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(fx.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{fx.dir + "/top", fx.dir + "/a/in-a", fx.dir + "/b/in-b", fx.outside + "/secret"} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(fx.outside, filepath.Join(fx.dir, "link")); err != nil {
		t.Skip(err)
	}
	fx.fixture = fixtureConfig{config: mcpserver.Config{RootsTimeout: 50 * time.Millisecond, UserLog: slog.New(slog.NewTextHandler(fx.warnings, nil))}}.open(t)
	fx.role(t, "files", toolgroups.Workspace)
	fx.setWorkspace(t, fx.dir)
	return fx
}

func (fx *rootsFixture) setWorkspace(t *testing.T, dir string) {
	t.Helper()
	if err := fx.rt.ApplyConfig(runtime.OrgConfig{Workspaces: runtime.WorkspacePolicy{Default: runtime.Workspace{Path: dir}}}); err != nil {
		t.Fatal(err)
	}
}

// connectRoots connects a client with roots over stdio.
func (fx *rootsFixture) connectRoots(t *testing.T, version string, served bool, roots ...string) {
	t.Helper()
	p := fx.serveClient(t, mcpserver.StdioClient{Sender: operator, Role: "files", Roots: served})
	fx.client = sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	fx.client.AddRoots(rootList(roots)...)
	var err error
	fx.session, err = fx.client.Connect(t.Context(), &sdk.IOTransport{Reader: io.NopCloser(p.Reader), Writer: p.WriteCloser}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
}

func rootList(uris []string) (list []*sdk.Root) {
	for _, uri := range uris {
		list = append(list, &sdk.Root{URI: uri})
	}
	return list
}

// listed returns the names in the directory that the session works in.
func (fx *rootsFixture) listed(t *testing.T) string {
	t.Helper()
	got, err := fx.session.CallTool(t.Context(), &sdk.CallToolParams{Name: "list_files", Arguments: raw(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	return textOf(got)
}

// A session works in the first root that is in the workspace, else in the workspace. What is
// ignored is logged.
func TestRoots_FirstInWorkspace(t *testing.T) {
	fx := openRootsFixture(t)
	in := func(path string) string { return "file://" + fx.dir + path }
	for name, c := range map[string]struct {
		roots []string
		want  string
		logs  bool
	}{
		"none":             {nil, "top", false},
		"below":            {[]string{in("/a")}, "in-a", false},
		"itself":           {[]string{in("")}, "top", false},
		"first allowed":    {[]string{"file://" + fx.outside, in("/b")}, "in-b", true},
		"outside":          {[]string{"file://" + fx.outside}, "top", true},
		"above":            {[]string{"file://" + filepath.Dir(fx.dir), "file:///"}, "top", true},
		"dots leading out": {[]string{in("/a/../../"), in("/..%2f.."), in("/../" + filepath.Base(fx.outside))}, "top", true},
		"dots inside":      {[]string{in("/b/../a")}, "in-a", false},
		"link leading out": {[]string{in("/link")}, "top", true},
		"a file":           {[]string{in("/top")}, "top", true},
		"absent":           {[]string{in("/absent")}, "top", true},
		"other schemes":    {[]string{"https://example.com" + fx.dir + "/a", fx.dir + "/a", "file:a"}, "top", true},
		"another host":     {[]string{"file://example.com" + fx.dir + "/a"}, "top", true},
		"this host":        {[]string{"file://localhost" + fx.dir + "/a"}, "in-a", false},
		"malformed":        {[]string{"file://%zz", "", "file://" + fx.dir + "/a%00"}, "top", true},
	} {
		*fx.warnings = buffer.SyncBuffer{}
		fx.connectRoots(t, "2025-11-25", true, c.roots...)
		if got := fx.listed(t); !strings.Contains(got, c.want) || strings.Contains(got, "secret") {
			t.Errorf("%s: lists %s, want %s", name, got, c.want)
		}
		if got := fx.warnings.String(); c.logs != strings.Contains(got, "MCP roots are ignored") {
			t.Errorf("%s: logged %q", name, got)
		}
	}
}

// The task of ask_organization works in the root, too.
func TestRoots_HoldForTasks(t *testing.T) {
	fx := openRootsFixture(t)
	fx.setGroups(t, "files", toolgroups.Workspace, toolgroups.OrgManagement)
	fx.connectRoots(t, "2025-11-25", true, "file://"+fx.dir+"/a")
	if got, err := fx.session.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask_organization", Arguments: raw(`{"task":"x"}`)}); err != nil || got.IsError {
		t.Fatalf("%+v %v", got, err)
	}
	if list := fx.rt.Org().ListTasks(); len(list) != 1 || list[0].Workspace != fx.dir+"/a" {
		t.Errorf("got %+v", list)
	}
}

// Roots that change are read again. Where the workspace moves, a root outside of it counts no
// more.
func TestRoots_FollowChanges(t *testing.T) {
	fx := openRootsFixture(t)
	fx.connectRoots(t, "2025-11-25", true, "file://"+fx.dir+"/a")
	if got := fx.listed(t); !strings.Contains(got, "in-a") {
		t.Fatal(got)
	}
	fx.client.RemoveRoots("file://" + fx.dir + "/a")
	fx.client.AddRoots(rootList([]string{"file://" + fx.dir + "/b"})...)
	if err := fx.session.Ping(t.Context(), nil); err != nil { // the notifications come before
		t.Fatal(err)
	}
	if got := fx.listed(t); !strings.Contains(got, "in-b") {
		t.Error(got)
	}
	fx.setWorkspace(t, fx.dir+"/a")
	if got := fx.listed(t); !strings.Contains(got, "in-a") {
		t.Errorf("after the workspace has moved: %s", got)
	}
}

// Roots are ignored unless they are served, over HTTP, and in protocol versions in which a
// server sends no requests.
func TestRoots_IgnoredElsewhere(t *testing.T) {
	fx := openRootsFixture(t)
	fx.connectRoots(t, "2025-11-25", false, "file://"+fx.dir+"/a")
	if got := fx.listed(t); !strings.Contains(got, "top") {
		t.Errorf("not served: %s", got)
	}
	fx.connectRoots(t, "2026-07-28", true, "file://"+fx.dir+"/a")
	if got := fx.listed(t); !strings.Contains(got, "top") {
		t.Errorf("without sessions: %s", got)
	}
	fx.client = sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	fx.client.AddRoots(rootList([]string{"file://" + fx.dir + "/a"})...)
	fx.session = fx.connect(t, "operator", "/roles/files/mcp", "2025-11-25", nil)
	if got := fx.listed(t); !strings.Contains(got, "top") {
		t.Errorf("over HTTP: %s", got)
	}
}

// A client that never answers roots/list, or answers with more than is read, delays its calls
// once and works in the workspace.
func TestRoots_BoundedAnswer(t *testing.T) {
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprintf(`{"uri":"file:///r%d"}`, i)
	}
	for name, answer := range map[string]string{
		"none":   "",
		"error":  `"error":{"code":-32601,"message":"no roots"}`,
		"10,000": `"result":{"roots":[` + strings.Join(many, ",") + `]}`,
		"1,000":  `"result":{"roots":[` + strings.Join(many[:1000], ",") + `]}`,
		"null":   `"result":{"roots":[null]}`,
	} {
		t.Run(name, func(t *testing.T) {
			fx := openRootsFixture(t)
			p := fx.serveClient(t, mcpserver.StdioClient{Sender: operator, Role: "files", Roots: true})
			out := bufio.NewReaderSize(p.Reader, 1<<20)
			send := func(line string) {
				if _, err := io.WriteString(p.WriteCloser, line+"\n"); err != nil {
					t.Error(err)
				}
			}
			next := func(has string) {
				for {
					line, err := out.ReadString('\n')
					if err != nil {
						t.Fatalf("want %s: %v", has, err)
					}
					if strings.Contains(line, has) {
						return
					}
				}
			}
			send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"1"}}}`)
			next(`"protocolVersion"`)
			send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			send(`{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"list_files","arguments":{}}}`)
			next(`"method":"roots/list"`)
			if answer != "" {
				send(`{"jsonrpc":"2.0","id":1,` + answer + `}`)
			}
			next(`top`)
			send(`{"jsonrpc":"2.0","id":"again","method":"tools/call","params":{"name":"list_files","arguments":{}}}`)
			next(`"id":"again"`)
			if fx.warnings.String() == "" {
				t.Error("nothing is logged")
			}
		})
	}
}
