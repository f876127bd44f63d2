package mcpserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
)

// stdioPipes are the client's ends of a stdio connection.
type stdioPipes struct {
	io.Reader
	io.WriteCloser
	done chan error         // receives the result of ServeStdio
	stop context.CancelFunc // ends ServeStdio
}

// serveStdio serves a sender in a role on pipes.
func (f *fixture) serveStdio(t testing.TB, sender identity.Principal, role string) *stdioPipes {
	t.Helper()
	return f.serveClient(t, mcpserver.StdioClient{Sender: sender, Role: role})
}

// serveClient starts ServeStdio on pipes.
func (f *fixture) serveClient(t testing.TB, c mcpserver.StdioClient) *stdioPipes {
	t.Helper()
	in, write := io.Pipe()
	read, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	p := &stdioPipes{read, write, make(chan error, 1), cancel}
	go func() {
		p.done <- f.server.ServeStdio(ctx, in, out, c)
		out.Close()
	}()
	t.Cleanup(func() {
		cancel()
		in.Close()
		read.Close()
	})
	return p
}

func (p *stdioPipes) client(t testing.TB, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(),
		&sdk.IOTransport{Reader: io.NopCloser(p.Reader), Writer: p.WriteCloser}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func TestServeStdio_ServesToolsOfRole(t *testing.T) {
	f := openFixture(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			p := f.serveStdio(t, operator, "tester")
			session := p.client(t, version, nil)
			if got := toolNames(t, session); got != testerTools {
				t.Errorf("%s, want %s", got, testerTools)
			}
			got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "say", Arguments: raw(`{"text":"x"}`)})
			if err != nil || textOf(got) != "x" {
				t.Errorf("%+v %v", got, err)
			}
			if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "run_command"}); err == nil || !strings.Contains(err.Error(), "Unknown tool: run_command") {
				t.Errorf("a tool of another role: %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { _, _ = session.CallTool(ctx, &sdk.CallToolParams{Name: "wait"}) }()
			waitFor(t, "the tool starts", f.probe.began)
			cancel()
			waitFor(t, "the tool is cancelled", f.probe.ended)
			p.WriteCloser.Close()
			if err := <-p.done; err != nil {
				t.Errorf("at the end of the input: %v", err)
			}
		})
	}
}

// The id of a call in progress cannot be used again. The second call takes none of the sender's calls.
func TestServeStdio_RejectsIDInProgress(t *testing.T) {
	f := openFixture(t)
	p := f.serveStdio(t, operator, "tester")
	defer time.AfterFunc(30*time.Second, func() { p.Reader.(io.Closer).Close() }).Stop() // the SDK does not answer a second request
	answers := bufio.NewReader(p.Reader)
	exchange := func(message string) string {
		_, _ = io.WriteString(p.WriteCloser, message+"\n")
		line, err := answers.ReadString('\n')
		if err != nil {
			t.Error(err)
		}
		return line
	}
	exchange(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	_, _ = io.WriteString(p.WriteCloser, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}`+"\n")
	waitFor(t, "the tool starts", f.probe.began)
	for range 70 {
		if got := exchange(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"}}}`); !strings.Contains(got, `"code":-32600`) || !strings.Contains(got, `"id":1`) || !strings.Contains(got, "already in progress") {
			t.Fatalf("the id again: %q", got)
		}
	}
	if got := exchange(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"}}}`); !strings.Contains(got, `"result"`) {
		t.Errorf("another call: %q", got)
	}
}

func TestServeStdio_NotifiesToolListChanged(t *testing.T) {
	f := openFixture(t)
	notified := make(chan struct{}, 16)
	p := f.serveStdio(t, operator, "tester")
	session := p.client(t, "2025-11-25", &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { notified <- struct{}{} }})
	if got := toolNames(t, session); got != testerTools {
		t.Fatal(got)
	}
	f.setGroups(t, "tester", "console")
	waitFor(t, "the change is notified", notified)
	if got := toolNames(t, session); got != f.groupTools("console") {
		t.Error(got)
	}
	if _, err := f.rt.DeleteRole(operator, f.roles["tester"], false); err != nil {
		t.Fatal(err)
	}
	if err := <-p.done; err != nil {
		t.Errorf("at the end of the role: %v", err)
	}
}

func TestServeStdio_RejectsUnknownRole(t *testing.T) {
	f := openFixture(t)
	for _, c := range []struct {
		sender identity.Principal
		role   string
	}{{operator, "missing"}, {identity.ByCaller("ann", f.roles["tester"]), "clerk"}} {
		err := f.server.ServeStdio(t.Context(), strings.NewReader(""), io.Discard, mcpserver.StdioClient{Sender: c.sender, Role: c.role})
		if errcode.CodeOf(err) != errcode.RoleNotFound {
			t.Errorf("%s as %s: %v", c.sender, c.role, err)
		}
	}
}

func TestServeStdio_ContinuesAfterBadLines(t *testing.T) {
	f := fixtureConfig{config: mcpserver.Config{MaxCalls: 2}}.open(t)
	p := f.serveStdio(t, operator, "tester")
	out := bufio.NewReaderSize(p.Reader, 1<<20)
	say := func(line, has string) {
		t.Helper()
		if _, err := io.WriteString(p.WriteCloser, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if has == "" {
			return
		}
		got, err := out.ReadString('\n')
		if err != nil || !strings.Contains(got, has) {
			t.Errorf("%.80s: %s %v, want %q", line, got, err, has)
		}
	}
	say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, `"protocolVersion":"2025-11-25"`)
	say(`garbage`, "-32700")
	say("", "")
	say(strings.Repeat("[", 1000), "-32600")
	say(`{"x":`+strings.Repeat("[", 1000), "-32700")
	say(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "-32600")
	say(`{"id":1}`, "-32600")
	say(`"`+strings.Repeat("a", 9<<20)+`"`, "-32600")
	for i := range 2 {
		say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait"}}`, i), "")
		waitFor(t, "the tool starts", f.probe.began)
	}
	say(`{"jsonrpc":"2.0","id":"third","method":"ping"}`, `"id":"third","error":{"code":-32000`)
	for i := range 2 {
		say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i), fmt.Sprintf(`"id":%d`, i))
	}
	say(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"}}}`, `"text":"x"`)
}

// Calls in progress at the end of the input are answered.
func TestServeStdio_AnswersAfterEndOfInput(t *testing.T) {
	f := openFixture(t)
	var out strings.Builder
	in := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"said"}}}
` + wire.MCPEndOfInput + "\ninput after the end is not read\n"
	if err := f.server.ServeStdio(t.Context(), strings.NewReader(in), &out, mcpserver.StdioClient{Sender: operator, Role: "tester"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"said"`) || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%s", out.String())
	}
}

// A sender has one limit for its calls, however many connections it opens.
func TestStdio_ConnectionsShareLimitOfSender(t *testing.T) {
	f := fixtureConfig{config: mcpserver.Config{MaxCalls: 2}}.open(t)
	connect := func() (*stdioPipes, func(line string)) {
		p := f.serveStdio(t, operator, "tester")
		return p, func(line string) {
			t.Helper()
			if _, err := io.WriteString(p, line+"\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := func(p *stdioPipes) string {
		t.Helper()
		line, err := bufio.NewReader(p).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	const begin = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	first, say := connect()
	say(begin)
	read(first)
	for i := range 2 {
		say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait","arguments":{}}}`, i+1))
		waitFor(t, "a call", f.probe.began)
	}
	second, sayThere := connect()
	sayThere(begin)
	if got := read(second); !strings.Contains(got, "more than 2 requests at once") {
		t.Errorf("on another connection: %s", got)
	}
	if got := f.post(t, "operator", "/roles/tester/mcp", begin, nil); got.status != http.StatusTooManyRequests {
		t.Errorf("over HTTP: %d %s", got.status, got.body)
	}
	for i := range 2 {
		say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i+1))
		read(first)
	}
	first.Close()
	if err := <-first.done; err != nil {
		t.Error(err)
	}
	sayThere(begin)
	if got := read(second); !strings.Contains(got, "serverInfo") {
		t.Errorf("after the calls have ended: %s", got)
	}
}
