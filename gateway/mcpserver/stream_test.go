package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func raw(text string) json.RawMessage { return json.RawMessage(text) }

// arrived waits a moment for something that may not come.
func arrived(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(200 * time.Millisecond):
		return false
	}
}

// soon fails the test when something that must come does not.
func soon(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: nothing came", what)
	}
}

func TestCancellingReachesTheTool(t *testing.T) {
	h := open(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			session := h.connect(t, "ann@tester", "/mcp", version, nil)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = session.CallTool(ctx, &sdk.CallToolParams{Name: "wait", Arguments: raw(`{}`)})
			}()
			soon(t, "the tool begins", h.probe.began)
			cancel()
			soon(t, "the tool is cancelled", h.probe.ended)
			soon(t, "the client goes on", done)
		})
	}
}

func TestAConnectionThatClosesReachesTheTool(t *testing.T) {
	h := open(t)
	id := h.initialize(t, "ann@tester", "/mcp", nil)
	for name, header := range map[string]map[string]string{
		"in a session": {"Mcp-Session-Id": id}, "without": modern("tools/call", "wait"),
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait"}}`
			if name == "without" {
				body = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + meta + `,"name":"wait"}}`
			}
			ctx, cancel := context.WithCancel(t.Context())
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/mcp", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			done := make(chan struct{})
			go func() {
				defer close(done)
				if got, err := (as{"ann@tester", header}).RoundTrip(r); err == nil {
					got.Body.Close()
				}
			}()
			soon(t, "the tool begins", h.probe.began)
			cancel()
			soon(t, "the tool is cancelled", h.probe.ended)
			soon(t, "the request ends", done)
		})
	}
}

func TestOnlyTheSenderOfACallCancelsIt(t *testing.T) {
	h := open(t)
	mine, other := h.initialize(t, "ann@tester", "/mcp", nil), h.initialize(t, "bob@tester", "/mcp", nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait"}}`, map[string]string{"Mcp-Session-Id": mine})
	}()
	soon(t, "the tool begins", h.probe.began)
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"enough"}}`
	h.post(t, "bob@tester", "/mcp", cancel, map[string]string{"Mcp-Session-Id": other})
	if got := h.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"}}}`, map[string]string{"Mcp-Session-Id": mine}); got.status != http.StatusBadRequest {
		t.Errorf("an id that is in use: %d %s", got.status, got.body)
	}
	if got := h.post(t, "ann@tester", "/mcp", cancel, map[string]string{"Mcp-Session-Id": mine}); got.status != http.StatusAccepted {
		t.Errorf("cancelled: %d %s", got.status, got.body)
	}
	soon(t, "the tool is cancelled", h.probe.ended)
	soon(t, "the request ends", done)
}

func TestProgressIsPassedOn(t *testing.T) {
	h := open(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			var mu sync.Mutex
			var got []string
			all := make(chan struct{})
			session := h.connect(t, "ann@tester", "/mcp", version, &sdk.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, fmt.Sprint(r.Params.ProgressToken, " ", r.Params.Progress, "/", r.Params.Total, " ", r.Params.Message))
					if len(got) == 3 {
						close(all)
					}
				},
			})
			params := &sdk.CallToolParams{Name: "count", Arguments: raw(`{}`)}
			params.SetProgressToken("p")
			result, err := session.CallTool(t.Context(), params)
			if err != nil || said(result) != "counted" {
				t.Fatalf("%+v %v", result, err)
			}
			soon(t, "progress", all)
			mu.Lock()
			defer mu.Unlock()
			if want := []string{"p 1/3 step\na", "p 2/3 step\nb", "p 3/3 step\nc"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestWhoTakesNoStreamsGetsNone(t *testing.T) {
	h := open(t)
	plain := map[string]string{"Accept": "application/json"}
	id := h.initialize(t, "ann@tester", "/mcp", plain)
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","_meta":{"progressToken":1}}}`,
	} {
		got := h.post(t, "ann@tester", "/mcp", body, map[string]string{"Accept": "application/json", "Mcp-Session-Id": id})
		if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s %s", body, got.status, got.header.Get("Content-Type"), got.body)
		}
		decode(t, got.body)
	}
	stream := h.initialize(t, "ann@tester", "/mcp", nil)
	for body, want := range map[string]int{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`: http.StatusOK, `{"jsonrpc":"2.0","id":1,"method":"ping"}`: http.StatusNotAcceptable} {
		if got := h.post(t, "ann@tester", "/mcp", body, map[string]string{"Accept": "application/json", "Mcp-Session-Id": stream}); got.status != want {
			t.Errorf("%s in a session of streams: %d %s", body, got.status, got.body)
		}
	}
}
