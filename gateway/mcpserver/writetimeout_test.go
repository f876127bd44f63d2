package mcpserver_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// registerTalkTool registers a tool that reports progress until it is
// cancelled, and the role talker. ended receives a value when a call ends.
func (f *fixture) registerTalkTool(t *testing.T) (ended chan struct{}) {
	t.Helper()
	ended = make(chan struct{}, 1)
	talk := must(t)(tool.New("talk", "reports much progress", func(ctx context.Context, _ noArgs) (string, error) {
		defer func() { ended <- struct{}{} }()
		for i := 1.0; ctx.Err() == nil; i++ {
			tool.ReportProgress(ctx, tool.Progress{Done: i, Message: strings.Repeat("x", 1000)})
		}
		return "", ctx.Err()
	}, nil))
	f.register(t, toolgroups.Group{ID: "talk", Description: "d", Tools: []tool.Tool{talk}})
	f.role(t, "talker", "talk")
	return ended
}

// A client that does not read the progress of its call loses the call.
func TestWithWriteTimeout_EndsUnreadStream(t *testing.T) {
	f := fixtureConfig{config: mcpserver.Config{WriteTimeout: 50 * time.Millisecond, MaxCalls: 1}}.open(t)
	ended := f.registerTalkTool(t)
	id := f.initialize(t, "ann@talker", "/mcp", nil)
	for name, c := range map[string]struct{ header, params string }{
		"without a session": {"Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: talk", strings.Replace(statelessMeta, `{`, `{"progressToken":1,`, 1)},
		"in a session":      {"Mcp-Session-Id: " + id, `"_meta":{"progressToken":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk",` + c.params + `}}`
			fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: here\r\nSender: ann@talker\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n%s\r\nContent-Length: %d\r\n\r\n%s", c.header, len(body), body)
			if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
				t.Fatalf("%s %v", line, err)
			}
			waitFor(t, "the call ends", ended)
			f.waitUntilFree(t, "ann@talker")
		})
	}
}

// A client that does not read a document does not occupy its slot forever.
func TestWithWriteTimeout_EndsUnreadDocument(t *testing.T) {
	f := fixtureConfig{config: mcpserver.Config{WriteTimeout: 50 * time.Millisecond, MaxCalls: 1}}.open(t)
	large := must(t)(tool.New("large", "returns a large text", func(context.Context, noArgs) (string, error) { return strings.Repeat("x", 16<<20), nil }, nil))
	f.register(t, toolgroups.Group{ID: "large", Description: "d", Tools: []tool.Tool{large}})
	f.role(t, "reader", "large")
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"large"}}`
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: here\r\nSender: ann@reader\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%s %v", line, err)
	}
	f.waitUntilFree(t, "ann@reader")
}

// waitUntilFree waits until a sender with a limit of one request has none.
func (f *fixture) waitUntilFree(t *testing.T, sender string) {
	t.Helper()
	for f.post(t, sender, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil).status == http.StatusTooManyRequests {
		continue
	}
}
