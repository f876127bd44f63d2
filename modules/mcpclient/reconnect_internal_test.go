package mcpclient

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

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
