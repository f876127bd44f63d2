package mcpclient

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/modules"
)

// A change of tools that a server has notified is listed again after a call whose context ended
// before the new definitions were recorded.
func TestReconnector_ListsAgainAfterCancelledCall(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "s"}, nil)
	at := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	defer at.Close()
	ctx, cancel := context.WithCancel(t.Context())
	prefix, recorded := "s__", 0
	var refuse bool
	r := newReconnector(Config{Name: "s", URL: at.URL, Prefix: &prefix}, slog.New(slog.DiscardHandler), func(ctx context.Context, _ []modules.ToolPin) error {
		if refuse {
			cancel()
			return ctx.Err()
		}
		recorded++
		return nil
	})
	defer r.close()
	n, err := r.connection(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n.changes.Add(1)
	refuse = true
	if _, err := r.connection(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("the cancelled call: %v", err)
	}
	refuse = false
	if again, err := r.connection(t.Context()); err != nil || again != n || recorded != 2 {
		t.Errorf("the definitions were recorded %d times, want 2: %v", recorded, err)
	}
}

// A reconnector that ends does not wait for a server that never answers a list of changed tools.
func TestReconnector_CloseEndsListOfChanges(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "s"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "one"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{}, nil, nil
	})
	var lists int
	listing, answered := make(chan struct{}), make(chan struct{})
	answer := sync.OnceFunc(func() { close(answered) })
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if method == "tools/list" {
				if lists++; lists == 2 {
					close(listing)
					<-answered
				}
			}
			return next(ctx, method, r)
		}
	})
	at := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	defer at.Close()
	defer answer()
	prefix := "s__"
	r := newReconnector(Config{Name: "s", URL: at.URL, Prefix: &prefix}, slog.New(slog.DiscardHandler), func(context.Context, []modules.ToolPin) error { return nil })
	n, err := r.connection(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n.changes.Add(1)
	var called error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, called = r.connection(context.Background())
		answer()
		r.close()
	}()
	<-listing
	r.cancel() // as close does, which then waits for the list
	select {
	case <-ended:
	case <-time.After(listTimeout / 2):
		t.Fatal("the end of the reconnector did not end the list")
	}
	if !errors.Is(called, context.Canceled) {
		t.Errorf("the call that listed: %v, want context.Canceled", called)
	}
}
