package mcpclient_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/modules/mcpclient"
)

// A server is offered the newest revision, unless the configuration names an older one.
func TestConfig_Revision(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "revisions", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "revision", Description: "d", InputSchema: anyObject}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return textResult(r.ProtocolVersion()), nil
	})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true})
	remote := httptest.NewServer(handler)
	defer remote.Close()
	for revision, want := range map[string]string{"": "2026-07-28", "2026-07-28": "2026-07-28", "2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18"} {
		t.Run(revision, func(t *testing.T) {
			fx := newFixture(t)
			fx.load(mcpclient.Config{Name: "r", URL: remote.URL, Revision: revision})
			fx.want(fx.call("r__revision", `{}`), want)
			if err := fx.loader.UnloadModule(t.Context(), "r"); err != nil {
				t.Fatal(err)
			}
		})
	}
}
