package mcpclient_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/modules/mcpclient"
)

// newCuttingServer returns the URL of a server that cuts the stream of a call of act once. The tool ends when the
// stream is resumed; calls counts how often it runs.
func newCuttingServer(t *testing.T, calls *atomic.Int64) string {
	began, resumed := make(chan struct{}, 1), make(chan struct{}, 1)
	server := sdk.NewServer(&sdk.Implementation{Name: "cutting", Version: "1"}, nil)
	act := func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		calls.Add(1)
		began <- struct{}{}
		select {
		case <-resumed:
		case <-ctx.Done():
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "acted once"}}}, nil, nil
	}
	sdk.AddTool(server, &sdk.Tool{Name: "act", Description: "acts"}, act)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{EventStore: sdk.NewMemoryEventStore(nil)})
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case bytes.Contains(body, []byte(`"tools/call"`)):
			ctx, cut := context.WithCancel(r.Context())
			go func() { <-began; cut() }()
			handler.ServeHTTP(w, r.WithContext(ctx))
			panic(http.ErrAbortHandler)
		case r.Header.Get("Last-Event-Id") != "":
			resumed <- struct{}{}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(at.Close)
	return at.URL
}

// A call whose stream the server loses is continued on another one. It is not sent again.
func TestResume_LostStreamOfCall(t *testing.T) {
	var calls atomic.Int64
	address := newCuttingServer(t, &calls) // closed after the client
	fx := newFixture(t)
	fx.load(mcpclient.Config{Name: "cutting", URL: address, Revision: "2025-11-25"})
	fx.want(fx.call("cutting__act", `{}`), "acted once")
	if calls.Load() != 1 {
		t.Errorf("the tool ran %d times", calls.Load())
	}
}
