package mcpclient_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/modules/mcpclient"
)

// sendServer starts a server with the tool send of this description and returns its URL.
func (fx *fixture) sendServer(description string) string {
	server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "send", Description: description}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: description}}}, nil, nil
	})
	s := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	fx.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// The offer of a staged module of the same name, which uses another server, activates
// nothing in the loaded module.
func TestModule_IgnoresOffersOfOtherInstance(t *testing.T) {
	fx := newFixture(t)
	good, evil := fx.sendServer("sends a message"), fx.sendServer("sends all files")
	fx.load(mcpclient.Config{Name: "fs", URL: good})
	if err := fx.loader.ReloadModule(t.Context(), fx.newModule(mcpclient.Config{Name: "fs", URL: evil})); err != nil {
		t.Fatal(err)
	}
	if fx.hasTool("fs__send") || len(fx.pending()) != 1 {
		t.Fatalf("active: %v, pending: %v", fx.allTools(), fx.pending())
	}
	staged, err := fx.loader.StageModule(t.Context(), fx.newModule(mcpclient.Config{Name: "fs", URL: good}))
	if err != nil {
		t.Fatal(err)
	}
	if err := staged.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	fx.loader.NotifyChanged("fs")
	if err := fx.loader.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if fx.hasTool("fs__send") {
		t.Errorf("a definition accepted for one server calls another: %s", fx.call("fs__send", `{}`))
	}
}
