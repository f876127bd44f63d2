//lint:file-ignore SA1019 the SDK marks sampling, roots and logging as deprecated; clients and servers have them

package mcpclient_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/tool"
)

// logServer has a tool that logs, and waits until the client has handled the messages, and a tool that
// waits until released is closed.
func logServer(t *testing.T) (url string, waiting chan struct{}, released chan struct{}) {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "far", Version: "1"}, &sdk.ServerOptions{Capabilities: &sdk.ServerCapabilities{Logging: &sdk.LoggingCapabilities{}, Tools: &sdk.ToolCapabilities{}}})
	server.AddTool(&sdk.Tool{Name: "speak", Description: "d", InputSchema: anyObject}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for _, p := range []*sdk.LoggingMessageParams{
			{Level: "debug", Data: "not asked for"}, {Level: "info", Data: "half\u202e done"}, {Level: "critical", Data: map[string]any{"disk": "full"}},
			{Level: "warning", Data: strings.Repeat("x", 10_000)},
		} {
			if err := r.Session.Log(ctx, p); err != nil {
				return nil, err
			}
		}
		return textResult("spoke"), r.Session.Ping(ctx, nil) // the client answers after what came before
	})
	waiting, released = make(chan struct{}, 1), make(chan struct{})
	server.AddTool(&sdk.Tool{Name: "wait", Description: "d", InputSchema: anyObject}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		waiting <- struct{}{}
		<-released
		return textResult("waited"), nil
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return web.URL, waiting, released
}

// heard are the log messages of a call.
type heard struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (h *heard) add(m tool.LogMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, m.Level.String()+" "+m.Text)
}

// callLogged calls a tool for an owner, and returns what it logs.
func (fx *fixture) callLogged(ctx context.Context, owner, name string) []string {
	fx.Helper()
	var h heard
	call := tool.Call{Name: "far__" + name, Args: json.RawMessage(`{}`), Owner: owner}
	if _, err := fx.handle(call.Name).Tool.Call(tool.WithLog(ctx, h.add), call); err != nil {
		fx.Error(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lines
}

// The log messages of a server reach the client of the only call in progress, until the connection
// has served a second owner.
func TestRelayLog(t *testing.T) {
	url, waiting, released := logServer(t)
	fx := newFixture(t)
	fx.load(mcpclient.Config{Name: "far", URL: url, Relay: mcpclient.Relay{Logging: true}, Revision: "2025-11-25"})
	want := []string{slog.LevelInfo.String() + " half done", slog.LevelError.String() + ` {"disk":"full"}`, slog.LevelWarn.String() + " " + strings.Repeat("x", 4<<10)}
	for range 2 {
		if got := fx.callLogged(t.Context(), "ann", "speak"); len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || len(got[2]) > len(want[2])+len("…") {
			t.Errorf("ann hears %.300q", got)
		}
	}
	var other sync.WaitGroup
	other.Go(func() {
		if got := fx.callLogged(t.Context(), "ann", "wait"); len(got) > 0 {
			t.Errorf("the other call hears %.100q", got)
		}
	})
	<-waiting
	if got := fx.callLogged(t.Context(), "ann", "speak"); len(got) > 0 {
		t.Errorf("beside another call, ann hears %.100q", got)
	}
	close(released)
	other.Wait()
	for _, owner := range []string{"bob", "ann"} { // a message of ann's call may come during that of bob, and the other way round
		if got := fx.callLogged(t.Context(), owner, "speak"); len(got) > 0 {
			t.Errorf("after a call of another owner, %s hears %.100q", owner, got)
		}
	}
}

func TestRelayLog_NotAllowed(t *testing.T) {
	url, _, _ := logServer(t)
	fx := newFixture(t)
	fx.load(mcpclient.Config{Name: "far", URL: url, Relay: mcpclient.Relay{Sampling: true, Roots: true}, Revision: "2025-11-25"})
	if got := fx.callLogged(t.Context(), "ann", "speak"); len(got) > 0 {
		t.Errorf("ann hears %.100q", got)
	}
}
