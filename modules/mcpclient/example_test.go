package mcpclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/toolgroups"
)

// The tools of an MCP server become a tool group. Without DisablePinning they are active
// once the operator has accepted them.
func Example() {
	weather := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "1"}, nil)
	weather.AddTool(&sdk.Tool{Name: "forecast", Description: "Tell the weather.", InputSchema: json.RawMessage(`{"type": "object"}`)}, nil)
	server := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return weather }, nil))
	defer server.Close()
	m, err := mcpclient.New(mcpclient.Config{Name: "weather", URL: server.URL, DisablePinning: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	groups, ctx := toolgroups.NewManager(toolgroups.ReservedIDs()...), context.Background()
	loader := modules.NewLoader(groups)
	defer loader.Close(ctx)
	if err := loader.LoadModule(ctx, m); err != nil {
		fmt.Println(err)
		return
	}
	for _, g := range groups.CurrentSnapshot().ListGroups() {
		fmt.Println(g.ID, g.Tools)
	}
	// Output:
	// weather [weather__forecast]
}
