//lint:file-ignore SA1019 the SDK marks sampling, roots and logging as deprecated; clients and servers have them

package mcpclient_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/tool"
)

// clientInput is a tool.InputSource of a client with a model and roots.
type clientInput struct{}

func (clientInput) SupportsInput(tool.InputKind) bool { return true }
func (clientInput) LastMemo() json.RawMessage         { return nil }
func (clientInput) RequestInput(_ context.Context, r tool.InputRound) ([]tool.InputResponse, error) {
	list := make([]tool.InputResponse, len(r.Requests))
	for i, request := range r.Requests {
		switch request.Kind() {
		case tool.ModelInput:
			list[i].Reply = &tool.ModelReply{Text: request.Model.System + ": " + request.Model.Messages[0].Text, Model: "m"}
		case tool.RootsInput:
			list[i].Roots = []tool.Root{{URI: "file:///work", Name: "work"}}
		default:
			list[i].Answer = &tool.Answer{Action: tool.Accept, Content: json.RawMessage(`{}`)}
		}
	}
	return list, nil
}

// relayServer serves tools that ask the client: at the end of the call or, in a session, during it.
func relayServer(t *testing.T) (url string) {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "relay", Version: "1"}, nil)
	think := &sdk.CreateMessageWithToolsParams{MaxTokens: 10, SystemPrompt: "be\u202e short", Messages: []*sdk.SamplingMessageV2{{Role: "user", Content: []sdk.Content{&sdk.TextContent{Text: "why?"}}}}}
	look := &sdk.CreateMessageWithToolsParams{MaxTokens: 10, Messages: []*sdk.SamplingMessageV2{{Role: "user", Content: []sdk.Content{&sdk.ImageContent{MIMEType: "image/png", Data: []byte("a")}}}}}
	act := *think
	act.Tools = []*sdk.Tool{{Name: "a", InputSchema: anyObject}}
	for name, request := range map[string]sdk.InputRequest{"think": think, "look": look, "act": &act, "roots": &sdk.ListRootsParams{}} {
		server.AddTool(&sdk.Tool{Name: name, Description: "d", InputSchema: anyObject}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			switch got := r.Params.InputResponses["q"].(type) {
			case *sdk.CreateMessageWithToolsResult:
				return textResult("thought " + got.Content[0].(*sdk.TextContent).Text), nil
			case *sdk.ListRootsResult:
				return textResult("works in " + got.Roots[0].URI), nil
			}
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": request}}, nil
		})
	}
	server.AddTool(&sdk.Tool{Name: "session", Description: "d", InputSchema: anyObject}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		got, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 10, SystemPrompt: "now", Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "why?"}}}})
		if err != nil {
			return textResult("rejected: " + err.Error()), nil
		}
		return textResult("thought " + got.Content.(*sdk.TextContent).Text), nil
	})
	stateless := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true})
	stateful := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/stateless") {
			stateless.ServeHTTP(w, r)
			return
		}
		stateful.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return web.URL
}

// A server may ask the client of a call for what its configuration allows, and for nothing else.
func TestRelay(t *testing.T) {
	url := relayServer(t)
	for _, tt := range []struct {
		name, path, tool string
		relay            mcpclient.Relay
		want             string
	}{
		{"a model", "/stateless", "think", mcpclient.Relay{Sampling: true}, "thought be short: why?"},
		{"a model that is not allowed", "/stateless", "think", mcpclient.Relay{Roots: true}, "input_unavailable"},
		{"a model with a picture", "/stateless", "look", mcpclient.Relay{Sampling: true}, "input_unavailable"},
		{"a model with tools", "/stateless", "act", mcpclient.Relay{Sampling: true}, "input_unavailable"},
		{"roots", "/stateless", "roots", mcpclient.Relay{Roots: true}, "works in file:///work"},
		{"roots that are not allowed", "/stateless", "roots", mcpclient.Relay{Sampling: true}, "input_unavailable"},
		{"a model in a session", "/stateful", "session", mcpclient.Relay{Sampling: true}, "thought now: why?"},
		{"a model in a session that is not allowed", "/stateful", "session", mcpclient.Relay{Roots: true}, "rejected: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fx := newFixture(t)
			fx.load(mcpclient.Config{Name: "far", URL: url + tt.path, Relay: tt.relay})
			fx.want(fx.callAs(t.Context(), clientInput{}, tt.tool), tt.want)
			fx.want(fx.callAs(t.Context(), nil, tt.tool), cmpWithout(tt.want))
			if err := fx.loader.UnloadModule(t.Context(), "far"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// cmpWithout returns what a call returns where there is no client to ask.
func cmpWithout(want string) string {
	switch want {
	case "thought now: why?", "rejected: ":
		return "rejected: "
	}
	return "input_unavailable"
}
