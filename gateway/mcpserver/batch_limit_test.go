package mcpserver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/gateway/mcpserver"
)

// waitBatch returns a batch of calls that wait, and of as many notifications.
func waitBatch(n int) string {
	var calls []string
	for i := range n {
		calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":"w%d","method":"tools/call","params":{"name":"wait","arguments":{}}}`, i), `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`)
	}
	return "[" + strings.Join(calls, ",") + "]"
}

// The requests of a batch in a session run at once, so each of them counts.
func TestBatch_EachRequestCounts(t *testing.T) {
	f := fixtureConfig{config: mcpserver.Config{MaxCalls: 4}}.open(t)
	got := f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, nil)
	header := map[string]string{"Mcp-Session-Id": got.header.Get("Mcp-Session-Id")}
	if got := f.post(t, "ann@tester", "/mcp", waitBatch(5), header); got.status != http.StatusTooManyRequests {
		t.Fatalf("a batch of 5 requests is answered %d %s", got.status, got.body)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel() // ends the calls
	batch, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/mcp", strings.NewReader(waitBatch(4)))
	if err != nil {
		t.Fatal(err)
	}
	batch.Header.Set("Content-Type", "application/json")
	batch.Header.Set("Accept", "application/json, text/event-stream")
	done := make(chan struct{})
	go func() {
		defer close(done)
		if response, err := (senderTransport{"ann@tester", header}).RoundTrip(batch); err == nil {
			_ = response.Body.Close()
		}
	}()
	for range 4 {
		waitFor(t, "a call of the batch", f.probe.began)
	}
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if got := f.post(t, "ann@tester", "/mcp", ping, header); got.status != http.StatusTooManyRequests {
		t.Errorf("beside the batch, a request is answered %d %s", got.status, got.body)
	}
	if got := f.post(t, "bob@tester", "/mcp", ping, nil); got.status != http.StatusOK {
		t.Errorf("beside the batch, another caller is answered %d %s", got.status, got.body)
	}
	cancel()
	for range 4 {
		waitFor(t, "the end of a call", f.probe.ended)
	}
	<-done
}
