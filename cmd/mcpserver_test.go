package cmd

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpServer is a program for scripts: an MCP server on stdin and stdout with the
// tools that a file lists, by name and description. It leaves a file "started"
// where it runs.
func mcpServer() {
	var tools []*mcp.Tool
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = json.Unmarshal(text, &tools)
	}
	if err == nil {
		err = os.WriteFile("started", nil, 0o600)
	}
	if err != nil {
		log.Fatal(err)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "script"}, nil)
	for _, t := range tools {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
		s.AddTool(t, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: t.Name + " says hello"}}}, nil
		})
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
