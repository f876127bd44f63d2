package mcpserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
)

// pair is the two ends of stdio.
type pair struct {
	io.Reader
	io.WriteCloser
	over chan error // of Talk
}

// talk has the server talk with the caller of the reader and writer it gives.
func (h *house) talk(t testing.TB, sender identity.Principal, role string) *pair {
	t.Helper()
	in, write := io.Pipe()
	read, out := io.Pipe()
	p := &pair{read, write, make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		p.over <- h.mcp.ServeStdio(ctx, in, out, sender, role)
		out.Close()
	}()
	t.Cleanup(func() {
		cancel()
		in.Close()
		read.Close()
	})
	return p
}

func (p *pair) client(t testing.TB, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(),
		&sdk.IOTransport{Reader: io.NopCloser(p.Reader), Writer: p.WriteCloser}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func TestTheToolsOfARoleOnLines(t *testing.T) {
	h := open(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			p := h.talk(t, operator, "tester")
			session := p.client(t, version, nil)
			if got := names(t, session); got != testerTools {
				t.Errorf("%s, want %s", got, testerTools)
			}
			got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "say", Arguments: raw(`{"text":"x"}`)})
			if err != nil || said(got) != "x" {
				t.Errorf("%+v %v", got, err)
			}
			if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "run_command"}); err == nil || !strings.Contains(err.Error(), "Unknown tool: run_command") {
				t.Errorf("another's tool: %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { _, _ = session.CallTool(ctx, &sdk.CallToolParams{Name: "wait"}) }()
			soon(t, "the tool begins", h.probe.began)
			cancel()
			soon(t, "the tool is cancelled", h.probe.ended)
			p.WriteCloser.Close()
			if err := <-p.over; err != nil {
				t.Errorf("at the end of the input: %v", err)
			}
		})
	}
}

func TestOnLinesClientsAreTold(t *testing.T) {
	h := open(t)
	told := make(chan struct{}, 16)
	p := h.talk(t, operator, "tester")
	session := p.client(t, "2025-11-25", &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { told <- struct{}{} }})
	if got := names(t, session); got != testerTools {
		t.Fatal(got)
	}
	h.give(t, "tester", "console")
	soon(t, "the change is told", told)
	if got := names(t, session); got != "console_print" {
		t.Error(got)
	}
	if _, err := h.rt.DeleteRole(operator, h.roles["tester"], false); err != nil {
		t.Fatal(err)
	}
	if err := <-p.over; err != nil {
		t.Errorf("at the end of the role: %v", err)
	}
}

func TestARoleThatIsNotThereHasNoLines(t *testing.T) {
	h := open(t)
	for _, c := range []struct {
		sender identity.Principal
		role   string
	}{{operator, "nobody"}, {identity.ByCaller("ann", h.roles["tester"]), "clerk"}} {
		err := h.mcp.ServeStdio(t.Context(), strings.NewReader(""), io.Discard, c.sender, c.role)
		if errcode.Of(err) != errcode.RoleNotFound {
			t.Errorf("%s as %s: %v", c.sender, c.role, err)
		}
	}
}

func TestBadLinesAreAnsweredAndTheNextIsRead(t *testing.T) {
	h := plan{config: mcpserver.Config{Calls: 2}}.open(t)
	p := h.talk(t, operator, "tester")
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
		soon(t, "the tool begins", h.probe.began)
	}
	say(`{"jsonrpc":"2.0","id":"third","method":"ping"}`, `"id":"third","error":{"code":-32000`)
	for i := range 2 {
		say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i), fmt.Sprintf(`"id":%d`, i))
	}
	say(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"}}}`, `"text":"x"`)
}

// What was under way when the input ended is answered.
func TestTheAnswersOutliveTheInput(t *testing.T) {
	h := open(t)
	var out strings.Builder
	in := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"said"}}}
` + mcpserver.EndOfInput + "\nwhat comes behind is not read\n"
	if err := h.mcp.ServeStdio(t.Context(), strings.NewReader(in), &out, operator, "tester"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"said"`) || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%s", out.String())
	}
}
