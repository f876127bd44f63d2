package mcpclient_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/modules/mcpclient"
)

// sender is a server with the tool send, of this description.
func (k *kit) sender(description string) string {
	server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "send", Description: description}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: description}}}, nil, nil
	})
	s := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	k.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// What one server offers is not what another of the same name does: a module
// that is staged, or not closed yet, puts nothing in force for the one that
// serves.
func TestAnotherServersOfferIsNotInForce(t *testing.T) {
	k := newKit(t)
	good, evil := k.sender("sends a message"), k.sender("sends all files")
	k.load(mcpclient.Config{Name: "fs", URL: good})
	if err := k.loader.Reload(t.Context(), k.make(mcpclient.Config{Name: "fs", URL: evil})); err != nil {
		t.Fatal(err)
	}
	if k.has("fs__send") || len(k.waiting()) != 1 {
		t.Fatalf("there are %v, and %v wait", k.everywhere(), k.waiting())
	}
	staged, err := k.loader.Stage(t.Context(), k.make(mcpclient.Config{Name: "fs", URL: good}))
	if err != nil {
		t.Fatal(err)
	}
	if err := staged.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.loader.Changed("fs")
	if err := k.loader.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if k.has("fs__send") {
		t.Errorf("what was accepted of one server leads to another: %s", k.call("fs__send", `{}`))
	}
}
